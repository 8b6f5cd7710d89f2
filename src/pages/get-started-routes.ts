import { firstAction } from "../accounts/first-action.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import { authorize } from "../core/roles.ts";
import { createCheckCreate, type CreateRules } from "../actions/create-schema.ts";
import type { ActionService } from "../actions/service.ts";
import { page, seeOther } from "../http/response.ts";
import { type AnswerPerson, createPersonRoutes, type PersonRouteDeps } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { FORM_ID, type Ids } from "../core/ids.ts";
import { GET_STARTED_PATH, getStartedPage, TEST_ACTION_PATH } from "./first-steps.tsx";
import { answerForm } from "./forms.tsx";
import { actionPath } from "../ui/layout.tsx";

interface GetStartedDeps extends CreateRules, PersonRouteDeps {
  readonly actionService: Pick<ActionService, "create">;
  readonly firstSteps: Pick<FirstStepService, "state">;
  readonly clock: Pick<Clock, "now">;
  readonly ids: Pick<Ids, "request">;
  readonly baseUrl: string;
}

/** Where an owner begins, with a first action by one button. */
export function getStartedPages(deps: GetStartedDeps) {
  const { personOf, firstSteps, ids, baseUrl } = deps;
  return (
    createPersonRoutes(personOf)
      .get(GET_STARTED_PATH, async ({ person }) => {
        const { times } = await firstSteps.state(person.caller);
        const steps = { done: new Set(times.keys()), isNew: !times.has("action") };
        return page("own", getStartedPage({ user: person, steps, baseUrl, formId: ids.request() }));
      })
      // Where the address of a refused form is loaded again.
      .get(TEST_ACTION_PATH, () => seeOther("own", GET_STARTED_PATH))
      .post(TEST_ACTION_PATH, sendTest(deps))
  );
}

function sendTest({ actionService, formOf, clock, baseUrl, ...rules }: GetStartedDeps): AnswerPerson {
  const checkCreate = createCheckCreate(rules);
  return answerForm(formOf, async ({ person, form }) => {
    authorize(person.caller, "create");
    const formId = form.get("form_id") ?? "";
    const { caller } = person;
    const { request } = checkCreate({
      value: { ...firstAction(baseUrl), title: "My first action" },
      textOf: () => "",
      idempotencyKey: FORM_ID.test(formId) ? formId : null,
      hold: caller.hold,
      role: caller.role,
      now: clock.now(),
    });
    const { action } = await actionService.create(caller, request);
    return actionPath(action.id);
  });
}
