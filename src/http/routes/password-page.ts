import type { PeopleDesk } from "../../accounts/people.ts";
import { checkPasswordChange } from "../../contract/credentials.ts";
import type { Log } from "../../ports/log.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { passwordChangedPage, passwordPage } from "../../web/password.tsx";
import { askAgain, type EntryCookies, letIn, tellNewPassword } from "../entry.ts";
import type { Flash } from "../flash.ts";
import { page, seeOther } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import { type FormOf, type PersonOf, sourceOf } from "../session.ts";

export interface PasswordPageDeps extends EntryCookies {
  readonly peopleDesk: Pick<PeopleDesk, "changePassword">;
  readonly personOf: PersonOf;
  /** The form asks for the password itself. */
  readonly tokenFormOf: FormOf;
  readonly flash: Flash;
  readonly log: Log;
}

const PATH = "/settings/password";
const CHANGED_PATH = `${PATH}/changed`;

/** Another password for whoever is logged in and knows the one they have. */
export function passwordPages(deps: PasswordPageDeps): readonly Route[] {
  const { peopleDesk, personOf, tokenFormOf, flash, log } = deps;
  const change: AnswerPerson = async (visit, person) => {
    const form = await tokenFormOf(visit, person);
    try {
      const asked = checkPasswordChange({
        current_password: form.get("current_password") ?? null,
        password: form.get("password") ?? null,
      });
      const entered = await peopleDesk.changePassword(person, asked, sourceOf(visit, deps, form));
      tellNewPassword(visit, entered, log);
      return letIn(visit, entered, deps, flash.redirect(entered.person, CHANGED_PATH, {}));
    } catch (error) {
      return askAgain(visit, error, form, (typed) => passwordPage({ visitor: person, typed }));
    }
  };
  return [
    personPage(personOf, "GET", PATH, (_visit, person) => {
      return page("own", passwordPage({ visitor: person, typed: UNTYPED }));
    }),
    personPage(personOf, "POST", PATH, change),
    personPage(personOf, "GET", CHANGED_PATH, (visit, person) => {
      if (flash.read(visit, person) === null) return seeOther("own", PATH);
      return page("own", passwordChangedPage({ visitor: person }));
    }),
  ];
}
