import type { PeopleService } from "../../accounts/people.ts";
import { checkPasswordChange } from "../../contract/credentials.ts";
import type { Log } from "../../ports/log.ts";
import { UNTYPED } from "../../web/credentials.tsx";
import { passwordChangedPage, passwordPage } from "../../web/password.tsx";
import { askAgain, type EntryCookies, startSession, tellNewPassword } from "../entry.ts";
import type { Flash } from "../flash.ts";
import { page, seeOther } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import { type FormOf, type PersonOf, sourceOf } from "../session.ts";

export interface PasswordPageDeps extends EntryCookies {
  readonly peopleService: Pick<PeopleService, "changePassword">;
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
  const { peopleService, personOf, tokenFormOf, flash, log } = deps;
  const change: AnswerPerson = async (context, person) => {
    const form = await tokenFormOf(context, person);
    try {
      const asked = checkPasswordChange({
        current_password: form.get("current_password") ?? null,
        password: form.get("password") ?? null,
      });
      const entered = await peopleService.changePassword(person, asked, sourceOf(context, deps, form));
      tellNewPassword(context, entered, log);
      return startSession(context, entered, deps, flash.redirect(entered.person, CHANGED_PATH, {}));
    } catch (error) {
      return askAgain(context, error, form, (typed) => passwordPage({ user: person, typed }));
    }
  };
  return [
    personPage(personOf, "GET", PATH, (_visit, person) => {
      return page("own", passwordPage({ user: person, typed: UNTYPED }));
    }),
    personPage(personOf, "POST", PATH, change),
    personPage(personOf, "GET", CHANGED_PATH, (context, person) => {
      if (flash.read(context, person) === null) return seeOther("own", PATH);
      return page("own", passwordChangedPage({ user: person }));
    }),
  ];
}
