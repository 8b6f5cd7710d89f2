/** @jsxImportSource hono/jsx */
import { KEY_HEADER } from "../accounts/first-action.ts";
import { createOptions } from "../actions/create-schema.ts";
import { bodyMemberJson, bodyMemberOf } from "../core/body.ts";
import { SNIPPET_CHARS_MAX } from "../core/limits.ts";
import { prettyPrint } from "../core/json.ts";
import { MASK, MASK_PATTERN } from "../receipts/mask-rules.ts";
import { publicRequest } from "../receipts/masked-action.ts";
import { Menu } from "../ui/controls.tsx";
import { UntrustedBlock } from "../ui/parts.tsx";
import type { SeenAction } from "../receipts/seen-action.ts";

/** A menu that shows the call as curl, TypeScript, Python and MCP, and how its target verifies it. */
export function AsCode({ action, baseUrl }: { readonly action: SeenAction; readonly baseUrl: string }) {
  const snippets = createSnippets(action, baseUrl);
  const [scheme] = /^https?:\/\//.exec(action.url) ?? [];
  return (
    <Menu label="As code" isAtEnd panel="panel as-code">
      <p class="quiet small">
        {snippets === null
          ? "This request is too long to show as code. Read it from the API and send it from a file."
          : "Creates the same request again. Replace the placeholders with your key and secrets."}
      </p>
      <div class="folds">
        {(snippets ?? []).map(({ name, text }, at) => (
          <details name="code" open={at === 0}>
            <summary>{name}</summary>
            <UntrustedSnippet label={name} text={text} />
          </details>
        ))}
        {scheme === undefined ? null : <Verification origin={scheme + action.host} baseUrl={baseUrl} />}
      </div>
    </Menu>
  );
}

function UntrustedSnippet({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div data-copy="">
      <UntrustedBlock label={label} text={text} />
    </div>
  );
}

function Verification({ origin, baseUrl }: { readonly origin: string; readonly baseUrl: string }) {
  const secret = `curl -s '${baseUrl}/v1/signing-secret?origin=${origin}' ${KEY_HEADER}`;
  const verify = `import { Webhook } from "standardwebhooks"; // npm install standardwebhooks

// Throws unless the call came from this Outgate, unchanged, within the last five minutes.
new Webhook(process.env.OUTGATE_SIGNING_SECRET).verify(rawBody, headers);`;
  return (
    <details name="code">
      <summary>Verify its signature</summary>
      <div class="stack">
        <p>
          Calls are signed according to Standard Webhooks, with a separate secret for <b class="untrusted">{origin}</b>.
          Read it with an owner key:
        </p>
        <UntrustedSnippet label="Read the secret" text={secret} />
        <p>Verify the raw bytes of each call with it:</p>
        <UntrustedSnippet label="Verify a call" text={verify} />
      </div>
    </details>
  );
}

/** Code that creates the same action, with placeholders for secrets and the key; null if too long. */
export function createSnippets(action: SeenAction, baseUrl: string) {
  // Snippets are pasted anywhere, so they are masked like a receipt.
  const masked = publicRequest(action, SNIPPET_CHARS_MAX);
  const json = masked === null ? null : createText(masked);
  if (json === null || json.length > SNIPPET_CHARS_MAX) return null;
  const url = `${baseUrl}/v1/actions`;
  return [
    {
      name: "curl",
      text: `curl -s '${url}' \\
  ${KEY_HEADER} -H 'Content-Type: application/json' \\
  -d '${json}'`,
    },
    {
      name: "TypeScript",
      text: `const response = await fetch("${url}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.OUTGATE_API_KEY}\`, "content-type": "application/json" },
  body: \`${json.replaceAll("\\", String.raw`\\`)}\`,
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

const PLACEHOLDER = "YOUR_SECRET";

/** The body of the create as JSON that can be quoted in a shell, Python or TypeScript. */
function createText(action: SeenAction): string {
  const { url, method, headers } = action;
  const call = { url, method, headers: headers === null ? undefined : namedSecrets(headers) };
  const member = bodyMemberOf(action);
  const body = member === null ? "" : `"${member}":${bodyMemberJson(action)}`;
  // Joins texts, so that the body's numbers stay as written.
  const members = [membersText(call), body, membersText(createOptions(action))].filter((text) => text !== "");
  return inAnyQuotes(prettyPrint(`{${members.join(",")}}`).replaceAll(MASK_PATTERN, PLACEHOLDER));
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
