import type { RequestSource } from "../accounts/device.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { Person } from "../accounts/person.ts";
import type { SessionRegistry, SessionWatch } from "../accounts/presence.ts";
import type { Resume } from "../accounts/resume.ts";
import { HTTP_STATUS } from "../contract/error.ts";
import { accountStopped } from "../domain/caller.ts";
import { DomainError, type ErrorCode } from "../domain/errors.ts";
import { confirmPasswordPage } from "../web/confirm-password.tsx";
import { CONFIRM_PASSWORD_FIELD, FORM_TOKEN_FIELD, SESSION_SECRET_FIELD } from "../web/form.tsx";
import { clientOf } from "./client.ts";
import type { OwnCookie } from "./cookie.ts";
import { headersOf } from "./errors.ts";
import { type Form, readForm } from "./form.ts";
import type { OwnOrigin } from "./own-origin.ts";
import { page } from "./page.ts";
import type { RequestContext } from "./visit.ts";

export type { Person };

/** Who visits, by the session's cookie; null: nobody who is logged in. Under /v1 and /mcp nobody asks. */
export type PersonOf = (context: RequestContext) => Promise<Person | null>;

/** The same for an answer that goes on, and that has to hear of the session's end. */
export type WatchOf = (context: RequestContext) => Promise<SessionWatch | null>;

/**
 * The form of a page that changes something for whoever is logged in, or shows a secret. Throws `forbidden` unless our own
 * page sent it within this very session: it has a field `form_token` with the person's; and where their account is stopped.
 * On plain http the cookie, and with it that token, are known to whatever listens on another port of the host: there it
 * throws `PasswordNeeded` unless the form has the session's secret (`accounts/session-secret.ts`) or the password.
 */
export type FormOf = (context: RequestContext, person: Person) => Promise<Form>;

export interface SessionDeps {
  readonly resume: Resume;
  readonly cookie: OwnCookie;
  readonly deviceCookie: OwnCookie;
  readonly ownOrigin: OwnOrigin;
  readonly peopleService: Pick<PeopleService, "sessionSecret">;
  readonly baseUrl: string;
  /** Whether an account is stopped: its people may look, and change nothing. */
  readonly isStopped: (accountId: string) => boolean;
}

/** What every page for people asks first. Whoever is found is written down in the visit, for its log line. */
export function createPersonOf({ resume, cookie }: Pick<SessionDeps, "resume" | "cookie">): PersonOf {
  return async (context) => {
    const token = cookie.read(context.request.headers);
    const resumed = token === null ? null : await resume(token);
    if (resumed === null) return null;
    const person = { ...resumed, caller: { ...resumed.caller, client: clientOf(context) } };
    context.caller = person.caller;
    return person;
  };
}

export function createWatchOf({
  watchSession,
  cookie,
}: Pick<SessionRegistry, "watchSession"> & Pick<SessionDeps, "cookie">): WatchOf {
  return async (context) => {
    const token = cookie.read(context.request.headers);
    const watched = token === null ? null : await watchSession(token);
    if (watched !== null) context.caller = watched.caller;
    return watched;
  };
}

export function createFormOf(
  deps: Pick<SessionDeps, "ownOrigin" | "peopleService" | "deviceCookie" | "baseUrl" | "isStopped">,
): FormOf {
  const { sessionSecret } = deps.peopleService;
  const tokenFormOf = createTokenFormOf(deps);
  const isHttps = deps.baseUrl.startsWith("https:");
  return async (context, person) => {
    const form = await tokenFormOf(context, person);
    const { accountId } = person.caller;
    if (deps.isStopped(accountId)) throw accountStopped(accountId);
    const source = sourceOf(context, deps, form);
    if (isHttps || sessionSecret.isRight(person, source.sessionSecret)) return form;
    const password = form.get(CONFIRM_PASSWORD_FIELD);
    if (password === undefined) throw new PasswordNeeded(form);
    await sessionSecret.confirm(person, password, source).catch((error: unknown) => {
      throw error instanceof DomainError && ASKED_AGAIN.has(error.code) ? new PasswordNeeded(form, error) : error;
    });
    return form;
  };
}

/** The same without that: for a form that is worth nothing to whoever has only the cookie, as one that asks for the password. */
export function createTokenFormOf({ ownOrigin }: Pick<SessionDeps, "ownOrigin">): FormOf {
  return async (context, person) => {
    ownOrigin.require(context.request.headers);
    const form = await readForm(context);
    checkFormToken(form, person);
    return form;
  };
}

/** Nothing shows that this form was sent by our own page. Whoever answers the person asks for the password. */
export class PasswordNeeded extends Error {
  override readonly name = "PasswordNeeded";
  readonly form: Form;
  /** What was wrong with the password that it had; null: it had none. */
  readonly problem: DomainError | null;

  constructor(form: Form, problem: DomainError | null = null) {
    super("The form has neither the secret of its session nor the password.");
    this.form = form;
    this.problem = problem;
  }
}

const ASKED_AGAIN: ReadonlySet<ErrorCode> = new Set(["invalid_credentials", "rate_limited", "unavailable"]);

/** Asks, and keeps what was sent. */
export function askForPassword(context: RequestContext, user: Person, { form, problem }: PasswordNeeded): Response {
  context.errorCode = problem?.code ?? "forbidden";
  const fields = [...form].filter(([name]) => !NOT_KEPT.has(name));
  const path = context.path + (context.search === "" ? "" : `?${context.search}`);
  const html = confirmPasswordPage({ user, path, fields, problem: problem?.message ?? null });
  const headers = problem === null ? {} : headersOf(problem);
  return page("own", html, { status: HTTP_STATUS[context.errorCode], headers });
}

/** They stand on the page anew, or nowhere. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  FORM_TOKEN_FIELD,
  SESSION_SECRET_FIELD,
  CONFIRM_PASSWORD_FIELD,
  "email",
  "password",
  "current_password",
]);

/** Where somebody comes from who wants in; with the form that a page sent, if one did. */
export function sourceOf(
  context: RequestContext,
  { deviceCookie }: Pick<SessionDeps, "deviceCookie">,
  form: Form | null,
): RequestSource {
  return {
    client: clientOf(context),
    deviceToken: deviceCookie.read(context.request.headers),
    sessionSecret: form === null ? null : secretIn(form),
  };
}

/** 256 bits as hex, as our script makes them; null for all else. */
function secretIn(form: Form): string | null {
  const secret = form.get(SESSION_SECRET_FIELD) ?? "";
  return /^[0-9a-f]{64}$/.test(secret) ? secret : null;
}

/** Throws `forbidden` unless the form was made for this session: a page of before the last log-in is one of another. */
export function checkFormToken(form: Form, person: Person): void {
  if (isSame(form.get(FORM_TOKEN_FIELD) ?? "", person.formToken)) return;
  throw new DomainError("forbidden", "This page is from before you logged in. Load it again and repeat what you did.");
}

/** Where a person logs in and comes back from. `next` is a path of ours. */
export function logInPath(next: string): string {
  return `/login?${new URLSearchParams({ next }).toString()}`;
}

/** In the same time wherever they differ. */
function isSame(given: string, right: string): boolean {
  let difference = given.length ^ right.length;
  for (let at = 0; at < right.length; at += 1) difference |= given.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
