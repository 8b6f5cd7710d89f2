import type { RequestSource, Person, SessionRegistry, SessionWatch, Resume } from "../accounts/sessions.ts";
import type { PeopleService } from "../accounts/people.ts";
import { HTTP_STATUS } from "../api/errors.ts";
import { accountStopped } from "../accounts/roles.ts";
import { DomainError, type ErrorCode } from "../api/domain-error.ts";
import { confirmPasswordPage } from "../pages/sign-in.tsx";
import { CONFIRM_PASSWORD_FIELD, FORM_TOKEN_FIELD, SESSION_SECRET_FIELD } from "../pages/form.tsx";
import { clientOf, type OwnOrigin } from "./own-origin.ts";
import { headersOf } from "./errors.ts";
import { type Form, readForm } from "./form.ts";
import { page, seeOther } from "./page.ts";
import type { RequestContext } from "./context.ts";
import {
  DEVICE_MS_MAX,
  SESSION_MS_MAX,
  FLASH_COOKIE_CHARS_MAX,
  FLASH_COOKIES_MAX,
  FLASH_MS_MAX,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secrets } from "../crypto/types.ts";
import { type Params, pageRoute, type Route } from "./router.ts";

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

interface SessionDeps {
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
class PasswordNeeded extends Error {
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
function askForPassword(context: RequestContext, user: Person, { form, problem }: PasswordNeeded): Response {
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
function logInPath(next: string): string {
  return `/login?${new URLSearchParams({ next }).toString()}`;
}

/** In the same time wherever they differ. */
function isSame(given: string, right: string): boolean {
  let difference = given.length ^ right.length;
  for (let at = 0; at < right.length; at += 1) difference |= given.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}

/** A cookie of ours: how it is read, set and taken back. */
export interface OwnCookie {
  /** The value that a request brings along; null: none that could be one of ours. */
  read(headers: Headers): string | null;
  /** Values of `Set-Cookie`. */
  set(value: string): string;
  clear(): string;
}

/** 256 bits as hex. */
const SESSION = /^[0-9a-f]{64}$/;

const DEVICE = /^[A-Za-z0-9_.-]{1,256}$/;

/** Who is logged in. */
export function createSessionCookie(baseUrl: string): OwnCookie {
  return ownCookie({ baseUrl, name: "outgate_session", form: SESSION, lastsMs: SESSION_MS_MAX });
}

/** Of a browser in which somebody has logged in before. It outlives the session, and lets nobody in. */
export function createDeviceCookie(baseUrl: string): OwnCookie {
  return ownCookie({ baseUrl, name: "outgate_device", form: DEVICE, lastsMs: DEVICE_MS_MAX });
}

interface CookieProps {
  readonly baseUrl: string;
  readonly name: string;
  readonly form: RegExp;
  readonly lastsMs: number;
}

/** With https the cookie never goes out in clear, and its prefix keeps other hosts of the domain from setting it. */
function ownCookie({ baseUrl, name: bare, form, lastsMs }: CookieProps): OwnCookie {
  const isSecure = baseUrl.startsWith("https:");
  const name = isSecure ? `__Host-${bare}` : bare;
  const ending = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    read(headers) {
      const value = cookieIn(headers, name) ?? "";
      return form.test(value) ? value : null;
    },
    set: (value) => `${name}=${value}${ending}; Max-Age=${lastsMs / 1_000}`,
    clear: () => `${name}=${ending}; Max-Age=0`,
  };
}

/** The value of the first cookie with this name; null: there is none. */
function cookieIn(headers: Headers, name: string): string | null {
  const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

export interface FlashDeps {
  readonly secrets: Pick<Secrets, "open" | "seal">;
  readonly clock: Pick<Clock, "now">;
  readonly baseUrl: string;
}

/**
 * What a form has brought about, for the page that the browser is sent to afterwards: so that loading it again repeats
 * nothing, and a secret is shown without being in a URL. It is kept in the browser, sealed for one path and one session,
 * for `FLASH_MS_MAX`.
 */
export interface Flash {
  /** A redirect to a path of ours that is told this value. Throws `FlashTooLarge`. */
  redirect(person: Pick<Person, "formToken">, path: string, value: object): Response;
  /**
   * The same of what is secret, shown by `show`. On plain http whatever listens on another port of the host gets this
   * cookie too, so it stands in the answer to the form itself.
   */
  tellSecret(
    person: Pick<Person, "formToken">,
    path: string,
    value: object,
    show: () => Response | Promise<Response>,
  ): Promise<Response>;
  /** What this page was told; null: nothing, or it is too late, or another session was. */
  read(context: RequestContext, person: Pick<Person, "formToken">): unknown;
}

/** It does not fit into `FLASH_COOKIES_MAX` cookies. */
export class FlashTooLarge extends Error {
  override readonly name = "FlashTooLarge";
}

const NAME = "outgate_flash";

export function createFlash({ secrets, clock, baseUrl }: FlashDeps): Flash {
  const isSecure = baseUrl.startsWith("https:");
  // With a path of its own it can't have the prefix of the session's cookie.
  const nameOf = (at: number) => `${isSecure ? "__Secure-" : ""}${NAME}_${at}`;
  const placeOf = (path: string, { formToken }: Pick<Person, "formToken">) => {
    return { table: "flash", row: path, column: formToken };
  };
  const redirect: Flash["redirect"] = (person, path, value) => {
    const plain = Bun.deflateSync(JSON.stringify({ expiresMs: clock.now().getTime() + FLASH_MS_MAX, value }));
    const parts = partsOf(secrets.seal(plain, placeOf(path, person)));
    const ending = `; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}; Max-Age=${FLASH_MS_MAX / 1_000}`;
    const answer = seeOther("own", path);
    parts.forEach((part, at) => answer.headers.append("set-cookie", `${nameOf(at)}=${part}${ending}`));
    return answer;
  };
  return {
    redirect,
    tellSecret: async (person, path, value, show) => (isSecure ? redirect(person, path, value) : show()),
    read({ request, path }, person) {
      const [count = "", first = ""] = (cookieIn(request.headers, nameOf(0)) ?? "").split("-");
      if (!/^[1-9]$/.test(count) || Number(count) > FLASH_COOKIES_MAX) return null;
      const rest = Array.from(
        { length: Number(count) - 1 },
        (_, at) => cookieIn(request.headers, nameOf(at + 1)) ?? "",
      );
      try {
        const plain = Bun.inflateSync(new Uint8Array(secrets.open([first, ...rest].join(""), placeOf(path, person))));
        // Safe: sealed above.
        const told = JSON.parse(new TextDecoder().decode(plain)) as { expiresMs: number; value: unknown };
        return told.expiresMs > clock.now().getTime() ? told.value : null;
      } catch {
        return null;
      }
    },
  };
}

/** The first tells how many there are, since those of an answer before may be longer. */
function partsOf(sealed: string): readonly string[] {
  const count = Math.ceil(sealed.length / FLASH_COOKIE_CHARS_MAX);
  if (count > FLASH_COOKIES_MAX) throw new FlashTooLarge(`${sealed.length} characters are too many for cookies.`);
  const at = (part: number) => sealed.slice(part * FLASH_COOKIE_CHARS_MAX, (part + 1) * FLASH_COOKIE_CHARS_MAX);
  return Array.from({ length: count }, (_, part) => (part === 0 ? `${count}-${at(0)}` : at(part)));
}

/** Answers whoever is logged in. */
export type AnswerPerson = (context: RequestContext, person: Person, params: Params) => Response | Promise<Response>;

/** A page for people: who is not logged in is led to where they can, and back. */
export function personPage(personOf: PersonOf, method: "GET" | "POST", path: string, answer: AnswerPerson): Route {
  return pageRoute("own", method, path, async (context, params) => {
    const person = await personOf(context);
    if (person === null) {
      return seeOther("own", logInPath(context.path + (context.search === "" ? "" : `?${context.search}`)));
    }
    try {
      return await answer(context, person, params);
    } catch (error) {
      if (error instanceof PasswordNeeded) return askForPassword(context, person, error);
      throw error;
    }
  });
}
