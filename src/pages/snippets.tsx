/** @jsxImportSource hono/jsx */
import { maskedAction } from "../receipts/masked-action.ts";
import type { Action } from "../actions/action.ts";
import { RETRIES_DEFAULT, SNIPPET_CHARS_MAX } from "../config/limits.ts";
import { MASK, MASK_PATTERN } from "../receipts/mask-value.ts";
import { keyHeader } from "./words.ts";
import { prettyPrint } from "../json/pretty.ts";

export interface SnippetProps {
  /** What it is for. */
  readonly title: string;
  readonly text: string;
}

/** Lines of ours to copy, as they stand. */
export function SnippetView({ title, text }: SnippetProps) {
  return (
    <div class="stack">
      <h3>{title}</h3>
      <pre class="code" data-copy="">
        {text}
      </pre>
    </div>
  );
}

/** A text to be copied into a terminal, a program or a client. */
export interface Snippet {
  readonly name: string;
  readonly text: string;
}

/**
 * Commands that ask for the same call again, with placeholders for secrets and the reader's own key. Null: it is too long
 * for a command.
 */
export function createSnippets(action: Action, baseUrl: string): readonly Snippet[] | null {
  // Of a long one not even the beginning is looked at.
  if ((action.body?.length ?? 0) > SNIPPET_CHARS_MAX) return null;
  // Commands are pasted anywhere: they hold no more than a receipt does.
  const shown = maskedAction({ ...action, result: null }, "public");
  const json = createText(shown);
  if (json.length > SNIPPET_CHARS_MAX) return null;
  const url = `${baseUrl}/v1/actions`;
  return [
    {
      name: "curl",
      text: `curl -s '${url}' \\
  ${keyHeader("OUTGATE_API_KEY")} -H 'Content-Type: application/json' \\
  -d '${json}'`,
    },
    {
      name: "TypeScript",
      text: `const response = await fetch("${url}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.OUTGATE_API_KEY}\`, "content-type": "application/json" },
  body: \`${inTemplate(json)}\`,
});
console.log(await response.json());`,
    },
    {
      name: "Python",
      text: `import json, os, urllib.request

body = r'''${json}'''
headers = {"Authorization": "Bearer " + os.environ["OUTGATE_API_KEY"], "Content-Type": "application/json"}
request = urllib.request.Request("${url}", body.encode(), headers)
print(json.load(urllib.request.urlopen(request)))`,
    },
    { name: "MCP call", text: prettyPrint(`{"method":"tools/call","params":{"name":"create","arguments":${json}}}`) },
  ];
}

/** Not by `String.raw`, which Bun hands letters beyond ASCII as escapes (1.4.5). */
function inTemplate(text: string): string {
  return text.replaceAll("\\", String.raw`\\`);
}

/** What stands in place of a secret. */
const PLACEHOLDER = "YOUR_SECRET";

/** The body of the create, as a JSON text that may stand in quotes of any language: no quote of theirs is in it. */
function createText(action: Action): string {
  const members = [
    ["url", jsonOf(action.url)],
    ["method", jsonOf(action.method)],
    ["headers", action.headers === null ? null : jsonOf(namedSecrets(action.headers))],
    ["body", action.body],
    ["dedupe", action.dedupe === null ? null : jsonOf(action.dedupe)],
    ["retries", action.retries === RETRIES_DEFAULT ? null : jsonOf(action.retries)],
    ["on_unknown", action.onUnknown === "stop" ? jsonOf("stop") : null],
    ["approve", action.approve ? "true" : null],
    ["callback", action.callback === null ? null : jsonOf(action.callback)],
    ["notify", action.notifyEmail === null ? null : jsonOf({ email: action.notifyEmail })],
  ].flatMap(([name, text]) => (text === null ? [] : [`"${name}":${text}`]));
  return inAnyQuotes(prettyPrint(`{${members.join(",")}}`).replaceAll(MASK_PATTERN, PLACEHOLDER));
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value);
}

/** A header that is secret is a secret of its own. */
function namedSecrets(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    value.startsWith(MASK) ? `YOUR_${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}` : value,
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** What ends a quoted text in a shell, in Python or in TypeScript, and what could not be seen when it is pasted. */
const QUOTING = /['`]|\$(?=\{)|[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\n]]/gv;

/** All of it stands in strings, where JSON has another spelling for it. */
function inAnyQuotes(text: string): string {
  return text.replaceAll(QUOTING, (found) =>
    found
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
