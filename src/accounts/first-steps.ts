import type { AppPart } from "../runtime/app-context.ts";
import { FIRST_ACTIONS_READ_MAX } from "../core/limits.ts";
import type { FirstStepName } from "../core/activity.ts";
import { authorize, type Caller, mayDo, type Permission } from "../core/roles.ts";
import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";

/** The first steps of an account, which are noticed when they are done. */
export const FIRST_STEPS = ["action", "approval", "agent", "signature"] as const satisfies readonly FirstStepName[];

export interface FirstStepProgress {
  readonly done: ReadonlySet<FirstStepName>;
  /** The account has no action yet. */
  readonly isNew: boolean;
}

type FirstStepService = ReturnType<typeof createFirstStepService>;

/**
 * The first steps of accounts: a first action, a first approval, a first action of an MCP client, a first verified signature. Each
 * is stored (`src/events/activity-job.ts`, `signature-check.ts`), or read from the newest actions, so that it shows at once.
 */
export function createFirstStepService({ store: { firstSteps }, clock }: AppPart<"clock", "firstSteps">) {
  /**
   * The state of the steps, even if nobody needs the list any more. `times`: when steps were done; null: just now, not counted yet.
   * `isHidden`: hidden by this person or for everybody. `isOver`: all are done, or the account has many actions.
   */
  const state = async (caller: Caller) => {
    authorize(caller, "read");
    const { accountId, personId = "" } = caller;
    const [stored, newest] = await Promise.all([firstSteps.done(accountId, personId), firstSteps.newest(accountId)]);
    const times = new Map<FirstStepName, Date | null>(stored.map(({ step, at }) => [step, at]));
    const doneLately = {
      action: newest.length > 0,
      approval: newest.some(({ approvedBy }) => approvedBy !== null),
      agent: newest.some(({ createdBy }) => createdBy.startsWith("mcp:")),
    };
    for (const step of ["action", "approval", "agent"] as const) {
      if (doneLately[step] && !times.has(step)) times.set(step, null);
    }
    const isHidden = times.delete("hidden");
    const isOver = newest.length >= FIRST_ACTIONS_READ_MAX || FIRST_STEPS.every((step) => times.has(step));
    return { times, isHidden, isOver };
  };
  return {
    state,

    /** Null: all are done, this person has hidden them, or the account is long past them. */
    async read(caller: Caller): Promise<FirstStepProgress | null> {
      const { times, isHidden, isOver } = await state(caller);
      return isHidden || isOver ? null : { done: new Set(times.keys()), isNew: !times.has("action") };
    },

    /** Hides the list: for this person; if a key calls it, which must be allowed to manage, for the whole account. */
    async hide(caller: Caller): Promise<void> {
      authorize(caller, forWhom(caller));
      const { accountId, personId = "" } = caller;
      await firstSteps.add({ accountId, personId, step: "hidden", at: clock.now() });
    },

    /** Shows the list again to this person; a caller who may manage the account also shows it to everybody. */
    async show(caller: Caller): Promise<void> {
      authorize(caller, forWhom(caller));
      const { accountId, personId = "" } = caller;
      const hiddenFor = mayDo(caller.role, "manage") ? new Set([personId, ""]) : [personId];
      for (const one of hiddenFor) await firstSteps.remove({ accountId, personId: one, step: "hidden" });
    },
  };
}

/** Only a person has a list of their own. */
function forWhom({ personId }: Caller): Permission {
  return personId === undefined ? "manage" : "read";
}

const FirstStepJson = t.answerObject("FirstStep", "A first step of an account.", {
  step: t.choice(
    FIRST_STEPS,
    "action: created an action; approval: had one approved; agent: created one by an MCP client; signature: checked a signature that matched.",
    "action",
  ),
  done: t.yesNo("Whether the account has done it.", true),
  done_at: t.nullable(t.dateTime("When it was done first; null: not yet, or some seconds ago.")),
});

export const FirstStepsJson = t.answerObject("FirstSteps", "What an account does to begin. Each step ticks itself.", {
  data: Type.Array(FirstStepJson, { description: "The steps, in the order in which the pages show them." }),
  hidden: t.yesNo("Whether they are hidden for everybody of the account. A person can hide them on the pages.", false),
});

export const ChangeFirstStepsBody = t.requestObject("ChangeFirstSteps", "Whether the pages show the first steps.", {
  hidden: t.yesNo("true hides them for everybody; false shows them again.", true),
});

export function firstStepRoutes({ firstSteps }: { readonly firstSteps: FirstStepService }) {
  const answer = async (caller: Caller) => {
    const { times, isHidden: hidden } = await firstSteps.state(caller);
    const data = FIRST_STEPS.map((step) => ({ step, done: times.has(step), doneAt: times.get(step) ?? null }));
    return jsonResponse(toJson(FirstStepsJson, { data, hidden }));
  };
  return createApiRoutes()
    .get(
      "/v1/first-steps",
      ({ caller }) => answer(caller),
      operation({
        operationId: "getFirstSteps",
        permission: "read",
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
        return answer(caller);
      },
      operation({
        operationId: "changeFirstSteps",
        permission: "manage",
        summary: "Hide or show the first steps of the account",
        description: "Applies to everyone in the account. What a person has hidden for themselves stays hidden.",
        body: jsonBody(ChangeFirstStepsBody),
        answers: { 200: { description: "The steps.", schema: FirstStepsJson } },
      }),
    );
}
