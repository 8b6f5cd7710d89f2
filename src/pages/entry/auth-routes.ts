import { CredentialsBody, LoggedInJson, SignedUpJson } from "../../accounts/people.ts";
import { bodyCheck, queryCheck } from "../../api/check.ts";
import { GET_STARTED_PATH } from "./first-steps.tsx";
import { answers, EMPTY_FORM } from "../frame/forms.ts";
import { logPasswordChange } from "../settings/account.tsx";
import { landOn, noteIn } from "../frame/kept-note.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { LOG_IN_FORM, logInPage, SIGN_UP_FORM, withNext } from "../frame/log-in.tsx";
import { MADE_ACCOUNT, signedUpPage, signUpPage, welcomePage } from "./sign-up.tsx";
import { json, page, seeOther, UNLISTED } from "../../http/response.ts";
import { isForm, readForm, readJson } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { checkFormToken, HOME_PATH, nextIn, safeNext, requestSource } from "../../http/session.ts";
import type { OwnOrigin } from "../../http/own-origin.ts";
import {
  BODY_ERRORS,
  createPageRoutes,
  createRoutes,
  jsonBody,
  NO_QUERY,
  operation,
  TokenParams,
} from "../../http/operation.ts";

const SIGNED_UP_PATH = "/signup/done";

const refuseQuery = queryCheck(NO_QUERY);

const checkCredentials = bodyCheck(CredentialsBody);

const UNCACHED = { "cache-control": "no-store" } as const;

/** Sign-up, login and logout: JSON for programs, forms for our own pages. Refuses requests from other sites' pages. */
export function authRoutes(deps: PageDeps) {
  const { cookie, ownOrigin, findPerson, peopleService, sessionService, signUpGate, startSession } = deps;
  const signUpByForm = answers(readForm)(
    async ({ context, form }) => {
      const entered = await peopleService.signUp(SIGN_UP_FORM.check(form), requestSource(context, deps, form));
      const result = { apiKey: entered.apiKey, next: safeNext(form.get("next")) ?? GET_STARTED_PATH };
      const show = () => page("own", signedUpPage(entered.person, result));
      const answer = await deps.flash.showSecretOnce(entered.person, SIGNED_UP_PATH, MADE_ACCOUNT, result, show);
      return startSession(context, entered, answer);
    },
    ({ form }, typed) => signUpPage(safeNext(form.get("next")), typed),
  );
  const logInByForm = answers(readForm)(
    async ({ context, form }) => {
      const entered = await peopleService.logIn(LOG_IN_FORM.check(form), requestSource(context, deps, form));
      const next = safeNext(form.get("next")) ?? HOME_PATH;
      return startSession(context, entered, landOn(deps.flash, next, entered, noteIn(form)));
    },
    ({ form }, typed) => logInPage(deps, safeNext(form.get("next")), typed),
  );
  return createRoutes()
    .post(
      "/auth/signup",
      async ({ context }) => {
        const kind = requestKind(context, ownOrigin);
        await signUpGate.requireOpen();
        refuseQuery(context.search);
        if (kind === "form") return signUpByForm({ context, person: null, params: null });
        const { value } = await readJson(context);
        const entered = await peopleService.signUp(checkCredentials(value), requestSource(context, deps, null));
        const { email, caller } = entered.person;
        const text = JSON.stringify({ account: { id: caller.accountId, email }, api_key: entered.apiKey });
        return startSession(context, entered, json(text, 201, UNCACHED));
      },
      SIGN_UP,
    )
    .post(
      "/auth/login",
      async ({ context }) => {
        const kind = requestKind(context, ownOrigin);
        refuseQuery(context.search);
        if (kind === "form") return logInByForm({ context, person: null, params: null });
        const { value } = await readJson(context);
        const entered = await peopleService.logIn(checkCredentials(value), requestSource(context, deps, null));
        const { email, caller } = entered.person;
        const text = JSON.stringify({ account: { id: caller.accountId, email } });
        return startSession(context, entered, json(text, 200, UNCACHED));
      },
      LOG_IN,
    )
    .post(
      "/auth/logout",
      async ({ context }) => {
        const kind = requestKind(context, ownOrigin);
        // For JSON too, or any site could log a person out.
        ownOrigin.require(context.request.headers);
        refuseQuery(context.search);
        const person = await findPerson(context);
        if (kind === "form" && person !== null) checkFormToken(await readForm(context), person);
        const token = cookie.read(context.request.headers);
        if (token !== null) await sessionService.logOut(token, person?.caller ?? null);
        const gone = { "set-cookie": cookie.clear() };
        if (kind === "form") return seeOther("own", "/login", gone);
        return new Response(null, { status: 204, headers: { ...gone, ...UNCACHED } });
      },
      LOG_OUT,
    );
}

const AUTH_ERRORS = [
  "forbidden",
  "invalid_query",
  ...BODY_ERRORS,
  "missing_body",
  "internal_error",
  "unavailable",
] as const;

