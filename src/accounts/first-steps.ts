import { FIRST_ACTIONS_READ_MAX } from "../config/limits.ts";
import type { FirstStepName, FirstStepStore } from "../../db/activity-store.ts";
import type { Clock } from "../runtime/clock.ts";
import { authorize, type Caller } from "./roles.ts";

/** What an account does to begin: what is done was done, and nobody has to say so. */
export const FIRST_STEPS = ["action", "approval", "agent", "signature"] as const satisfies readonly FirstStepName[];

export interface FirstSteps {
  readonly done: ReadonlySet<FirstStepName>;
  /** The account has no action yet. */
  readonly isNew: boolean;
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
  return {
    /** Null: all are done, this person has hidden them, or the account is long past them. */
    async read(caller: Caller): Promise<FirstSteps | null> {
      authorize(caller, "read");
      const { accountId, personId = "" } = caller;
      const [stored, newest] = await Promise.all([firstSteps.done(accountId, personId), firstSteps.newest(accountId)]);
      const done = new Set(stored.map(({ step }) => step));
      if (done.has("hidden") || newest.length >= FIRST_ACTIONS_READ_MAX) return null;
      if (newest.length > 0) done.add("action");
      if (newest.some(({ approvedBy }) => approvedBy !== null)) done.add("approval");
      if (newest.some(({ createdBy }) => createdBy.startsWith("mcp:"))) done.add("agent");
      if (FIRST_STEPS.every((step) => done.has(step))) return null;
      return { done, isNew: !done.has("action") };
    },

    /** Hides them for this person for good. */
    async hide(caller: Caller): Promise<void> {
      authorize(caller, "read");
      const { accountId, personId = "" } = caller;
      await firstSteps.add({ accountId, personId, step: "hidden", at: clock.now() });
    },
  };
}
