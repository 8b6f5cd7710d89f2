import { checkCredentials } from "../../contract/credentials.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { logInPage } from "../../web/log-in.tsx";
import { signedUpPage, signUpPage } from "../../web/sign-up.tsx";
import { welcomePage } from "../../web/welcome.tsx";
import { askAgain, credentialsIn, startSession, tellNewPassword } from "../entry.ts";
import { readForm } from "../form.ts";
import { HOME_PATH, nextIn } from "../next.ts";
import { page, seeOther } from "../page.ts";
import { personPage } from "../person-page.ts";
import { pageRoute, type Route } from "../route.ts";
import { sourceOf } from "../session.ts";
import type { RequestContext } from "../visit.ts";
import { type AuthRouteDeps, SIGNED_UP_PATH, type SignedUp } from "./auth.ts";

/** The pages by which people come in; what they send goes to /auth, but for the one-time link. */
export function entryPages(deps: AuthRouteDeps): readonly Route[] {
  const { peopleService: actionService, personOf, flash } = deps;
  const unlessIn = (show: (next: string | null) => string) => async (context: RequestContext) => {
    const next = nextIn(context.search);
    if ((await personOf(context)) !== null) return seeOther("own", next ?? HOME_PATH);
    return page("own", show(next));
  };
  return [
    pageRoute("own", "GET", "/login", async (context) => {
      const signupsOpen = await actionService.signUp.isOpen();
      return unlessIn((next) => logInPage({ typed: UNTYPED, next, signupsOpen }))(context);
    }),
    pageRoute("own", "GET", "/signup", async (context) => {
      await actionService.signUp.requireOpen();
      return unlessIn((next) => signUpPage({ typed: UNTYPED, next }))(context);
    }),
    personPage(personOf, "GET", SIGNED_UP_PATH, (context, person) => {
      // Safe: told by the sign-up, at this path alone.
      const told = flash.read(context, person) as SignedUp | null;
      return told === null ? seeOther("own", HOME_PATH) : page("own", signedUpPage({ user: person, ...told }));
    }),
    ...welcomeRoutes(deps),
  ];
}

/** The token is the path: what it opens is not for a search engine. */
const UNLISTED = { "x-robots-tag": "noindex, nofollow, noarchive" } as const;

/** One-time links. Looking changes nothing, since mail scanners and previews look too; the button takes the link. */
function welcomeRoutes(deps: AuthRouteDeps): readonly Route[] {
  const { peopleService: actionService, ownOrigin, log } = deps;
  const pathOf = (token: string) => `/welcome/${token}`;
  return [
    pageRoute("own", "GET", pathOf("{token}"), async (_visit, { token = "" }) => {
      const { email } = await actionService.seeWelcome(token);
      return page("own", welcomePage({ path: pathOf(token), typed: UNTYPED, email }), { headers: UNLISTED });
    }),
    pageRoute("own", "POST", pathOf("{token}"), async (context, { token = "" }) => {
      ownOrigin.require(context.request.headers);
      const { email } = await actionService.seeWelcome(token);
      const form = await readForm(context);
      try {
        const entered = await actionService.takeWelcome(
          token,
          checkCredentials(credentialsIn(form)),
          sourceOf(context, deps, form),
        );
        if (email !== null) tellNewPassword(context, entered, log);
        return startSession(context, entered, deps, seeOther("own", HOME_PATH));
      } catch (error) {
        return askAgain(context, error, form, (typed) => welcomePage({ path: pathOf(token), typed, email }));
      }
    }),
  ];
}
