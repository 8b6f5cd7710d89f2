import { join } from "node:path";
import openapiTypescript, { astToString } from "openapi-typescript";
import { at, DOCUMENT, type Node, OPERATIONS } from "../test/support/openapi.ts";
import { ROOT } from "./build/bundle.ts";

/** The types that the client and the npm package have, in the form that openapi-typescript gives the API description. */
export const CLIENT_TYPES = join(ROOT, "src/client/openapi.ts");

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

/** The text of that file. */
export async function clientTypes(): Promise<string> {
  const named = Object.entries(at(DOCUMENT, "components", "schemas")).filter(([name]) => !NOT_OF_CLIENT.has(name));
  const queries = Object.entries(QUERIES).map(([name, operation]) => [name, queryOf(operation)] as const);
  const document = {
    openapi: "3.1.0",
    info: { title: "Outgate", version: "1" },
    components: { schemas: Object.fromEntries([...named, ...queries].map(([name, one]) => [name, withoutNotes(one)])) },
  };
  const printed = astToString(await openapiTypescript(JSON.stringify(document), { defaultNonNullable: false }));
  const members = /\n {4}schemas: \{\n([\s\S]*?)\n {4}\};\n/.exec(printed)?.[1] ?? "";
  const types = members
    .replaceAll(/^ {8}/gm, "")
    .replaceAll(/^(\w+): /gm, "export type $1 = ")
    .replaceAll(/components\["schemas"\]\["(\w+)"\]/g, "$1")
    .replaceAll(/^ *\* @(?:enum|constant).*\n/gm, "")
    .replaceAll(/\/\*\*\n *\* @description (.*)\n *\*\//g, "/** $1 */")
    .replaceAll("* @description ", "* ")
    .replaceAll(/^ *\/\*\* @(?:enum|constant).*\n/gm, "");
  return formatted(`// Written by \`npm run client-types\` from the API description.\n\n${types}\n`);
}

function queryOf(id: string): Node {
  const parameters = OPERATIONS.find((one) => one.id === id)?.node["parameters"];
  if (!Array.isArray(parameters)) throw new Error(`The API has no operation ${id} with a query.`);
  const inQuery = parameters.map((one) => at(one)).filter((one) => one["in"] === "query");
  const properties = Object.fromEntries(inQuery.map((one) => [String(one["name"]), one["schema"]]));
  return { type: "object", properties, required: inQuery.filter((one) => one["required"]).map((one) => one["name"]) };
}

/** A schema without what is no type of TypeScript, but for its description. */
function withoutNotes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutNotes);
  if (typeof schema !== "object" || schema === null) return schema;
  const { title: _title, examples: _examples, default: _default, format: _format, ...rest } = at(schema);
  const { properties } = rest;
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, withoutNotes(value)]));
  if (properties === undefined) return inner;
  const members = Object.entries(at(properties)).map(([name, member]) => [name, withoutNotes(member)]);
  return { ...inner, properties: Object.fromEntries(members) };
}

async function formatted(text: string): Promise<string> {
  const formatter = Bun.spawn([join(ROOT, "node_modules/.bin/oxfmt"), "--stdin-filepath", CLIENT_TYPES], {
    cwd: ROOT,
    stdin: new Blob([text]),
    stdout: "pipe",
  });
  return new Response(formatter.stdout).text();
}

if (import.meta.main) await Bun.write(CLIENT_TYPES, await clientTypes());
