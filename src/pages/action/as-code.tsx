/** @jsxImportSource hono/jsx */
import { createCodeSamples } from "../../actions/as-code.ts";
import { curlSample } from "../../api/code-samples.ts";
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
