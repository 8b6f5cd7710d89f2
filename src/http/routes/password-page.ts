import type { PeopleDesk } from "../../accounts/people.ts";
import { checkPasswordChange } from "../../contract/credentials.ts";
import type { Log } from "../../ports/log.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { passwordChangedPage, passwordPage } from "../../web/password.tsx";
import { clientOf } from "../client.ts";
import type { SessionCookie } from "../cookie.ts";
import { askAgain, entering, tellNewPassword } from "../entry.ts";
import { page } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import type { FormOf, PersonOf } from "../session.ts";

export interface PasswordPageDeps {
  readonly peopleDesk: Pick<PeopleDesk, "changePassword">;
  readonly cookie: SessionCookie;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly log: Log;
}

const PATH = "/settings/password";

/** Another password for whoever is logged in and knows the one they have. */
export function passwordPages({ peopleDesk, cookie, personOf, formOf, log }: PasswordPageDeps): readonly Route[] {
  const change: AnswerPerson = async (visit, person) => {
    const form = await formOf(visit, person);
    try {
      const asked = checkPasswordChange({
        current_password: form.get("current_password") ?? null,
        password: form.get("password") ?? null,
      });
      const entered = await peopleDesk.changePassword(person, asked, clientOf(visit));
      tellNewPassword(visit, entered, log);
      const headers = entering(visit, entered, cookie);
      return page("own", passwordChangedPage({ visitor: entered.person }), { headers });
    } catch (error) {
      return askAgain(visit, error, form, (typed) => passwordPage({ visitor: person, typed }));
    }
  };
  return [
    personPage(personOf, "GET", PATH, (_visit, person) => {
      return page("own", passwordPage({ visitor: person, typed: UNTYPED }));
    }),
    personPage(personOf, "POST", PATH, change),
  ];
}
