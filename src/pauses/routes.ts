import type { PauseService } from "./service.ts";
import { API } from "../api/operations.ts";
import { checkCreatePause, pauseJson, pauseListJson } from "./schemas.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { NoQuery, checkReasonField } from "../actions/schemas.ts";
import { DomainError } from "../api/domain-error.ts";
import { PAUSE_ID, KEY_ID } from "../runtime/ids.ts";
import { json } from "../http/errors.ts";
import { readJson, parseFields } from "../http/body.ts";
import { readQuery } from "../http/query.ts";
import { type Route, routeOf } from "../http/router.ts";
import { callerOf } from "../http/context.ts";
import type { KeyService } from "../accounts/keys.ts";
import { HTTP_STATUS } from "../api/errors.ts";
import { PAUSES_PATH, pausesPage, type PausesPageProps } from "../pages/pauses.tsx";
import { page, seeOther } from "../http/page.ts";
import { type AnswerPerson, personPage, type FormOf, type Person, type PersonOf } from "../http/session.ts";

export interface PauseRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
}

const NONE = compileQuery(NoQuery);

export function pauseRoutes({ pauseService }: PauseRouteDeps): readonly Route[] {
  return [
    routeOf(API.listPauses, async (context) => {
      readQuery(context.search, NONE);
      return json(pauseListJson(await pauseService.list(callerOf(context))));
    }),
    routeOf(API.createPause, async (context) => {
      readQuery(context.search, NONE);
      const request = checkCreatePause((await readJson(context, parseFields)).value);
      const { pause, isNew } = await pauseService.pause(callerOf(context), request);
      return json(pauseJson(pause), isNew ? 201 : 200);
    }),
    routeOf(API.endPause, async (context, params) => {
      readQuery(context.search, NONE);
      const id = params["id"] ?? "";
      if (!PAUSE_ID.test(id)) throw new DomainError("not_found", "There is no such pause.");
      await pauseService.resume(callerOf(context), id);
      return new Response(null, { status: 204 });
    }),
  ];
}

export interface PausePageDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly keyService: Pick<KeyService, "list">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
}

/** The pages of pauses, with the same use cases as /v1/pauses. They work without script. */
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
      // A malformed key id must not be dropped, or the whole account would be paused.
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
