import type { Entered } from "../accounts/new-session.ts";
import { HTTP_STATUS } from "../contract/error.ts";
import { DomainError, type ErrorCode } from "../domain/errors.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../domain/limits.ts";
import type { Log } from "../ports/log.ts";
import { type Typed, UNTYPED } from "../web/credentials.tsx";
import type { OwnCookie } from "./cookie.ts";
import { headersOf } from "./errors.ts";
import type { Form } from "./form.ts";
import { page } from "./page.ts";
import type { RequestContext } from "./visit.ts";

/** What a browser in which somebody logs in is given. */
export interface EntryCookies {
  readonly cookie: OwnCookie;
  readonly deviceCookie: OwnCookie;
}

/** Lets somebody in by this answer; the visit's log line says who. */
export function startSession(
  context: RequestContext,
  entered: Entered,
  { cookie, deviceCookie }: EntryCookies,
  answer: Response,
) {
  context.caller = entered.person.caller;
  answer.headers.append("set-cookie", cookie.set(entered.sessionToken));
  answer.headers.append("set-cookie", deviceCookie.set(entered.deviceToken));
  return answer;
}

/** For whoever reads the log to find out who did what; neither password is in it. */
export function tellNewPassword({ name, client }: RequestContext, { person: { caller } }: Entered, log: Log): void {
  const { accountId, personId } = caller;
  log.info("password.changed", { request_id: name.id, account_id: accountId, person_id: personId, client });
}

/** What was typed into a form of address and password, for the contract to check. */
export function credentialsIn(form: Form): unknown {
  return { email: form.get("email") ?? null, password: form.get("password") ?? null };
}

/** What a person can mend by typing again. */
const MENDABLE: ReadonlySet<ErrorCode> = new Set([
  "validation_error",
  "email_taken",
  "invalid_credentials",
  "rate_limited",
  "unavailable",
]);

/** Shows a form again that was not taken, with what is wrong and all that was typed but the password. Throws every other error. */
export function askAgain(
  context: RequestContext,
  error: unknown,
  form: Form,
  show: (typed: Typed) => string,
): Response {
  if (!(error instanceof DomainError) || !MENDABLE.has(error.code)) throw error;
  context.errorCode = error.code;
  const typed = { ...UNTYPED, email: form.get("email") ?? "", ...problemOf(error) };
  return page("own", show(typed), { status: HTTP_STATUS[error.code], headers: headersOf(error) });
}

const LENGTH = `Has ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;
const PROBLEMS: Readonly<Record<string, Typed["problems"]>> = {
  email: { email: "Enter one address, like ann@example.com." },
  password: { password: LENGTH },
  current_password: { current_password: LENGTH },
};

function problemOf({ code, message, issues }: DomainError): Partial<Typed> {
  if (code === "email_taken") return { problems: { email: message } };
  if (code !== "validation_error") return { message };
  return { problems: Object.assign({}, ...issues.map(({ field }) => PROBLEMS[field])) as Typed["problems"] };
}
