/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { normalTarget } from "../domain/normal-target.ts";
import { UntrustedBlock } from "./foreign.tsx";
import { keyHeader } from "./key-words.ts";
import { createSnippets } from "./snippets.ts";

export interface CodeProps {
  readonly action: Action;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** The same call as a command or program, and what its target needs to verify it. */
export function Code({ action, baseUrl }: CodeProps) {
  const snippets = createSnippets(action, baseUrl);
  const target = normalTarget(action.url);
  return (
    <section class="card" aria-labelledby="code">
      <div>
        <h2 id="code">As code</h2>
        <p class="quiet small">
          The same request, asked for again. Put your key and secrets in place of the placeholders.
        </p>
      </div>
      {snippets === null ? (
        <p class="quiet">It is too long for a command. Read it over the API and send it from a file.</p>
      ) : null}
      <div class="folds">
        {(snippets ?? []).map(({ name, text }) => (
          <details name="code">
            <summary>{name}</summary>
            <div data-copy="">
              <UntrustedBlock label={name} text={text} />
            </div>
          </details>
        ))}
        {target === null ? null : <Verification origin={target.origin} baseUrl={baseUrl} />}
      </div>
    </section>
  );
}

/** How the receiver of this very call verifies it (decisions 6). */
function Verification({ origin, baseUrl }: { readonly origin: string; readonly baseUrl: string }) {
  const secret = `curl -s '${baseUrl}/v1/signing-secret?origin=${origin}' ${keyHeader("OWNER_KEY")}`;
  const verify = `import { Webhook } from "standardwebhooks"; // npm install standardwebhooks

// Throws unless the call came from this Outgate, unchanged, within the last five minutes.
new Webhook(process.env.OUTGATE_SIGNING_SECRET).verify(rawBody, headers);`;
  return (
    <details name="code">
      <summary>Verify its signature</summary>
      <div class="stack">
        <p>
          Calls are signed by Standard Webhooks, with a secret of their own for <b class="theirs">{origin}</b>. An owner
          key reads it:
        </p>
        <div data-copy="">
          <UntrustedBlock label="Read the secret" text={secret} />
        </div>
        <p>The target verifies the raw bytes of each call with it:</p>
        <div data-copy="">
          <UntrustedBlock label="Verify a call" text={verify} />
        </div>
      </div>
    </details>
  );
}
