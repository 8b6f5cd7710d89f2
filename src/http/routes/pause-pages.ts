import type { KeyService } from "../../accounts/keys.ts";
import type { PauseService } from "../../actions/pauses.ts";
import { checkReasonField } from "../../contract/decision.ts";
import { HTTP_STATUS } from "../../contract/error.ts";
import { DomainError } from "../../domain/errors.ts";
import { KEY_ID, PAUSE_ID } from "../../domain/id.ts";
import { PAUSES_PATH, pausesPage, type PausesPageProps } from "../../web/pauses.tsx";
import { page, seeOther } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import type { FormOf, Person, PersonOf } from "../session.ts";

export interface PausePageDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly keyService: Pick<KeyService, "list">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
}

/** Pauses for people, without script: the same use cases as /v1/pauses. */
export function pausePages(deps: PausePageDeps): readonly Route[] {
  const { pauseService, personOf, formOf } = deps;
  const show: AnswerPerson = async ({ search }, person) => {
    const chosen = new URLSearchParams(search).get("key") ?? "";
    return page("own", await html(deps, person, { chosen }));
  };
  const pause: AnswerPerson = async (context, person) => {
    const form = await formOf(context, person);
    const keyId = form.get("key_id") ?? "";
    try {
      // Left out it would be the whole account.
      if (keyId !== "" && !KEY_ID.test(keyId)) throw new DomainError("not_found", "There is no such key.");
      const reason = checkReasonField(form);
      await pauseService.pause(person.caller, { keyId: keyId === "" ? null : keyId, reason });
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== "validation_error") throw error;
      context.errorCode = error.code;
      const problem = error.issues.map(({ message }) => message).join(" ") || error.message;
      const again = { chosen: keyId, problem, reason: form.get("reason") };
      return page("own", await html(deps, person, again), { status: HTTP_STATUS[error.code] });
    }
    return seeOther("own", PAUSES_PATH);
  };
  const resume: AnswerPerson = async (context, person, { id = "" }) => {
    await formOf(context, person);
    if (!PAUSE_ID.test(id)) throw new DomainError("not_found", "There is no such pause.");
    await pauseService.resume(person.caller, id);
    return seeOther("own", PAUSES_PATH);
  };
  return [
    personPage(personOf, "GET", PAUSES_PATH, show),
    personPage(personOf, "POST", PAUSES_PATH, pause),
    personPage(personOf, "POST", `${PAUSES_PATH}/{id}/resume`, resume),
  ];
}

async function html(
  { pauseService, keyService }: PausePageDeps,
  person: Person,
  more: Pick<PausesPageProps, "chosen" | "problem" | "reason">,
): Promise<string> {
  const [pauses, keys] = await Promise.all([pauseService.list(person.caller), keyService.list(person.caller)]);
  return pausesPage({ user: person, pauses, keys, ...more });
}
