/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import { ERROR_CODES, type ErrorCode } from "../../core/domain-error.ts";
import { ERROR_MEANING, HTTP_STATUS } from "../../api/errors.ts";
import { codeBlock } from "./highlight.ts";
import { DocsSubheading } from "./api-fields.tsx";
import type { DocsHeading, DocsSection } from "./markdown.ts";

/** What to do about each error. */
const REMEDIES: Readonly<Record<ErrorCode, string>> = {
  missing_body: "Send a JSON object as the body.",
  validation_error: "Fix every field listed in details.",
  missing_field: "Set url to the address to call.",
  invalid_request: "Send JSON in UTF-8 with at most 64 levels and 10,000 members. If details names reason, add one.",
  invalid_query: "Fix the parameters listed in details. Use a cursor only with the filters it was returned for.",
  invalid_content_type: "Send Content-Type: application/json, and no Content-Encoding.",
  invalid_url:
    "Send an http or https URL with a public host. To call a private host, add it to ALLOWED_PRIVATE_TARGETS on the server. List the host of a callback where the message asks for it.",
  invalid_sync: "Omit sync, and use GET /v1/actions/{id}?wait= or a callback instead.",
  unauthorized: "Send Authorization: Bearer with a key that is not revoked. Owners create keys at /keys.",
  invalid_credentials: "Check both. If the password is lost, the server’s operator can create a reset link.",
  forbidden: "Use a key with the required role or scope. The message says which, or when you can request it again.",
  not_found: "Check the ID, and that the key belongs to the same account.",
  method_not_allowed: "Use one of the methods in the Allow header.",
  not_cancellable: "Read the action: it is being sent, has ended, or is in another run.",
  not_approvable:
    "Read the action or the request: it was already decided, never needed approval, or is in another run.",
  not_retryable:
    "Retry only failed or cancelled actions, while no other action uses the same dedupe value. After a rejection, the message says when you can retry.",
  too_many_jobs: "Wait for a bulk job to end, or stop one.",
  too_many_held:
    "Wait until some actions awaiting approval are approved or rejected, or cancel those you no longer need.",
  email_taken: "Log in with it, or sign up with another address.",
  too_many_keys: "Revoke a key that you no longer use. GET /v1/keys shows when each key was last used.",
  last_owner: "Make someone else an owner first.",
  payload_too_large: "Send at most 1 MB (16 kB to /auth), with a Content-Length or in chunks of 1 kB or more.",
  rate_limited: "Wait for the number of seconds in Retry-After, then send requests more slowly.",
  internal_error:
    "Try again with the same Idempotency-Key. If the error persists, report the request_id to the server’s operator.",
  unavailable: "Try again after Retry-After, with the same Idempotency-Key. The action is never stored twice.",
};

const EXAMPLE = JSON.stringify(
  {
    error: {
      code: "validation_error",
      message: "The request has fields that are not valid.",
      request_id: "req_01kjwa5v00e7v8c9x2m4n6p8qr",
      details: [{ field: "retries", message: "Must be an integer.", code: "invalid" }],
    },
  },
  null,
  2,
);

type Status = (typeof HTTP_STATUS)[ErrorCode];

const BY_STATUS = [...Map.groupBy(ERROR_CODES, (code) => HTTP_STATUS[code])].toSorted(([one], [other]) => one - other);

const STATUS_NAMES: Readonly<Record<Status, string>> = {
  400: "400 Bad request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not found",
  405: "405 Method not allowed",
  409: "409 Conflict",
  413: "413 Content too large",
  429: "429 Too many requests",
  500: "500 Internal error",
  503: "503 Unavailable",
};

/** The headings that the page links to beside its text. */
export const ERROR_HEADINGS: readonly DocsHeading[] = BY_STATUS.map(([status]) => ({
  id: `status-${status}`,
  text: STATUS_NAMES[status],
  depth: 2,
}));

export function ErrorsGuide() {
  return (
    <>
      <h1>Errors</h1>
      <p>
        Every error has the same body, on every path. <code>code</code> is for programs and does not change;{" "}
        <code>message</code> is for people and can change. <code>request_id</code> identifies the request in the
        server’s log. Every response also has it in the <code>X-Request-Id</code> header.
      </p>
      {raw(codeBlock(EXAMPLE, "json", "Response"))}
      <p>
        Repeating a request doesn’t help after 400, 401, 403, 404, 405, 409 or 413. After 429, 500 and 503, try again
        later. A failed action is not an API error: it is returned with status 200 or 201, and its <code>error</code>{" "}
        field says why it failed.
      </p>
      {BY_STATUS.map(([status, codes]) => (
        <>
          <DocsSubheading id={`status-${status}`}>{STATUS_NAMES[status]}</DocsSubheading>
          <dl class="codes stack">
            {codes.map((code) => (
              <div id={code}>
                <dt>
                  <code>{code}</code> <span class="quiet">{HTTP_STATUS[code]}</span>
                </dt>
                <dd>
                  {ERROR_MEANING[code]} <span class="quiet">{REMEDIES[code]}</span>
                </dd>
              </div>
            ))}
          </dl>
        </>
      ))}
    </>
  );
}

/** A section for each code, for the search. */
export const ERROR_SECTIONS: readonly DocsSection[] = ERROR_CODES.map((code) => ({
  id: code,
  text: code,
  depth: 3,
  body: `${HTTP_STATUS[code]} ${ERROR_MEANING[code]} ${REMEDIES[code]}`,
}));
