/** @jsxImportSource hono/jsx */
import { maskedAction } from "../receipts/masked-action.ts";
import type { Action } from "../actions/action.ts";
import { RETRIES_DEFAULT, SNIPPET_CHARS_MAX } from "../config/limits.ts";
import { MASK, MASK_PATTERN } from "../receipts/mask-rules.ts";
import { keyHeader } from "./words.ts";
import { prettyPrint } from "../json/json.ts";

export interface SnippetProps {
  /** What it is for. */
  readonly title: string;
  readonly text: string;
}

/** A trusted text with a copy button. */
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

export interface Snippet {
  readonly name: string;
  readonly text: string;
}

/** Code that creates the same action again, with placeholders for secrets and the key. Null if it is too long. */
export function createSnippets(action: Action, baseUrl: string): readonly Snippet[] | null {
  // Skips the masking of a body that is too long anyway.
  if ((action.body?.length ?? 0) > SNIPPET_CHARS_MAX) return null;
  // Snippets are pasted anywhere, so they are masked like a receipt.
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

/** `String.raw` would escape non-ASCII letters in Bun 1.4.5. */
function inTemplate(text: string): string {
  return text.replaceAll("\\", String.raw`\\`);
}

const PLACEHOLDER = "YOUR_SECRET";

/** The body of the create as JSON that can be quoted in a shell, Python or TypeScript. */
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

/** Each secret header gets its own placeholder. */
function namedSecrets(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    value.startsWith(MASK) ? `YOUR_${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}` : value,
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Characters that end a quoted string in a shell, Python or TypeScript, and invisible ones. */
const QUOTING = /['`]|\$(?=\{)|[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\n]]/gv;

/** These characters occur only inside JSON strings, where they can be escaped. */
function inAnyQuotes(text: string): string {
  return text.replaceAll(QUOTING, (found) =>
    found
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
