import { join } from "node:path";
import openapiTypescript, { astToString } from "openapi-typescript";
import { at, DOCUMENT, type Node } from "../../test/support/openapi.ts";
import { ROOT } from "./bundle.ts";

/** Queries of operations: the description lists their parameters one by one, a method of the client takes all. */
const QUERIES = {
  AuditQuery: "listAudit",
  BulkQuery: "listBulk",
  BulkResultQuery: "listBulkResults",
  CredentialRequestQuery: "listCredentialRequests",
  ExportQuery: "exportActions",
  FilterQuery: "countActions",
  ListQuery: "listActions",
  NotificationQuery: "listNotifications",
  OverviewQuery: "getOverview",
  SigningSecretQuery: "getSigningSecret",
} as const;

/** The client doesn't log in as pages do, and its methods take or return these in another form. */
const NOT_OF_CLIENT = new Set(["AddCallbackHost", "Credentials", "LoggedIn", "SignedUp", "StartedBulk"]);

/** Types that have members of another one. The description repeats the members. */
const BASES: Readonly<Record<string, string>> = {
  BulkFilter: "FilterQuery",
  ChangeChannel: "CreateChannel",
  ChangeCredential: "CreateCredential",
  ChangeRule: "RuleDefinition",
  CreatedInvitation: "Invitation",
  CreateRule: "RuleDefinition",
  Credential: "CreateCredential",
  CredentialRequest: "AskCredential",
  ExportQuery: "FilterQuery",
  HostSettings: "PutHostSettings",
  ListedKey: "CreatedKey",
  ListQuery: "FilterQuery",
  NewOAuthClient: "OAuthClient",
  OverviewAgent: "OverviewOthers",
  OverviewHost: "OverviewOthers",
  OverviewSlot: "OverviewOthers",
  Pause: "ActionPause",
  PutHostSettings: "PutDefaults",
  Receipt: "Action",
  RevokedKey: "CreatedKey",
  Rule: "RuleDefinition",
  Settings: "PutDefaults",
  TimelineItem: "ReceiptItem",
};

/** Lists of values that the description repeats, by the first place of each. */
const REPEATED = new Map(
  [["ActionStatus"], ["HttpMethod"], ["AuditEntry", "properties", "kind"]].map((path) => {
    const schema = at(DOCUMENT, "components", "schemas", ...path);
    return [JSON.stringify(schema["enum"]), { schema, $ref: `#/components/schemas/${path.join("/")}` }] as const;
  }),
);

