import { checkCredentials } from "../../contract/credentials.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { logInPage } from "../../web/log-in.tsx";
import { signUpPage } from "../../web/sign-up.tsx";
import { welcomePage } from "../../web/welcome.tsx";
import { askAgain, credentialsIn, entering, tellNewPassword } from "../entry.ts";
import { readForm } from "../form.ts";
import { HOME_PATH, nextIn } from "../next.ts";
import { page, seeOther } from "../page.ts";
import { pageRoute, type Route } from "../route.ts";
import type { Visit } from "../visit.ts";
import type { AuthRouteDeps } from "./auth.ts";

/** The pages by which people come in; what they send goes to /auth, but for the one-time link. */
export function entryPages(deps: AuthRouteDeps): readonly Route[] {
  const { peopleDesk: desk, personOf } = deps;
  const unlessIn = (show: (next: string | null) => string) => async (visit: Visit) => {
    const next = nextIn(visit.search);
    if ((await personOf(visit)) !== null) return seeOther("own", next ?? HOME_PATH);
    return page("own", show(next));
  };
  return [
    pageRoute("own", "GET", "/login", (visit) =>
      unlessIn((next) => logInPage({ typed: UNTYPED, next, signupsOpen: desk.signUp.isOpen }))(visit),
    ),
    pageRoute("own", "GET", "/signup", (visit) => {
      desk.signUp.requireOpen();
      return unlessIn((next) => signUpPage({ typed: UNTYPED, next }))(visit);
    }),
    ...welcomeRoutes(deps),
  ];
}

/** The token is the path: what it opens is not for a search engine. */
const UNLISTED = { "x-robots-tag": "noindex, nofollow, noarchive" } as const;

/** One-time links. Looking changes nothing, since mail scanners and previews look too; the button takes the link. */
function welcomeRoutes({ peopleDesk: desk, cookie, ownOrigin, log }: AuthRouteDeps): readonly Route[] {
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
        const entered = await desk.takeWelcome(token, checkCredentials(credentialsIn(form)));
        if (email !== null) tellNewPassword(visit, entered, log);
        return seeOther("own", HOME_PATH, entering(visit, entered, cookie));
      } catch (error) {
        return askAgain(visit, error, form, (typed) => welcomePage({ path: pathOf(token), typed, email }));
      }
    }),
  ];
}
