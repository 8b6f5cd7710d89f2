import { confirmPasswordPage } from "../ui/confirm-password.tsx";
import type { Person, RequestSource, SessionWatch, Sessions, SessionSecret, StartedSession } from "../core/session.ts";
import { errorHeaders, HTTP_STATUS } from "../api/errors.ts";
import { accountStopped } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { CONFIRM_EMAIL_FIELD, CONFIRM_PASSWORD_FIELD, FORM_TOKEN_FIELD, SESSION_SECRET_FIELD } from "../ui/form.tsx";
import { type Form, readForm } from "./body.ts";
import { pathAndQuery, type RequestContext } from "./request.ts";
import { clientNetwork } from "../core/addresses.ts";
import { createOwnOrigin } from "./own-origin.ts";
import { EarlyAnswer } from "./errors.ts";
import { page } from "./response.ts";
import { BROWSER_CHARS_MAX, DEVICE_MS_MAX, SESSION_MS_MAX, NEXT_CHARS_MAX } from "../core/limits.ts";
import { isSame } from "../crypto/tokens.ts";
import { createPageRoutes } from "./operation.ts";

export type { Person };

/** The person who is logged in by the session cookie; null: nobody. Not used under /v1 and /mcp. */
export type FindPerson = (context: RequestContext) => Promise<Person | null>;

/** The session of a request, watched for an event stream that must end with it; null: nobody is logged in. */
export type FindWatch = (context: RequestContext) => Promise<SessionWatch | null>;

/**
 * Reads the form of a page that changes something or shows a secret. Throws `forbidden` unless one of our pages sent it in this
 * session (its field `form_token` must be the session's), or if the account is stopped. On plain http, any server on another
 * port of the host knows the cookie and so that token: there, it throws an `EarlyAnswer` that asks for the password, unless the
 * form has it or the session's secret (`PeopleService.sessionSecret`). Call it outside of any `try`.
 */
type ReadCheckedForm = (context: RequestContext, person: Person) => Promise<Form>;

interface SessionDeps {
  readonly sessionService: Sessions;
  readonly peopleService: { readonly sessionSecret: SessionSecret };
  readonly baseUrl: string;
  /** Whether an account is stopped: its people can read, but not change anything. */
  readonly isStopped: (accountId: string) => boolean;
}

/** Sessions and CSRF checks, which every page for people needs. */
export function createSessions({ sessionService, peopleService: { sessionSecret }, baseUrl, isStopped }: SessionDeps) {
  const ownOrigin = createOwnOrigin({ baseUrl });
  const cookie = createSessionCookie(baseUrl);
  /** Marks a browser in which somebody has logged in before, for the login throttle. It authenticates nobody. */
  const deviceCookie = createOwnCookie(baseUrl, "outgate_device", DEVICE, DEVICE_MS_MAX);
  const isHttps = baseUrl.startsWith("https:");

  const resumed = async ({ request }: RequestContext): Promise<Person | null> => {
    const token = cookie.read(request.headers);
    return token === null ? null : sessionService.resume(token);
  };
  /** A form can arrive slowly: its person may have left the account or got another role since its first byte came. */
  const requireSession = async (context: RequestContext, { caller, role }: Person): Promise<void> => {
    const now = await resumed(context);
    if (now?.caller.accountId === caller.accountId && now.role === role) return;
    throw new DomainError("forbidden", "Your session has ended, or your role has changed. Nothing was changed.");
  };

  /** Only the CSRF checks, for forms that ask for the password themselves. */
  const readTokenForm: ReadCheckedForm = async (context, person) => {
    ownOrigin.require(context.request.headers);
    const form = await readForm(context);
    checkFormToken(form, person);
    await requireSession(context, person);
    return form;
  };
  const confirmed = async (context: RequestContext, person: Person, form: Form): Promise<Form> => {
    const source = requestSource(context, { deviceCookie }, form);
    if (isHttps || sessionSecret.isRight(person, source.sessionSecret)) return form;
    const password = form.get(CONFIRM_PASSWORD_FIELD);
    if (password === undefined) throw askForPassword(context, person, form, null);
    await sessionSecret.confirm(person, password, source).catch((error: unknown) => {
      throw error instanceof DomainError ? askForPassword(context, person, form, error) : error;
    });
    await requireSession(context, person);
    return form;
  };
  return {
    ownOrigin,
    cookie,
    deviceCookie,
    /** Also sets `context.caller`, for the log line. */
    findPerson: async (context: RequestContext): Promise<Person | null> => {
      const found = await resumed(context);
      if (found === null) return null;
      const person = { ...found, caller: { ...found.caller, client: clientNetwork(context.client) } };
      context.caller = person.caller;
      return person;
    },
    findWatch: async (context: RequestContext): Promise<SessionWatch | null> => {
      const token = cookie.read(context.request.headers);
      const watched = token === null ? null : await sessionService.watchSession(token);
      if (watched !== null) context.caller = watched.caller;
      return watched;
    },
    readCheckedForm: async (context: RequestContext, person: Person): Promise<Form> => {
      const form = await readTokenForm(context, person);
      const { accountId } = person.caller;
      if (isStopped(accountId)) throw accountStopped(accountId);
      return confirmed(context, person, form);
    },
    /** Also allowed if the account is stopped, for what concerns only the person. */
    readOwnForm: async (context: RequestContext, person: Person): Promise<Form> =>
      confirmed(context, person, await readTokenForm(context, person)),
    readTokenForm,
    /** Adds the cookies of a new session to an answer, and the person to the log line. */
    startSession: (context: RequestContext, entered: StartedSession, answer: Response): Response => {
      context.caller = entered.person.caller;
      answer.headers.append("set-cookie", cookie.set(entered.sessionToken));
      answer.headers.append("set-cookie", deviceCookie.set(entered.deviceToken));
      return answer;
    },
  };
}

