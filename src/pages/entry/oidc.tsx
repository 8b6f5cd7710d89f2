/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { nullable } from "../../api/schema-helpers.ts";
import type { StartedSession, RequestSource } from "../../core/session.ts";
import { errorHeaders, HTTP_STATUS } from "../../api/errors.ts";
import { type ErrorCode, RetryLater } from "../../core/domain-error.ts";
import { OIDC_FLOW_MS_MAX } from "../../core/limits.ts";
import { createPageRoutes } from "../../http/operation.ts";
import { readForm } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { page } from "../../http/response.ts";
import { createOwnCookie, HOME_PATH, safeNext, requestSource } from "../../http/session.ts";
import type { Log } from "../../observability/log.ts";
import { EMPTY_FORM } from "../frame/forms.ts";
import { NoteMembers, landOn, noteIn } from "../frame/kept-note.ts";
import type { PageDeps } from "../frame/page-deps.ts";
import { Layout, render } from "../../ui/layout.tsx";
import { PageHead } from "../../ui/parts.tsx";
import { logInPage } from "../frame/log-in.tsx";
import {
  type Challenge,
  type NotLetIn,
  ProviderAway,
  SignInRefused,
  OIDC_CALLBACK_PATH,
  OIDC_PATH,
} from "../../oidc/oidc.ts";

/** What the browser keeps between the button and the answer, sealed, perhaps by another version of this service. */
const FLOW = compile(
  Type.Object({
    state: Type.String(),
    nonce: Type.String(),
    verifier: Type.String(),
    sessionSecret: nullable(Type.String()),
    next: nullable(Type.String()),
    note: Type.Optional(NoteMembers),
    expiresMs: Type.Number(),
  }),
);

type Flow = Checked<typeof FLOW>;

const PLACE = { table: "oidc", row: "flow", column: "cookie" } as const;

/** Browsers keep 4,096 characters of a cookie, with its name. */
const SEALED = /^[0-9a-f]{8}\.[A-Za-z0-9+/=]{1,3900}$/;

/** Redirects to another service, without script. */
export function goesOnPage(title: string, address: string, link: string): string {
  return render(
    <Layout title={title} width="narrow" goesTo={address}>
      <h1>{title}</h1>
      <p>
        <a href={address}>{link}</a>
      </p>
    </Layout>,
  );
}

/** Says why a sign-in with the identity provider failed, and what to do. */
function oidcProblemPage(message: string): string {
  return render(
    <Layout title="Not logged in" width="narrow">
      <PageHead title="You are not logged in" />
      <p>{message}</p>
      <p>
        <a href="/login">To the login page</a>
      </p>
    </Layout>,
  );
}

