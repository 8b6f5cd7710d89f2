import { and, desc, eq, or } from "drizzle-orm";
import { FIRST_ACTIONS_READ_MAX } from "../../src/core/limits.ts";
import type { FirstStepStore } from "../../src/core/activity-store.ts";
import * as commands from "../commands/first-steps.ts";
import type { StoreContext } from "./context.ts";
import { read } from "./read.ts";

/** What accounts did for the first time; a step that is stored keeps its time. */
export function createFirstStepStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FirstStepStore {
  return {
    async done(accountId, personId) {
      return OF_PERSON.all(reader, { accountId, personId });
    },
    newest: (accountId) => NEWEST.all(reader, { accountId }),
    add: (step) => writer.run(commands.add, step),
    remove: (step) => writer.run(commands.remove, step),
  };
}

const NEWEST = read({ accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db
    .select({ createdBy: actions.createdBy, approvedBy: actions.approvedBy })
    .from(actions)
    .where(eq(actions.accountId, arg.accountId))
    .orderBy(desc(actions.id))
    .limit(FIRST_ACTIONS_READ_MAX),
);

/** At most one row for each step, and one more of the person. */
const OF_PERSON = read({ accountId: "text", personId: "text" }, ({ db, tables: { firstSteps } }, arg) =>
  db
    .select({ step: firstSteps.step, at: firstSteps.at })
    .from(firstSteps)
    .where(
      and(
        eq(firstSteps.accountId, arg.accountId),
        or(eq(firstSteps.personId, ""), eq(firstSteps.personId, arg.personId)),
      ),
    ),
);
