import type { PeopleService } from "../../accounts/people.ts";
import { checkCredentials, loggedInJson, signedUpJson } from "../../contract/credentials.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import type { Log } from "../../ports/log.ts";
import { logInPage } from "../../web/log-in.tsx";
import { signedUpPage, signUpPage } from "../../web/sign-up.tsx";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { askAgain, credentialsIn, type EntryCookies, startSession } from "../entry.ts";
import type { Flash } from "../flash.ts";
import { isForm, readForm } from "../form.ts";
import { HOME_PATH, nextOf } from "../next.ts";
import type { OwnOrigin } from "../own-origin.ts";
import { page, seeOther } from "../page.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { checkFormToken, type PersonOf, sourceOf } from "../session.ts";
import type { RequestContext } from "../visit.ts";

export interface AuthRouteDeps extends EntryCookies {
  readonly flash: Flash;
  readonly peopleService: PeopleService;
  readonly ownOrigin: OwnOrigin;
  readonly personOf: PersonOf;
  readonly log: Log;
}

/** Where whoever has signed up is shown their key, and what is told there. */
export const SIGNED_UP_PATH = "/signup/done";
export interface SignedUp {
  readonly apiKey: string;
  readonly next: string;
}

const NONE = compileQuery(NoQuery);
const UNCACHED = { "cache-control": "no-store" } as const;

/** People come in and go (decisions 12): as JSON for programs, as forms for our own pages. */
export function authRoutes(deps: AuthRouteDeps): readonly Route[] {
  return [signUpRoute(deps), logInRoute(deps), logOutRoute(deps)];
}

function signUpRoute(deps: AuthRouteDeps): Route {
  const { ownOrigin } = deps;
  const { signUp } = deps.peopleService;
  const byForm = async (context: RequestContext): Promise<Response> => {
    const form = await readForm(context);
    const next = nextOf(form.get("next"));
    try {
      const entered = await signUp(checkCredentials(credentialsIn(form)), sourceOf(context, deps, form));
      const told: SignedUp = { apiKey: entered.apiKey, next: next ?? HOME_PATH };
      const show = () => page("own", signedUpPage({ user: entered.person, ...told }));
      return startSession(
        context,
        entered,
        deps,
        await deps.flash.tellSecret(entered.person, SIGNED_UP_PATH, told, show),
      );
    } catch (error) {
      return askAgain(context, error, form, (typed) => signUpPage({ typed, next }));
    }
  };
  return routeOf(API.signUp, async (context) => {
    const kind = checkTarget(context, ownOrigin);
    await signUp.requireOpen();
    readQuery(context.search, NONE);
    if (kind === "form") return byForm(context);
    const entered = await signUp(checkCredentials((await readJson(context)).value), sourceOf(context, deps, null));
    const { email, caller } = entered.person;
    const text = signedUpJson({ id: caller.accountId, email }, entered.apiKey);
    return startSession(context, entered, deps, json(text, 201, UNCACHED));
  });
}

function logInRoute(deps: AuthRouteDeps): Route {
  const { ownOrigin } = deps;
  const { signUp, logIn } = deps.peopleService;
  const byForm = async (context: RequestContext): Promise<Response> => {
    const form = await readForm(context);
    const next = nextOf(form.get("next"));
    try {
      const entered = await logIn(checkCredentials(credentialsIn(form)), sourceOf(context, deps, form));
      return startSession(context, entered, deps, seeOther("own", next ?? HOME_PATH));
    } catch (error) {
      const signupsOpen = await signUp.isOpen();
      return askAgain(context, error, form, (typed) => logInPage({ typed, next, signupsOpen }));
    }
  };
  return routeOf(API.logIn, async (context) => {
    const kind = checkTarget(context, ownOrigin);
    readQuery(context.search, NONE);
    if (kind === "form") return byForm(context);
    const entered = await logIn(checkCredentials((await readJson(context)).value), sourceOf(context, deps, null));
    const { email, caller } = entered.person;
    return startSession(context, entered, deps, json(loggedInJson({ id: caller.accountId, email }), 200, UNCACHED));
  });
}

function logOutRoute({ peopleService: { logOut }, cookie, ownOrigin, personOf }: AuthRouteDeps): Route {
  return routeOf(API.logOut, async (context) => {
    const kind = checkTarget(context, ownOrigin);
    // With or without a form, or any site could log somebody out.
    ownOrigin.require(context.request.headers);
    readQuery(context.search, NONE);
    const person = await personOf(context);
    if (kind === "form" && person !== null) checkFormToken(await readForm(context), person);
    const token = cookie.read(context.request.headers);
    if (token !== null) await logOut(token, person?.caller ?? null);
    const gone = { "set-cookie": cookie.clear() };
    if (kind === "form") return seeOther("own", "/login", gone);
    return new Response(null, { status: 204, headers: { ...gone, ...UNCACHED } });
  });
}

/**
 * Tells a page's request from a program's. Browsers say where one comes from, so that another site's page can log nobody
 * in: not as themselves either, since a victim would go on in an account that is somebody else's.
 */
function checkTarget(context: RequestContext, ownOrigin: OwnOrigin): "form" | "json" {
  const { request } = context;
  if (!isForm(request)) {
    ownOrigin.refuseForeign(request.headers);
    return "json";
  }
  context.page = "own";
  ownOrigin.require(request.headers);
  return "form";
}
