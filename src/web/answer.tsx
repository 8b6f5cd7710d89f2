/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { UntrustedBlock } from "./foreign.tsx";
import { shownAnswer } from "./shown.ts";

/** What the target answered at the newest attempt; nothing before there was one. */
export function Answer({ action }: { readonly action: Action }) {
  const { result } = action;
  if (result === null) return null;
  const { responseCode, responseBody, responseTruncated, lastError } = result;
  const answer = responseBody === null ? null : shownAnswer(responseBody);
  return (
    <section class="card" aria-labelledby="response">
      <h2 id="response">Response</h2>
      <p>{responseCode === null ? (lastError ?? "No answer came.") : `Status ${responseCode}`}</p>
      {answer === null && responseCode !== null ? <p class="quiet">It had no body.</p> : null}
      {answer === null ? null : (
        <div class="stack">
          <h3>
            Body{" "}
            <span class="aside">
              {answer.kind}
              {responseTruncated ? ", cut: it was longer than what is kept" : ""}
            </span>
          </h3>
          {answer.text === null ? (
            <p class="quiet">Bytes that are no text are not shown.</p>
          ) : (
            <UntrustedBlock label="Body of the response" text={answer.text} />
          )}
        </div>
      )}
    </section>
  );
}