/**
 * A page that asks for the password and sends the same fields again. `problem`: why the password in the form was refused;
 * null: it had none.
 */
function askForPassword(context: RequestContext, user: Person, form: Form, problem: DomainError | null): EarlyAnswer {
  context.errorCode = problem?.code ?? "forbidden";
  const fields = [...form].filter(([name]) => !NOT_KEPT.has(name));
  const html = confirmPasswordPage({ user, path: pathAndQuery(context), fields, problem: problem?.message ?? null });
  const headers = problem === null ? {} : errorHeaders(problem);
  return new EarlyAnswer(page("own", html, { status: HTTP_STATUS[context.errorCode], headers }));
}

/** Fields that the page renders itself, and passwords, which it never repeats. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  FORM_TOKEN_FIELD,
  SESSION_SECRET_FIELD,
  CONFIRM_PASSWORD_FIELD,
  CONFIRM_EMAIL_FIELD,
  "password",
]);

/** The origin of a login, for throttling. `form`: sent by a page; null for JSON. */
export function requestSource(
  context: RequestContext,
  { deviceCookie }: { readonly deviceCookie: OwnCookie },
  form: Form | null,
): RequestSource {
  return {
    client: clientNetwork(context.client),
    deviceToken: deviceCookie.read(context.request.headers),
    sessionSecret: form === null ? null : secretIn(form),
    browser: browserName(context.request.headers),
  };
}

/** The browser, to show to the session's person. Leaves out anything but visible ASCII. */
function browserName(headers: Headers): string | null {
  const text = (headers.get("user-agent") ?? "")
    .slice(0, BROWSER_CHARS_MAX)
    .replaceAll(/[^ -~]/g, "")
    .trim();
  return text === "" ? null : text;
}

/** 256 bits as hex, as our script makes it; null for anything else. */
function secretIn(form: Form): string | null {
  const secret = form.get(SESSION_SECRET_FIELD) ?? "";
  return /^[0-9a-f]{64}$/.test(secret) ? secret : null;
}

/** Throws `forbidden` unless the form was rendered in this session; a page from before the last login wasn't. */
export function checkFormToken(form: Form, person: Person): void {
  if (isSame(form.get(FORM_TOKEN_FIELD) ?? "", person.formToken)) return;
  throw new DomainError(
    "forbidden",
    "This page is from before you logged in, or of another account. Load it again and repeat what you did.",
  );
}

/** Where people go after login. */
export const HOME_PATH = "/approvals";

/** Not `//`; only visible ASCII, since browsers drop a tab and read `/\t/` as `//`, and no backslash, which they read as a slash. */
const OWN_PATH = /^\/(?!\/)[!-[\]-~]*$/;

/** A `next` that is a path of this service; null for any other, so that nobody is redirected to another site. */
export function safeNext(text: string | null | undefined): string | null {
  return text !== null && text !== undefined && text.length <= NEXT_CHARS_MAX && OWN_PATH.test(text) ? text : null;
}

/** The `next` in a query; see `safeNext`. */
export function nextIn(search: string): string | null {
  return safeNext(new URLSearchParams(search).get("next"));
}

/** 256 bits as hex. */
const SESSION = /^[0-9a-f]{64}$/;

const DEVICE = /^[A-Za-z0-9_.-]{1,256}$/;

export function createSessionCookie(baseUrl: string): OwnCookie {
  return createOwnCookie(baseUrl, "outgate_session", SESSION, SESSION_MS_MAX);
}

/** Answers a request of a person who is logged in. */
export type AnswerPerson<Params = unknown> = (request: {
  readonly context: RequestContext;
  readonly person: Person;
  readonly params: Params;
}) => Response | Promise<Response>;

/** Answers a request whose path ends in an id. */
export type AnswerById = AnswerPerson<{ readonly id: string }>;

/** Routes for people who are logged in. Others get what `askToLogIn` answers. */
export function createPersonRoutes(findPerson: FindPerson, askToLogIn: (context: RequestContext) => Promise<Response>) {
  return createPageRoutes("own").resolve(async ({ context }) => {
    const person = await findPerson(context);
    if (person !== null) return { person };
    throw new EarlyAnswer(await askToLogIn(context));
  });
}

/** On https, the cookie is never sent in clear, and the prefix `__Host-` keeps other hosts of the domain from setting it. */
export function createOwnCookie(baseUrl: string, bare: string, form: RegExp, lastsMs: number) {
  const isSecure = baseUrl.startsWith("https:");
  const name = isSecure ? `__Host-${bare}` : bare;
  const ending = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    /** The value in a request; null: it is missing or malformed. */
    read(headers: Headers): string | null {
      const value = cookieIn(headers, name) ?? "";
      return form.test(value) ? value : null;
    },
    /** Values of `Set-Cookie`. */
    set: (value: string) => `${name}=${value}${ending}; Max-Age=${lastsMs / 1_000}`,
    clear: () => `${name}=${ending}; Max-Age=0`,
  };
}

/** The value of the first cookie with this name; null: there is none. */
export function cookieIn(headers: Headers, name: string): string | null {
  const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

type OwnCookie = ReturnType<typeof createOwnCookie>;