const SIGN_UP = operation({
  operationId: "signUp",
  permission: null,
  tag: "Auth",
  summary: "Sign up: a new account with an owner key",
  description: "Creates an account and its first person. Only this response shows the key.",
  notes: [
    "It also sets the session cookie of the pages.",
    "It returns 403 where sign-ups are closed, by SIGNUPS or because approvals are in use.",
    "The service's own pages send a form here and get HTML, which is not described.",
  ],
  body: jsonBody(CredentialsBody),
  answers: {
    201: { description: "The new account.", schema: SignedUpJson, headers: ["Set-Cookie", "Cache-Control"] },
  },
  errors: [...AUTH_ERRORS, "email_taken", "rate_limited"],
});

const LOG_IN = operation({
  operationId: "logIn",
  permission: null,
  tag: "Auth",
  summary: "Log in on the pages for people",
  description: "Sets the session cookie of the pages for people, which does not authenticate under /v1.",
  notes: ["Too many wrong passwords get 429.", "The service's own pages send a form here and get a redirect."],
  body: jsonBody(CredentialsBody),
  answers: {
    200: { description: "Who logged in.", schema: LoggedInJson, headers: ["Set-Cookie", "Cache-Control"] },
  },
  errors: [...AUTH_ERRORS, "invalid_credentials", "rate_limited"],
});

const LOG_OUT = operation({
  operationId: "logOut",
  permission: null,
  tag: "Auth",
  summary: "Log out, from a page of this service",
  description: "Ends the session and clears its cookie.",
  notes: [
    "Needs an `Origin` or `Sec-Fetch-Site` of this service.",
    "A form of the service's own pages gets a redirect.",
  ],
  answers: {
    204: { description: "The session has ended.", schema: null, headers: ["Set-Cookie", "Cache-Control"] },
  },
  errors: [
    "forbidden",
    "invalid_query",
    "invalid_content_type",
    "payload_too_large",
    "invalid_request",
    "internal_error",
    "unavailable",
  ],
});

/**
 * Whether our own page or a program sent the request. Refuses requests from pages of other sites, which could log a victim
 * in to the attacker's account.
 */
function requestKind(context: RequestContext, ownOrigin: OwnOrigin): "form" | "json" {
  const { request } = context;
  if (!isForm(request)) {
    ownOrigin.refuseOtherSites(request.headers);
    return "json";
  }
  context.page = "own";
  ownOrigin.require(request.headers);
  return "form";
}

/** The login and sign-up pages, whose forms go to /auth, and the pages of one-time links. */
export function entryPages(deps: PageDeps) {
  const { findPerson, signUpGate, flash } = deps;
  const unlessLoggedIn = async (context: RequestContext, show: (next: string | null) => string | Promise<string>) => {
    const next = nextIn(context.search);
    if ((await findPerson(context)) !== null) return seeOther("own", next ?? HOME_PATH);
    return page("own", await show(next));
  };
  return (
    createPageRoutes("own")
      .get("/login", ({ context }) => unlessLoggedIn(context, (next) => logInPage(deps, next, EMPTY_FORM)))
      // A refused form leaves the browser at this address, which people may reload.
      .get("/auth/login", ({ context }) => backTo("/login", context))
      .get("/auth/signup", ({ context }) => backTo("/signup", context))
      .get("/signup", async ({ context }) => {
        await signUpGate.requireOpen();
        return unlessLoggedIn(context, (next) => signUpPage(next, EMPTY_FORM));
      })
      .use(
        personPages(deps).get(SIGNED_UP_PATH, ({ context, person }) => {
          const result = flash.read(context, person, MADE_ACCOUNT);
          return result === null ? seeOther("own", HOME_PATH) : signedUpPage(person, result);
        }),
      )
      .use(welcomeRoutes(deps))
  );
}

function backTo(path: string, { search }: RequestContext): Response {
  return seeOther("own", withNext(path, nextIn(search)));
}

/** One-time links. A GET changes nothing, because mail scanners and previews open links. The button's POST uses the link up. */
function welcomeRoutes(deps: PageDeps) {
  const { welcomeLinks, ownOrigin, startSession, log } = deps;
  const welcomePath = (token: string) => `/welcome/${token}`;
  const hooks = { params: TokenParams };
  const redeem = answers(readForm)<{ readonly token: string; readonly email: string | null }>(
    async ({ context, params: { token, email }, form }) => {
      const entered = await welcomeLinks.redeem(token, SIGN_UP_FORM.check(form), requestSource(context, deps, form));
      if (email !== null) logPasswordChange(context, entered, log);
      // A link without an address lets the first owner in. Others set a new password.
      return startSession(context, entered, seeOther("own", email === null ? GET_STARTED_PATH : HOME_PATH));
    },
    ({ params: { token, email } }, typed) => welcomePage(welcomePath(token), email, typed),
  );
  return createPageRoutes("own")
    .get(
      welcomePath(":token"),
      async ({ params: { token } }) => {
        const { email } = await welcomeLinks.find(token);
        return page("own", welcomePage(welcomePath(token), email, EMPTY_FORM), { headers: UNLISTED });
      },
      hooks,
    )
    .post(
      welcomePath(":token"),
      async ({ context, params: { token } }) => {
        ownOrigin.require(context.request.headers);
        const { email } = await welcomeLinks.find(token);
        return redeem({ context, person: null, params: { token, email } });
      },
      hooks,
    );
}
