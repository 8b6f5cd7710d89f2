import Type from "typebox";
import { type Caller, viewOf } from "../core/roles.ts";
import { ATTEMPT_BODY_BYTES_MAX, ATTEMPTS_KEPT } from "../core/limits.ts";
import { readHeaders } from "../receipts/response-headers.ts";
import { maskedAttempts } from "../receipts/see.ts";
import { dateTime, nullable, plainText, quantity, choice } from "../api/schema-helpers.ts";
import type { Action } from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import { responseBody, responseCode } from "../api/action-schemas.ts";
import { TimelineItem } from "../api/list-schemas.ts";

const Header = Type.Object(
  {
    name: plainText("Name of the header, in lower case.", "content-type"),
    value: plainText("Its value; •••• where it may be a secret, which is not stored.", "application/json"),
  },
  { title: "ResponseHeader", description: "A header of a target's answer." },
);

const made = TimelineItem.properties;

const Attempt = Type.Object(
  {
    run: made.run,
    attempt: Type.Integer({ minimum: 1, description: "Its number in the run.", examples: [1] }),
    at: dateTime("When it ended."),
    outcome: choice(["answered", "not_sent", "unknown"], "What is known of it, as in the timeline.", "answered"),
    response_code: responseCode(503),
    error: nullable(plainText("Why it failed; null: it succeeded.", "The target answered with status 503.")),
    duration_ms: nullable(quantity("How long it took.", 41)),
    location: nullable(
      plainText("Target of a redirect. Redirects are never followed.", "https://api.example.com/moved"),
    ),
    response_headers: Type.Array(Header, {
      description: "The headers of the answer, without values that may be secret.",
    }),
    response_body: responseBody("Service Unavailable"),
    response_truncated: Type.Optional(
      Type.Literal(true, {
        description: `The answer's body was longer than what is kept, ${ATTEMPT_BODY_BYTES_MAX} bytes of it at most.`,
        examples: [true],
      }),
    ),
  },
  { title: "Attempt", description: "An attempt that has ended, and what came back of it." },
);

export const AttemptList = Type.Object(
  { data: Type.Array(Attempt, { description: `The newest ${ATTEMPTS_KEPT} attempts, oldest first.` }) },
  { title: "AttemptList", description: "The newest attempts of an action." },
);

/** The attempts as JSON text, masked as far as the caller requires. */
export async function serializeAttempts(
  caller: Caller,
  action: Action,
  attempts: readonly PastAttempt[],
): Promise<string> {
  const view = viewOf(caller, action);
  const shown = view === "whole" ? attempts : await maskedAttempts(action, attempts, view);
  return `{"data":[${shown.map(attemptJson).join(",")}]}`;
}

/** The body is inserted as it is stored: parsing would change numbers. */
function attemptJson({ run, attempt, at, made: event, ...response }: PastAttempt): string {
  const members = JSON.stringify({
    run,
    attempt,
    at: at.toISOString(),
    outcome: event.outcome,
    response_code: event.response_code,
    error: event.error,
    duration_ms: event.duration_ms,
    location: event.location,
    response_headers: readHeaders(response.responseHeaders).map(([name, value]) => ({ name, value })),
  });
  const truncated = response.responseTruncated ? `,"response_truncated":true` : "";
  return `${members.slice(0, -1)},"response_body":${response.responseBody ?? "null"}${truncated}}`;
}
