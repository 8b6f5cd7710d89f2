/** @jsxImportSource hono/jsx */
import { createOptions } from "../../actions/create-schema.ts";
import { codeSamples, curlSample, type QuotableJson, quotableJson } from "../../api/code-samples.ts";
import { bodyMemberJson, bodyMemberOf } from "../../core/body.ts";
import { CODE_SAMPLE_CHARS_MAX } from "../../core/limits.ts";
import { prettyPrint } from "../../core/json.ts";
import { MASK, MASK_PATTERN } from "../../receipts/mask-rules.ts";
import { publicRequest } from "../../receipts/masked-action.ts";
import { Menu } from "../../ui/controls.tsx";
import { UntrustedBlock } from "../../ui/parts.tsx";
import type { SeenAction } from "../../receipts/seen-action.ts";

/** A menu that shows the call as curl, TypeScript, Python and MCP, and how its target verifies it. */
export function AsCode({ action, baseUrl }: { readonly action: SeenAction; readonly baseUrl: string }) {
  const samples = createCodeSamples(action, baseUrl);
  const [scheme] = /^https?:\/\//.exec(action.url) ?? [];
  return (
    <Menu label="As code" isAtEnd panel="panel as-code">
      <p class="quiet small">
        {samples === null
          ? "This request is too long to show as code. Read it from the API and send it from a file."
          : "Creates the same request again. Replace the placeholders with your key and secrets."}
      </p>
      <div class="folds">
        {(samples ?? []).map(({ label, text }, at) => (
          <details name="code" open={at === 0}>
            <summary>{label}</summary>
            <UntrustedCode label={label} text={text} />
          </details>
        ))}
        {scheme === undefined ? null : <Verification origin={scheme + action.host} baseUrl={baseUrl} />}
      </div>
    </Menu>
  );
}

function UntrustedCode({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div data-copy="">
      <UntrustedBlock label={label} text={text} />
    </div>
  );
}

function Verification({ origin, baseUrl }: { readonly origin: string; readonly baseUrl: string }) {
  const secret = curlSample({ method: "GET", url: `${baseUrl}/v1/signing-secret?origin=${origin}` });
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
        <UntrustedCode label="Read the secret" text={secret} />
        <p>Verify the raw bytes of each call with it:</p>
        <UntrustedCode label="Verify a call" text={verify} />
      </div>
    </details>
  );
}

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
  const member = bodyMemberOf(action);
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
