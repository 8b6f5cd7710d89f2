/** @jsxImportSource hono/jsx */
import { ERROR_MEANING, HTTP_STATUS } from "../contract/error.ts";
import { ERROR_CODES, type ErrorCode } from "../domain/errors.ts";

/** What a program or its author does about each. */
const REMEDIES: Readonly<Record<ErrorCode, string>> = {
  missing_body: "Send a JSON object as the body.",
  validation_error: "Mend every field that details names; they are all there at once.",
  missing_field: "Say where the call goes: url.",
  invalid_request:
    "Send JSON in UTF-8, at most 64 levels deep and with at most 10,000 members; give a reason where details names it.",
  invalid_query: "Mend the parameters that details names. A cursor is used with the filters that it came with.",
  invalid_content_type: "Send Content-Type: application/json, and no Content-Encoding.",
  invalid_url:
    "Send an http or https URL with a public host. A private one is listed by whoever runs the server, in ALLOWED_PRIVATE_TARGETS.",
  invalid_sync: "Leave sync out, and wait with GET /v1/actions/{id}?wait= or a callback.",
  unauthorized: "Send Authorization: Bearer and a key that was not revoked. An owner makes one at /keys.",
  invalid_credentials: "Look at both again. Who has lost the password is given a link by whoever runs the server.",
  forbidden: "Use a key that may do it; the message says which, or from when the request may be asked for again.",
  not_found: "Look at the id and at the account of the key: of other accounts nothing is told.",
  method_not_allowed: "Use one of the methods in the header Allow.",
  not_cancellable: "Nothing: it is being sent, has ended, or is in another run. The action says how.",
  not_approvable: "Nothing: somebody was faster, it never waited, or it is in another run. The action says who.",
  not_retryable:
    "Wait for its end; only what failed or was cancelled is sent again, and only while no other holds its dedupe. After a rejection the message says from when.",
  too_many_held: "Wait until some of them are approved or rejected, or cancel those that are not needed any more.",
  email_taken: "Log in with it, or sign up with another address.",
  too_many_keys: "Revoke a key that is not used any more: GET /v1/keys says when each was used last.",
  payload_too_large: "Send at most 1 MB.",
  rate_limited: "Wait as many seconds as Retry-After says, then go on more slowly.",
  internal_error: "Try again with the same Idempotency-Key. If it stays, tell whoever runs the server the request_id.",
  unavailable: "Try again after Retry-After, with the same Idempotency-Key: nothing was stored, or it is found again.",
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

/** Every error of the API: what it means, and what to do. */
export function ErrorsGuide() {
  return (
    <>
      <h1>Errors</h1>
      <p>
        Every error has the same body, on every path. <code>code</code> is for programs and does not change;{" "}
        <code>message</code> is for people and may. <code>request_id</code> finds the request in the server’s log; it is
        in the header <code>X-Request-Id</code> of every answer, too.
      </p>
      <pre class="code">{EXAMPLE}</pre>
      <dl class="codes">
        {ERROR_CODES.map((code) => (
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
      <p>
        400, 401, 403, 404, 405, 409 and 413 say the same when they are asked again; 429, 500 and 503 pass. An action
        that failed is no error of the API: it is read with 200, and its <code>error</code> says why.
      </p>
    </>
  );
}
