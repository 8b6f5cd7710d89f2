import { FIRST_ACTIONS_READ_MAX } from "../core/limits.ts";
import type { FirstStepName, FirstStepStore } from "../core/activity-store.ts";
import type { Clock } from "../core/clock.ts";
import { authorize, type Caller, mayDo, type Permission } from "../core/roles.ts";

/** What an account does to begin: what is done was done, and nobody has to say so. */
export const FIRST_STEPS = ["action", "approval", "agent", "signature"] as const satisfies readonly FirstStepName[];

export interface FirstSteps {
  readonly done: ReadonlySet<FirstStepName>;
  /** The account has no action yet. */
  readonly isNew: boolean;
}

export interface FirstStepState {
  /** Those that were done, with the time; null: just now, and not counted yet. */
  readonly times: ReadonlyMap<FirstStepName, Date | null>;
  /** By this person, or for everybody. */
  readonly isHidden: boolean;
  /** All are done, or the account has many actions. */
  readonly isOver: boolean;
}

interface FirstStepDeps {
  readonly firstSteps: FirstStepStore;
  readonly clock: Pick<Clock, "now">;
}

export type FirstStepService = ReturnType<typeof createFirstStepService>;

/**
 * The first steps of accounts: a first action, a first approval, a first action of an MCP client, a first verified signature.
 * Each is known from what was stored of it (`src/events/activity-job.ts`, `verify-signature.ts`), or from the newest actions,
 * so that it shows at once.
 */
export function createFirstStepService({ firstSteps, clock }: FirstStepDeps) {
  const stateOf = async ({ accountId, personId = "" }: Caller): Promise<FirstStepState> => {
    const [stored, newest] = await Promise.all([firstSteps.done(accountId, personId), firstSteps.newest(accountId)]);
    const times = new Map<FirstStepName, Date | null>(stored.map(({ step, at }) => [step, at]));
    const note = (step: FirstStepName, isDone: boolean) => void (isDone && !times.has(step) && times.set(step, null));
    note("action", newest.length > 0);
    note(
      "approval",
      newest.some(({ approvedBy }) => approvedBy !== null),
    );
    note(
      "agent",
      newest.some(({ createdBy }) => createdBy.startsWith("mcp:")),
    );
    const isHidden = times.delete("hidden");
    const isOver = newest.length >= FIRST_ACTIONS_READ_MAX || FIRST_STEPS.every((step) => times.has(step));
    return { times, isHidden, isOver };
  };
  return {
    /** Null: all are done, this person has hidden them, or the account is long past them. */
    async read(caller: Caller): Promise<FirstSteps | null> {
      authorize(caller, "read");
      const { times, isHidden, isOver } = await stateOf(caller);
      return isHidden || isOver ? null : { done: new Set(times.keys()), isNew: !times.has("action") };
    },

    /** What is known of them, also when nobody needs them any more. */
    async state(caller: Caller): Promise<FirstStepState> {
      authorize(caller, "read");
      return stateOf(caller);
    },

    /** Hides them: for this person; by a key, which needs the right to manage, for everybody of the account. */
    async hide(caller: Caller): Promise<void> {
      authorize(caller, forWhom(caller));
      const { accountId, personId = "" } = caller;
      await firstSteps.add({ accountId, personId, step: "hidden", at: clock.now() });
    },

    /** Shows them again: to this person; by whoever may manage the account, also where they are hidden for everybody. */
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