/** The routes of the login button and of the way back. Both answer with pages, since only browsers sign in like this. */
export function oidcRoutes(deps: PageDeps) {
  const { oidc, secrets, clock, baseUrl, ownOrigin, log } = deps;
  const routes = createPageRoutes("own");
  if (oidc === null) return routes;
  const cookie = createOwnCookie(baseUrl, "outgate_oidc", SEALED, OIDC_FLOW_MS_MAX);

  const begin = async (context: RequestContext): Promise<Response> => {
    ownOrigin.require(context.request.headers);
    const form = await readForm(context);
    const source = requestSource(context, deps, form);
    const next = safeNext(form.get("next"));
    try {
      oidc.throttle(source.client);
      const challenge: Challenge = {
        state: secrets.newToken(),
        nonce: secrets.newToken(),
        verifier: secrets.newToken(),
      };
      const address = await oidc.begin(challenge);
      const expiresMs = clock.now().getTime() + OIDC_FLOW_MS_MAX;
      const flow: Flow = { ...challenge, next, sessionSecret: source.sessionSecret, expiresMs };
      const seal = (kept: Flow) => secrets.seal(JSON.stringify(kept), PLACE);
      const note = noteIn(form);
      // Whoever has a longer note, or comes from a longer address, is signed in all the same.
      const wholes = [...(note === null ? [] : [seal({ ...flow, note })]), seal(flow)];
      const sealed = wholes.find((whole) => SEALED.test(whole)) ?? seal({ ...flow, next: null });
      // Not a redirect: our CSP lets forms lead to our own pages alone, in Chrome also by redirects.
      const html = goesOnPage(`Log in with ${oidc.name}`, address, `Continue to ${oidc.name}`);
      return page("own", html, { headers: { "set-cookie": cookie.set(sealed) } });
    } catch (error) {
      const known = knownProblem(error, log, context);
      if (known === null) throw error;
      // The password still works.
      context.errorCode = known.code;
      const html = await logInPage(deps, next, { ...EMPTY_FORM, values: form, problem: known.message });
      return page("own", html, { status: HTTP_STATUS[known.code], headers: known.headers });
    }
  };

  /** The sign-in that this browser began; null if it began none, or too long ago. */
  const flowIn = ({ request }: RequestContext): Flow | null => {
    const sealed = cookie.read(request.headers);
    if (sealed === null) return null;
    try {
      const flow: unknown = JSON.parse(secrets.open(sealed, PLACE).toString("utf8"));
      return FLOW.accepts(flow) && flow.expiresMs > clock.now().getTime() ? flow : null;
    } catch {
      return null;
    }
  };

  const finish = async (context: RequestContext): Promise<Response> => {
    const source: RequestSource = requestSource(context, deps, null);
    // Used only once, whatever the result.
    const gone = { "set-cookie": cookie.clear() };
    const refuse = (code: ErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) => {
      context.errorCode = code;
      return page("own", oidcProblemPage(message), { status: HTTP_STATUS[code], headers: { ...headers, ...gone } });
    };
    const flow = flowIn(context);
    const query = new URLSearchParams(context.search);
    if (flow === null || query.get("state") !== flow.state) return refuse("forbidden", STALE);
    const said = query.get("error");
    if (said !== null) return refuse("forbidden", PROVIDER_SAYS[said] ?? REFUSED);
    try {
      oidc.throttle(source.client);
      const invitation = JOIN.exec(flow.next ?? "")?.[1] ?? null;
      const by = { ...source, sessionSecret: flow.sessionSecret };
      const entered = await oidc.finish(context.search, flow, by, invitation);
      if (typeof entered === "string") return refuse("forbidden", NOT_LET_IN[entered]);
      const answer = landOn(deps.flash, landingPath(flow.next, entered), entered, flow.note ?? null);
      answer.headers.append("set-cookie", gone["set-cookie"]);
      return deps.startSession(context, entered, answer);
    } catch (error) {
      const known = knownProblem(error, log, context);
      if (known === null) throw error;
      return refuse(known.code, known.message, known.headers);
    }
  };

  return routes
    .post(OIDC_PATH, ({ context }) => begin(context))
    .get(OIDC_CALLBACK_PATH, ({ context }) => finish(context));
}

interface Problem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

const AWAY =
  "The identity provider can't be reached at the moment. Log in with your password, or try again in a few seconds.";

/** What to tell the person; null for an unexpected error. */
function knownProblem(error: unknown, log: Log, { name }: RequestContext): Problem | null {
  if (error instanceof RetryLater) return { code: error.code, message: error.message, headers: errorHeaders(error) };
  if (error instanceof ProviderAway) {
    log.warn("oidc.away", { request_id: name.logId, error: causeText(error) });
    return { code: "unavailable", message: AWAY, headers: { "retry-after": "5" } };
  }
  if (error instanceof SignInRefused) {
    log.warn("oidc.refused", { request_id: name.logId, error: causeText(error) });
    return { code: "forbidden", message: REFUSED, headers: {} };
  }
  return null;
}

/** The kind of the fault, without messages, which may contain what the library and the provider were given. */
function causeText({ cause }: Error): string {
  if (!(cause instanceof Error)) return "unknown";
  const code: unknown = "code" in cause ? cause.code : null;
  return typeof code === "string" ? code : cause.name;
}

const REFUSED =
  "The identity provider's answer doesn't belong to this sign-in, was used before, or was refused. Start again from the login page.";

const STALE =
  "This sign-in was not started in this browser, or more than ten minutes ago. Start again from the login page.";

const NOT_LET_IN: Readonly<Record<NotLetIn, string>> = {
  unverified:
    "The identity provider doesn't confirm that your email address is yours. Confirm it there, or log in with your password.",
  other_domain:
    "Addresses of your domain can't log in to this service. Use an account of your organisation, or ask the operator to add the domain to OIDC_ALLOWED_DOMAINS.",
  no_account: "No one with your address is in an account of this service. Ask an owner of the account to invite you.",
  other_identity:
    "Your address belongs to someone else's sign-in at the identity provider. Ask an owner to remove that person and to invite you.",
};

/** Errors that the provider returns instead of a code (RFC 6749, 4.1.2.1). */
const PROVIDER_SAYS: Readonly<Record<string, string>> = {
  access_denied: "The sign-in was cancelled at the identity provider. Start again from the login page.",
  temporarily_unavailable: AWAY,
  server_error: AWAY,
};

/** The path of an invitation, with its token. */
const JOIN = /^\/join\/([0-9a-f]{64})$/;

/** Where a sign-in leads. People who have just joined don't go back to the invitation. */
function landingPath(next: string | null, { isJoined }: StartedSession): string {
  return next === null || (isJoined === true && JOIN.test(next)) ? HOME_PATH : next;
}
