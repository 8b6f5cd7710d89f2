import Type, { type Static } from "typebox";
import type { EffectiveSettings } from "../config/config.ts";
import {
  emailSchema,
  nullable,
  plainText,
  choice,
  yesNo,
  answerObject,
  requestObject,
  quantity,
  positive,
} from "../api/schema-helpers.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import type { OwnMailService } from "./own-mails.ts";
import type { Caller } from "../core/roles.ts";
import type { ReadServerSize, ServerSize } from "./server-size.ts";

const milliseconds = (description: string, example: number) => quantity(`${description}, in milliseconds.`, example);

const SettingJson = answerObject("ServerSetting", "A setting of the server.", {
  name: plainText("Its name in the environment.", "RETENTION_DAYS"),
  value: nullable(plainText("What is in force; null: nothing is, or it is a secret.", "30")),
  set: yesNo("Whether the environment has it; otherwise it is the default.", true),
  secret: yesNo("Whether its value is shown nowhere.", false),
  description: plainText("What it is, and what it means to leave it unset.", "Days that finished actions are kept."),
});

const bytes = (description: string, example: number) => quantity(`${description}, in bytes.`, example);

const DatabaseJson = Type.Object(
  {
    bytes: bytes("Size of the file without its log", 48_234_496),
    free_bytes: bytes("What of it is free for the next rows", 1_048_576),
    can_shrink: yesNo("Whether the file gets smaller after retention. A file of version 0.1 doesn't.", true),
    deletable_bytes: bytes("About what retention would free, estimated from a sample of actions", 30_000_000),
    deletable_days: positive("The retention of that estimate: `retention_days`, or 30.", 30),
  },
  {
    description:
      "The database file. Null for keys of other accounts than the first, and where the database is no file.",
    examples: [
      { bytes: 48_234_496, free_bytes: 1_048_576, can_shrink: true, deletable_bytes: 30_000_000, deletable_days: 30 },
    ],
  },
);

const ServerJson = answerObject("Server", "What is in force on the server. It is changed in its environment.", {
  version: plainText("Version of the service.", "0.2.0"),
  targets: plainText("Where calls may go, as a sentence.", "Calls may go to public addresses only."),
  rate_limit_per_second: nullable(positive("Requests of an account in a second; null: no limit.", 100)),
  attempt_timeout_ms: milliseconds("Deadline of one attempt", 30_000),
  retry_base_ms: milliseconds("Delay after the first failure", 2_000),
  retry_cap_ms: milliseconds("Longest delay between two attempts", 3_600_000),
  approval_ttl_hours: nullable(positive("Hours that an action awaits approval; null: forever.", 72)),
  approval_links: choice(
    ["confirm", "one_click"],
    "Whether the links of approval mails ask for confirmation.",
    "confirm",
  ),
  approvers: Type.Array(
    Type.String({ description: "An address, a domain, or for other accounts how many there are." }),
    {
      description: "Who can be asked beside the people of an account; empty: no list is set.",
      examples: [["boss@example.com"]],
    },
  ),
  agent_approval: choice(["off", "elicit"], "Whether an MCP client can ask its user to approve.", "off"),
  sends_mail: yesNo("Whether a mail provider is set.", true),
  retention_days: nullable(positive("Days that finished actions are kept; null: forever.", 30)),
  database: nullable(DatabaseJson),
  settings: nullable(
    Type.Array(SettingJson, { description: "Every setting; null for keys of other accounts than the first." }),
  ),
});

type ServerJson = Static<typeof ServerJson>;

const TestMail = requestObject("TestMail", "Who gets the test mail.", {
  to: emailSchema("Where to send it: the address of a person of this account."),
});

const TestMailResult = answerObject("TestMailResult", "How a test mail fared.", {
  delivered: yesNo("Whether the mail provider took it.", true),
  error: nullable(plainText("Why not; null: it did.", "No mail was sent: no mail provider is configured.")),
});

export interface ServerRouteDeps {
  /** The server's settings that this caller can see. */
  readonly settingsFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly readSize: ReadServerSize;
  readonly ownMails: Pick<OwnMailService, "testTo">;
  readonly version: string;
}

/** /v1/server: what the page of the server shows and tests. */
export function serverRoutes({ settingsFor, readSize, ownMails, version }: ServerRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/server",
      async ({ caller }) => {
        const [settings, size] = await Promise.all([settingsFor(caller), readSize(caller)]);
        return jsonOf(serializeServer(settings, size, version));
      },
      operation({
        operationId: "getServer",
        permission: "manage",
        tag: "System",
        summary: "Get the settings in force on the server",
        description: "Returns the settings in force. Values of secrets are never shown.",
        notes: ["Keys of the first account see every setting, others what concerns them, without internal names."],
        answers: { 200: { description: "The settings.", schema: ServerJson } },
      }),
    )
    .post(
      "/v1/server/test-mail",
      async ({ caller, body }) => jsonOf(await ownMails.testTo(caller, body.to)),
      operation({
        operationId: "sendTestMail",
        permission: "manage",
        tag: "System",
        summary: "Send a test mail to a person of the account",
        description: "Sends at once and waits for at most 10 seconds. At most one a second and 30 an hour.",
        body: jsonBody(TestMail),
        answers: { 200: { description: "How it fared.", schema: TestMailResult } },
      }),
    );
}

function serializeServer(settings: EffectiveSettings, size: ServerSize | null, version: string): ServerJson {
  const { rateLimitPerSecond, all } = settings;
  return {
    version,
    targets: settings.targets,
    rate_limit_per_second: rateLimitPerSecond === 0 ? null : rateLimitPerSecond,
    attempt_timeout_ms: settings.attemptTimeoutMs,
    retry_base_ms: settings.retryBaseMs,
    retry_cap_ms: settings.retryCapMs,
    approval_ttl_hours: settings.approvalTtlHours,
    approval_links: settings.approvalLinks,
    approvers: [...settings.approvers],
    agent_approval: settings.agentApproval,
    sends_mail: settings.sendsMail,
    retention_days: settings.retentionDays,
    database: size === null ? null : databaseJson(size),
    settings:
      all?.map(({ name, value, isSet, isSecret, description }) => ({
        name,
        value,
        set: isSet,
        secret: isSecret,
        description,
      })) ?? null,
  };
}

function databaseJson({ bytes: all, freeBytes, canShrink, deletableBytes, days }: ServerSize) {
  return {
    bytes: all,
    free_bytes: freeBytes,
    can_shrink: canShrink,
    deletable_bytes: deletableBytes,
    deletable_days: days,
  };
}
