import { checkCredentials } from "../../contract/credentials.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { logInPage } from "../../web/log-in.tsx";
import { signedUpPage, signUpPage } from "../../web/sign-up.tsx";
import { welcomePage } from "../../web/welcome.tsx";
import { askAgain, credentialsIn, letIn, tellNewPassword } from "../entry.ts";
import { readForm } from "../form.ts";
import { HOME_PATH, nextIn } from "../next.ts";
import { page, seeOther } from "../page.ts";
import { personPage } from "../person-page.ts";
import { pageRoute, type Route } from "../route.ts";
import { sourceOf } from "../session.ts";
import type { Visit } from "../visit.ts";
import { type AuthRouteDeps, SIGNED_UP_PATH, type SignedUp } from "./auth.ts";

/** The pages by which people come in; what they send goes to /auth, but for the one-time link. */
export function entryPages(deps: AuthRouteDeps): readonly Route[] {
  const { peopleDesk: desk, personOf, flash } = deps;
  const unlessIn = (show: (next: string | null) => string) => async (visit: Visit) => {
    const next = nextIn(visit.search);
    if ((await personOf(visit)) !== null) return seeOther("own", next ?? HOME_PATH);
    return page("own", show(next));
  };
  return [
    pageRoute("own", "GET", "/login", async (visit) => {
      const signupsOpen = await desk.signUp.isOpen();
      return unlessIn((next) => logInPage({ typed: UNTYPED, next, signupsOpen }))(visit);
    }),
    pageRoute("own", "GET", "/signup", async (visit) => {
      await desk.signUp.requireOpen();
      return unlessIn((next) => signUpPage({ typed: UNTYPED, next }))(visit);
    }),
    personPage(personOf, "GET", SIGNED_UP_PATH, (visit, person) => {
      // Safe: told by the sign-up, at this path alone.
      const told = flash.read(visit, person) as SignedUp | null;
      return told === null ? seeOther("own", HOME_PATH) : page("own", signedUpPage({ visitor: person, ...told }));
    }),
    ...welcomeRoutes(deps),
  ];
}

/** The token is the path: what it opens is not for a search engine. */
const UNLISTED = { "x-robots-tag": "noindex, nofollow, noarchive" } as const;

/** One-time links. Looking changes nothing, since mail scanners and previews look too; the button takes the link. */
function welcomeRoutes(deps: AuthRouteDeps): readonly Route[] {
  const { peopleDesk: desk, ownOrigin, log } = deps;
  const pathOf = (token: string) => `/welcome/${token}`;
  return [
    pageRoute("own", "GET", pathOf("{token}"), async (_visit, { token = "" }) => {
      const { email } = await desk.seeWelcome(token);
      return page("own", welcomePage({ path: pathOf(token), typed: UNTYPED, email }), { headers: UNLISTED });
    }),
    pageRoute("own", "POST", pathOf("{token}"), async (visit, { token = "" }) => {
      ownOrigin.require(visit.request.headers);
      const { email } = await desk.seeWelcome(token);
      const form = await readForm(visit);
      try {
        const entered = await desk.takeWelcome(
          token,
          checkCredentials(credentialsIn(form)),
          sourceOf(visit, deps, form),
        );
        if (email !== null) tellNewPassword(visit, entered, log);
        return letIn(visit, entered, deps, seeOther("own", HOME_PATH));
      } catch (error) {
        return askAgain(visit, error, form, (typed) => welcomePage({ path: pathOf(token), typed, email }));
      }
    }),
  ];
}
