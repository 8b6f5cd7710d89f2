import {
  PutDefaults,
  SettingsJson,
  PutHostSettings,
  HostSettingsJson,
  HostSettingsList,
} from "../../src/api/host-settings.ts";
import { AuditQuery, AuditLog } from "../../src/audit/schemas.ts";
import { CreatePause, PauseJson, PauseList } from "../../src/api/pause-schemas.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  ChangePerson,
  CreatedInvitation,
  CreateInvitation,
  InvitationList,
  PersonJson,
  PersonList,
} from "../../src/accounts/team-schemas.ts";
import {
  AccountJson,
  AccountList,
  ChangeAccount,
  CreatedKey,
  CreateKey,
  RevokedKeyJson,
} from "../../src/accounts/schemas.ts";
import { KeyList } from "../../src/accounts/key-list.ts";
import { SigningOriginList } from "../../src/accounts/known-origins.ts";
import { CallbackTestJson, TestCallback } from "../../src/accounts/callback-test.ts";
import { CallbackHost, CallbackHostList } from "../../src/accounts/callback-hosts.ts";
import { RotationJson, SigningSecretJson, SigningSecretQuery } from "../../src/accounts/signing-secrets.ts";
import { SignatureCheckJson, VerifySignature } from "../../src/accounts/verify-signature.ts";
import { ChangeFirstSteps, FirstStepsJson } from "../../src/accounts/first-step-routes.ts";
import { ServerJson, TestMail, TestMailResult } from "../../src/accounts/server-routes.ts";
import { AttemptList } from "../../src/actions/attempt-schemas.ts";
import {
  ActionCounts,
  ActionPageJson,
  ExportQuery,
  FilterQuery,
  ListQuery,
  Timeline,
} from "../../src/api/list-schemas.ts";
import { ActionJson, CreateAction, DecisionBody, Retry } from "../../src/api/action-schemas.ts";
import { DESCRIBED_ONLY } from "../../src/api/schema-helpers.ts";
import { ErrorEnvelope } from "../../src/api/errors.ts";
import { DecisionFacts } from "../../src/approvals/facts.ts";
import { DecideRequests, RequestDecisions } from "../../src/actions/decision-routes.ts";
import {
  BulkDryRun,
  BulkJobJson,
  BulkJobList,
  BulkQuery,
  BulkResultList,
  BulkResultQuery,
  StartBulk,
} from "../../src/bulk/schemas.ts";
import { NotificationList, NotificationQuery } from "../../src/actions/notification-routes.ts";
import { OverviewJson, OverviewQuery } from "../../src/events/overview-routes.ts";
import { ChangeChannel, ChannelJson, ChannelList, ChannelTest, CreateChannel } from "../../src/channels/schemas.ts";
import { Health } from "../../src/http/system-routes.ts";
import { ReceiptJson } from "../../src/receipts/schema.ts";
import { ROOT } from "./bundle.ts";

/** The schemas that the client's types name, under the names that they have in the API description. A test compares the declarations with the types of the sources. */
const SCHEMAS: Readonly<Record<string, object>> = {
  Account: AccountJson,
  AccountList,
  Action: ActionJson,
  ActionPage: ActionPageJson,
  AttemptList,
  AuditLog,
  AuditQuery,
  CallbackHost,
  CallbackHostList,
  ChangeChannel,
  ChangePerson,
  Channel: ChannelJson,
  ChannelList,
  ChannelTest,
  CreateAction,
  CreateChannel,
  CreatedInvitation,
  CreatedKey,
  RevokedKey: RevokedKeyJson,
  CreateInvitation,
  CreateKey,
  CreatePause,
  Decision: DecisionBody,
  DecisionFacts,
  ErrorEnvelope,
  Health,
  HostSettings: HostSettingsJson,
  HostSettingsList,
  InvitationList,
  KeyList,
  ListQuery,
  ActionCounts,
  BulkDryRun,
  BulkJob: BulkJobJson,
  BulkJobList,
  BulkQuery,
  BulkResultList,
  BulkResultQuery,
  DecideRequests,
  ExportQuery,
  FilterQuery,
  NotificationList,
  NotificationQuery,
  Overview: OverviewJson,
  OverviewQuery,
  RequestDecisions,
  StartBulk,
  Pause: PauseJson,
  PauseList,
  PutDefaults,
  PutHostSettings,
  Person: PersonJson,
  PersonList,
  Receipt: ReceiptJson,
  Retry,
  Rotation: RotationJson,
  Settings: SettingsJson,
  SigningOriginList,
  SigningSecret: SigningSecretJson,
  SigningSecretQuery,
  SignatureCheck: SignatureCheckJson,
  TestCallback,
  CallbackTest: CallbackTestJson,
  ChangeAccount,
  FirstSteps: FirstStepsJson,
  ChangeFirstSteps,
  Server: ServerJson,
  TestMail,
  TestMailResult,
  VerifySignature,
  Timeline,
};

/** The names of those types. */
export const SCHEMA_NAMES: readonly string[] = Object.keys(SCHEMAS);

