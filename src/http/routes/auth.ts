import type { PeopleDesk } from "../../accounts/people.ts";
import { checkCredentials, loggedInJson, signedUpJson } from "../../contract/credentials.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import type { Log } from "../../ports/log.ts";
import { logInPage } from "../../web/log-in.tsx";
import { signedUpPage, signUpPage } from "../../web/sign-up.tsx";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { askAgain, credentialsIn, type EntryCookies, letIn } from "../entry.ts";
import type { Flash } from "../flash.ts";
import { isForm, readForm } from "../form.ts";
import { HOME_PATH, nextOf } from "../next.ts";
import type { OwnOrigin } from "../own-origin.ts";
import { page, seeOther } from "../page.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { checkFormToken, type PersonOf, sourceOf } from "../session.ts";
import type { Visit } from "../visit.ts";

export interface AuthRouteDeps extends EntryCookies {
  readonly flash: Flash;
  readonly peopleDesk: PeopleDesk;
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
  const { signUp } = deps.peopleDesk;
  const byForm = async (visit: Visit): Promise<Response> => {
    const form = await readForm(visit);
    const next = nextOf(form.get("next"));
    try {
      const entered = await signUp(checkCredentials(credentialsIn(form)), sourceOf(visit, deps, form));
      const told: SignedUp = { apiKey: entered.apiKey, next: next ?? HOME_PATH };
      const show = () => page("own", signedUpPage({ visitor: entered.person, ...told }));
      return letIn(visit, entered, deps, await deps.flash.tellSecret(entered.person, SIGNED_UP_PATH, told, show));
    } catch (error) {
      return askAgain(visit, error, form, (typed) => signUpPage({ typed, next }));
    }
  };
  return routeOf(API.signUp, async (visit) => {
    const kind = judge(visit, ownOrigin);
    await signUp.requireOpen();
    readQuery(visit.search, NONE);
    if (kind === "form") return byForm(visit);
    const entered = await signUp(checkCredentials((await readJson(visit)).value), sourceOf(visit, deps, null));
    const { email, caller } = entered.person;
    const text = signedUpJson({ id: caller.accountId, email }, entered.apiKey);
    return letIn(visit, entered, deps, json(text, 201, UNCACHED));
  });
}

function logInRoute(deps: AuthRouteDeps): Route {
  const { ownOrigin } = deps;
  const { signUp, logIn } = deps.peopleDesk;
  const byForm = async (visit: Visit): Promise<Response> => {
    const form = await readForm(visit);
    const next = nextOf(form.get("next"));
    try {
      const entered = await logIn(checkCredentials(credentialsIn(form)), sourceOf(visit, deps, form));
      return letIn(visit, entered, deps, seeOther("own", next ?? HOME_PATH));
    } catch (error) {
      const signupsOpen = await signUp.isOpen();
      return askAgain(visit, error, form, (typed) => logInPage({ typed, next, signupsOpen }));
    }
  };
  return routeOf(API.logIn, async (visit) => {
    const kind = judge(visit, ownOrigin);
    readQuery(visit.search, NONE);
    if (kind === "form") return byForm(visit);
    const entered = await logIn(checkCredentials((await readJson(visit)).value), sourceOf(visit, deps, null));
    const { email, caller } = entered.person;
    return letIn(visit, entered, deps, json(loggedInJson({ id: caller.accountId, email }), 200, UNCACHED));
  });
}

function logOutRoute({ peopleDesk: { logOut }, cookie, ownOrigin, personOf }: AuthRouteDeps): Route {
  return routeOf(API.logOut, async (visit) => {
    const kind = judge(visit, ownOrigin);
    // With or without a form, or any site could log somebody out.
    ownOrigin.require(visit.request.headers);
    readQuery(visit.search, NONE);
    const person = await personOf(visit);
    if (kind === "form" && person !== null) checkFormToken(await readForm(visit), person);
    const token = cookie.read(visit.request.headers);
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
function judge(visit: Visit, ownOrigin: OwnOrigin): "form" | "json" {
  const { request } = visit;
  if (!isForm(request)) {
    ownOrigin.refuseForeign(request.headers);
    return "json";
  }
  visit.page = "own";
  ownOrigin.require(request.headers);
  return "form";
}
