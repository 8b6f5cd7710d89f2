import Type, { type Static } from "typebox";
import { dateTime, nullable, choice, yesNo } from "../api/schema-helpers.ts";
import { bodyOperation, createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import { FIRST_STEPS, type FirstStepService, type FirstStepState } from "./first-steps.ts";

const FirstStepJson = Type.Object(
  {
    step: choice(
      FIRST_STEPS,
      "action: created an action; approval: had one approved; agent: created one by an MCP client; signature: checked a signature that matched.",
      "action",
    ),
    done: yesNo("Whether the account has done it.", true),
    done_at: nullable(dateTime("When it was done first; null: not yet, or some seconds ago.")),
  },
  { title: "FirstStep", description: "A first step of an account." },
);

export const FirstStepsJson = Type.Object(
  {
    data: Type.Array(FirstStepJson, { description: "The steps, in the order in which the pages show them." }),
    hidden: yesNo("Whether they are hidden for everybody of the account. A person can hide them on the pages.", false),
  },
  { title: "FirstSteps", description: "What an account does to begin. Each step ticks itself." },
);

export type FirstStepsJson = Static<typeof FirstStepsJson>;

export const ChangeFirstSteps = Type.Object(
  { hidden: yesNo("true hides them for everybody; false shows them again.", true) },
  { title: "ChangeFirstSteps", additionalProperties: false, description: "Whether the pages show the first steps." },
);

export interface FirstStepRouteDeps {
  readonly firstSteps: Pick<FirstStepService, "state" | "hide" | "show">;
}

/** /v1/first-steps: what the overview of a new account shows. */
export function firstStepRoutes({ firstSteps }: FirstStepRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/first-steps",
      async ({ caller }) => jsonOf(serializeSteps(await firstSteps.state(caller))),
      operation({
        operationId: "getFirstSteps",
        permission: "read",
        tag: "Auth",
        summary: "Get the first steps of the account",
        description:
          "The checklist of a new account. The pages show it until every step is done, it is hidden, or the account has 100 actions.",
        answers: { 200: { description: "The steps.", schema: FirstStepsJson } },
      }),
    )
    .patch(
      "/v1/first-steps",
      async ({ caller, body }) => {
        await (body.hidden ? firstSteps.hide(caller) : firstSteps.show(caller));
        return jsonOf(serializeSteps(await firstSteps.state(caller)));
      },
      bodyOperation({
        operationId: "changeFirstSteps",
        permission: "manage",
        tag: "Auth",
        summary: "Hide or show the first steps of the account",
        description: "For everybody of the account. What a person has hidden for themselves stays hidden for them.",
        body: jsonBody(ChangeFirstSteps),
        answers: { 200: { description: "The steps.", schema: FirstStepsJson } },
      }),
    );
}

function serializeSteps({ times, isHidden }: FirstStepState): FirstStepsJson {
  const data = FIRST_STEPS.map((step) => ({
    step,
    done: times.has(step),
    done_at: times.get(step)?.toISOString() ?? null,
  }));
  return { data, hidden: isHidden };
}
