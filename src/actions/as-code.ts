import { createOptions } from "./create-schema.ts";
import { codeSamples, type QuotableJson, quotableJson } from "../api/code-samples.ts";
import { bodyMemberJson, usedBodyMember } from "../core/body.ts";
import { CODE_SAMPLE_CHARS_MAX } from "../core/limits.ts";
import { prettyPrint } from "../core/json.ts";
import { MASK, MASK_PATTERN } from "../receipts/mask-rules.ts";
import { publicRequest } from "../receipts/masked-action.ts";
import type { SeenAction } from "../receipts/seen-action.ts";

/** Code that creates the same action, with placeholders for secrets and the key; null if too long. */
export function createCodeSamples(action: SeenAction, baseUrl: string) {
  // Code is pasted anywhere, so it is masked like a receipt.
  const masked = publicRequest(action, CODE_SAMPLE_CHARS_MAX);
  const json = masked === null ? null : createJson(masked);
  if (json === null || json.length > CODE_SAMPLE_CHARS_MAX) return null;
  return [
    ...codeSamples({ method: "POST", url: `${baseUrl}/v1/actions`, body: { json } }),
    { label: "MCP call", text: prettyPrint(`{"method":"tools/call","params":{"name":"create","arguments":${json}}}`) },
  ];
}

const PLACEHOLDER = "YOUR_SECRET";

/** The body of the create. */
function createJson(action: SeenAction): QuotableJson {
  const { url, method, headers } = action;
  const call = { url, method, headers: headers === null ? undefined : namedSecrets(headers) };
  const member = usedBodyMember(action);
  const body = member === null ? "" : `"${member}":${bodyMemberJson(action)}`;
  // Joins texts, so that the body's numbers stay as written.
  const members = [membersText(call), body, membersText(createOptions(action))].filter((text) => text !== "");
  return quotableJson(prettyPrint(`{${members.join(",")}}`).replaceAll(MASK_PATTERN, PLACEHOLDER));
}

function membersText(members: object): string {
  return JSON.stringify(members).slice(1, -1);
}

/** Each secret header gets its own placeholder. */
function namedSecrets(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    value.startsWith(MASK) ? `YOUR_${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}` : value,
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}
