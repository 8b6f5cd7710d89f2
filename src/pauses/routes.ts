import Type from "typebox";
import type { PauseService } from "./service.ts";
import { CreatePause, PauseId, PauseJson, PauseList, serializePause } from "./pause.ts";
import { checkReasonField } from "../pages/decision-form.ts";
import { DomainError } from "../api/domain-error.ts";
import { KEY_ID } from "../runtime/ids.ts";
import { json, page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type FormOf, type Person, type PersonOf } from "../http/session.ts";
import {
  API_ERRORS,
  BODY_ERRORS,
  bodyOperation,
  createApiRoutes,
  jsonBody,
  operation,
  pathParams,
} from "../http/operation.ts";
import type { KeyService } from "../accounts/keys.ts";
import { INVALID, showFormAgain } from "../http/errors.ts";
import { PAUSES_PATH, pausesPage, type PausesPageProps } from "../pages/pauses.tsx";

export interface PauseRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
}

const PauseParams = pathParams(Type.Object({ id: PauseId }), "There is no such pause.");

export function pauseRoutes({ pauseService }: PauseRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/pauses",
      async ({ caller }) => json(JSON.stringify({ data: (await pauseService.list(caller)).map(serializePause) })),
      operation({
        operationId: "listPauses",
        permission: "manage",
        tag: "Auth",
        summary: "List the pauses in force",
        description: "Oldest first. The audit log has earlier pauses.",
        answers: { 200: { description: "The pauses in force.", schema: PauseList } },
        errors: API_ERRORS,
      }),
    )
    .post(
      "/v1/pauses",
      async ({ caller, body: { key_id: keyId = null, reason = null } }) => {
        const { pause, isNew } = await pauseService.pause(caller, { keyId, reason });
        return json(JSON.stringify(serializePause(pause)), isNew ? 201 : 200);
      },
      bodyOperation({
        operationId: "createPause",
        permission: "manage",
        tag: "Auth",
        summary: "Pause sending for the account or for one key",
        description:
          "No new attempt starts after the response; attempts under way end as usual. Actions can still be created, and wait. Returns 200 and the existing pause where one is in force.",
        body: jsonBody(CreatePause),
        answers: {
          201: { description: "The pause. No attempt that it covers is started any more.", schema: PauseJson },
          200: { description: "The pause that was in force already.", schema: PauseJson },
        },
        errors: [...API_ERRORS, ...BODY_ERRORS, "missing_body", "not_found"],
      }),
    )
    .delete(
      "/v1/pauses/:id",
      async ({ caller, params }) => {
        await pauseService.resume(caller, params.id);
        return new Response(null, { status: 204 });
      },
      operation({
        operationId: "endPause",
        permission: "manage",
        tag: "Auth",
        summary: "End a pause",
        description: "Waiting actions that are due are sent at once. Ending an ended pause returns 204 again.",
        params: PauseParams,
        answers: { 204: { description: "The pause has ended.", schema: null } },
        errors: [...API_ERRORS, "not_found"],
      }),
    );
}

export interface PausePageDeps extends PauseRouteDeps {
  readonly keyService: Pick<KeyService, "list">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
}

/** The pages of pauses, with the same service as /v1/pauses. They work without script. */
export function pausePages(deps: PausePageDeps) {
  const { pauseService, personOf, formOf } = deps;
  return createPersonRoutes(personOf)
    .get(PAUSES_PATH, async ({ context, person }) => {
      const chosen = new URLSearchParams(context.search).get("key") ?? "";
      return page("own", await html(deps, person, { chosen }));
    })
    .post(PAUSES_PATH, async ({ context, person }) => {
      const form = await formOf(context, person);
      const keyId = form.get("key_id") ?? "";
      try {
        // A malformed key id must not be dropped, or the whole account would be paused.
        if (keyId !== "" && !KEY_ID.test(keyId)) throw new DomainError("not_found", "There is no such key.");
        const reason = checkReasonField(form);
        await pauseService.pause(person.caller, { keyId: keyId === "" ? null : keyId, reason });
      } catch (error) {
        const typed = { chosen: keyId, reason: form.get("reason") };
        return showFormAgain(context, error, INVALID, (problem) => html(deps, person, { ...typed, problem }));
      }
      return seeOther("own", PAUSES_PATH);
    })
    .post(
      `${PAUSES_PATH}/:id/resume`,
      async ({ context, person, params }) => {
        await formOf(context, person);
        await pauseService.resume(person.caller, params.id);
        return seeOther("own", PAUSES_PATH);
      },
      { params: PauseParams },
    );
}

async function html(
  { pauseService, keyService }: PausePageDeps,
  person: Person,
  more: Pick<PausesPageProps, "chosen" | "problem" | "reason">,
): Promise<string> {
  const [pauses, keys] = await Promise.all([pauseService.list(person.caller), keyService.list(person.caller)]);
  return pausesPage({ user: person, pauses, keys, ...more });
}