/** The types of the API as openapi-typescript makes them of its description, for the npm package. */
export async function clientTypes(): Promise<string> {
  const named = Object.entries(at(DOCUMENT, "components", "schemas")).filter(([name]) => !NOT_OF_CLIENT.has(name));
  const queries = Object.entries(QUERIES).map(([name, operation]) => [name, queryType(operation)] as const);
  const schemas = [...named, ...queries].map(([name, schema]) => [name, at(typed(schema))] as const);
  const byName = new Map(schemas);
  const bases = new Map<string, string>();
  const types = schemas.map(([name, schema]) => {
    const base = BASES[name];
    if (base === undefined) return [name, schema] as const;
    const { inherits, ...extended } = extension(schema, base, byName.get(base) ?? {});
    bases.set(`${name}Base`, inherits);
    return [name, { ...extended, allOf: [{ $ref: `#/components/schemas/${name}Base` }, ...extended.allOf] }] as const;
  });
  const document = {
    openapi: "3.1.0",
    info: { title: "Outgate", version: "1" },
    components: {
      schemas: Object.fromEntries([...types, ...[...bases.keys()].map((name) => [name, { type: "object" }] as const)]),
    },
  };
  const printed = astToString(await openapiTypescript(JSON.stringify(document), { defaultNonNullable: false }));
  const members = /\n {4}schemas: \{\n([\s\S]*?)\n {4}\};\n/.exec(printed)?.[1] ?? "";
  const text = members
    .replaceAll(/^ {8}/gm, "")
    .replaceAll(/^(\w+): /gm, "export type $1 = ")
    .replaceAll(/components\["schemas"\]\["(\w+)"\]/g, (_, name: string) => bases.get(name) ?? name)
    .replaceAll(/^export type \w+Base = .*\n/gm, "")
    .replaceAll(/^ *\* @(?:enum|constant).*\n/gm, "")
    .replaceAll(/\/\*\*\n *\* @description (.*)\n *\*\//g, "/** $1 */")
    .replaceAll("* @description ", "* ")
    .replaceAll(/^ *\/\*\* @(?:enum|constant).*\n/gm, "")
    // Without this line break the formatter writes an object on one line where it fits.
    .replaceAll(/\{\n *(?=[\w[])/g, "{ ");
  return formatted(text);
}

function queryType(id: string): Node {
  const operations = Object.values(at(DOCUMENT, "paths")).flatMap((methods) => Object.values(at(methods)));
  const { parameters } = at(operations.find((one) => at(one)["operationId"] === id));
  if (!Array.isArray(parameters)) throw new Error(`The API has no operation ${id} with a query.`);
  const inQuery = parameters.map((one) => at(one)).filter((one) => one["in"] === "query");
  const properties = Object.fromEntries(inQuery.map((one) => [String(one["name"]), one["schema"]]));
  return { type: "object", properties, required: inQuery.filter((one) => one["required"]).map((one) => one["name"]) };
}

/** A schema as TypeScript has it: without notes and with references to what is in `REPEATED`. */
function typed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((one) => typed(one));
  if (typeof schema !== "object" || schema === null) return schema;
  const { title: _title, examples: _examples, default: _default, format: _format, description, ...rest } = at(schema);
  const repeated = REPEATED.get(JSON.stringify(rest["enum"]));
  const isReference = repeated !== undefined && repeated.schema !== schema;
  const { properties, ...inner } = isReference ? { $ref: repeated.$ref } : rest;
  return {
    description,
    ...Object.fromEntries(Object.entries(inner).map(([key, value]) => [key, typed(value)])),
    ...(properties !== undefined && {
      properties: Object.fromEntries(Object.entries(at(properties)).map(([name, member]) => [name, typed(member)])),
    }),
  };
}

/** The schema as what it has of its base, in TypeScript, and the members that only it has. */
function extension({ description, properties, required, ...rest }: Node, base: string, from: Node) {
  const isRequired = (member: string, list: unknown) => Array.isArray(list) && list.includes(member);
  const shared = Object.keys(at(from["properties"])).filter((member) =>
    Bun.deepEquals(at(properties, member), at(from["properties"], member)),
  );
  const isPartial = !shared.some((member) => isRequired(member, required));
  const same = new Set(
    shared.filter((member) => isPartial || isRequired(member, required) === isRequired(member, from["required"])),
  );
  const left = Object.keys(at(from["properties"])).filter((member) => !same.has(member));
  const kept = left.length === 0 ? base : `Omit<${base}, ${left.map((member) => `"${member}"`).join(" | ")}>`;
  const needed = [...same].some((member) => isRequired(member, from["required"]));
  const own = Object.entries(at(properties)).filter(([member]) => !same.has(member));
  return {
    description,
    inherits: isPartial && needed ? `Partial<${kept}>` : kept,
    allOf: own.length === 0 ? [] : [{ ...rest, required, properties: Object.fromEntries(own) }],
  };
}

async function formatted(text: string): Promise<string> {
  const formatter = Bun.spawn([join(ROOT, "node_modules/.bin/oxfmt"), "--stdin-filepath", "client.d.ts"], {
    cwd: ROOT,
    stdin: new Blob([text]),
    stdout: "pipe",
  });
  return new Response(formatter.stdout).text();
}