const CLIENT = `
/** A client of the HTTP API: each call is one request, and its repetitions where they are safe. */
export declare function createClient(settings: ClientSettings): OutgateClient;

/**
 * Checks that a call or callback was signed by Outgate with this secret (\`whsec_…\`) within the last five minutes. Several
 * secrets: any of them may have signed, for the day after a rotation. Throws an \`OutgateError\` with the code \`invalid_signature\`.
 */
export declare function verify(secret: string | readonly string[], request: SignedRequest): Verified;

/** Any failure of a call, except an abort by the caller. The message is for people. */
export declare class OutgateError extends Error implements OutgateErrorFacts {
  readonly name: "OutgateError";
  readonly code: OutgateErrorFacts["code"];
  readonly status: OutgateErrorFacts["status"];
  readonly requestId: OutgateErrorFacts["requestId"];
  readonly details: OutgateErrorFacts["details"];
  readonly retryAfterMs: OutgateErrorFacts["retryAfterMs"];
  constructor(
    code: OutgateErrorCode,
    message: string,
    facts?: Partial<OutgateErrorFacts> & { readonly cause?: unknown },
  );
}
`;

/** The declarations of the npm package: they need no other package. */
export function declarations(): string {
  const types = readFileSync(join(ROOT, "src/client/types.ts"), "utf8");
  const own = types.replaceAll(/^import type \{[^}]*\} from "[^"]*";\n/gm, "").replace(/^\/\/.*\n/m, "");
  if (/^import/m.test(own)) throw new Error("src/client/types.ts imports more than types.");
  return `${new TypePrinter(SCHEMAS).print()}\n${own.trim()}\n${CLIENT}`;
}

/** What the printer reads of a JSON schema. */
interface Schema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  /** What code checks in place of the schema (`describedOnly`). */
  readonly [DESCRIBED_ONLY]?: Schema;
}

const SCALARS: Readonly<Record<string, string>> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  null: "null",
};

/** Prints JSON schemas as types. A schema with a title becomes a type with a name. */
class TypePrinter {
  readonly #schemas: readonly (readonly [name: string, schema: Schema])[];
  readonly #nameOfTitle: ReadonlyMap<string, string>;
  readonly #printed = new Map<string, string>();

  constructor(schemas: Readonly<Record<string, object>>) {
    // Safe: as JSON, a schema has no other members than those of JSON schema.
    this.#schemas = Object.entries(schemas).map(
      ([name, schema]) => [name, JSON.parse(JSON.stringify(schema)) as Schema] as const,
    );
    this.#nameOfTitle = new Map(this.#schemas.map(([name, { title = name }]) => [title, name]));
  }

  print(): string {
    for (const [name, schema] of this.#schemas) this.#declare(name, schema);
    return [...this.#printed.values()].join("\n");
  }

  #declare(name: string, schema: Schema): void {
    if (this.#printed.has(name)) return;
    // The place of the declaration: before those that it leads to.
    this.#printed.set(name, "");
    const isObject = schema.properties !== undefined;
    const type = this.#bodyOf(schema);
    this.#printed.set(
      name,
      `${comment(schema, "")}export ${isObject ? `interface ${name} ${type}` : `type ${name} = ${type};`}\n`,
    );
  }

  #typeOf(schema: Schema): string {
    const { title } = schema;
    if (title === undefined) return this.#bodyOf(schema);
    const name = this.#nameOfTitle.get(title) ?? title;
    this.#declare(name, schema);
    return name;
  }

  #bodyOf({ [DESCRIBED_ONLY]: described, ...given }: Schema): string {
    const schema = { ...given, ...described };
    if ("const" in schema) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    if (schema.anyOf !== undefined) return schema.anyOf.map((one) => this.#typeOf(one)).join(" | ");
    if (schema.type === "array") return `Array<${this.#typeOf(schema.items ?? {})}>`;
    if (schema.properties !== undefined) return this.#membersOf(schema);
    if (schema.type === "object") {
      const { additionalProperties: values } = schema;
      return `Readonly<Record<string, ${typeof values === "object" ? this.#typeOf(values) : "unknown"}>>`;
    }
    // A list of types with these is one of all types.
    if (schema.type === undefined || (schema.type !== "object" && schema.type.includes("object"))) return "unknown";
    return [schema.type].flat().map(scalarOf).join(" | ");
  }

  #membersOf({ properties = {}, required = [] }: Schema): string {
    const members = Object.entries(properties).map(([name, member]) => {
      const type = this.#typeOf(member).replaceAll("\n", "\n  ");
      return `${comment(member, "  ")}  ${name}${required.includes(name) ? "" : "?"}: ${type};\n`;
    });
    return `{\n${members.join("")}}`;
  }
}

function scalarOf(type: string): string {
  const scalar = SCALARS[type];
  if (scalar === undefined) throw new Error(`There is no type for a schema of the type ${type}.`);
  return scalar;
}

function comment({ description, anyOf = [] }: Schema, indent: string): string {
  const text = description ?? anyOf.find((one) => one.description !== undefined)?.description;
  return text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`;
}
