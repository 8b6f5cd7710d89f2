import { and, eq } from "drizzle-orm";
import { command, type Tables } from "./command.ts";

type FirstStep = Tables["firstSteps"]["$inferInsert"];

/** Notes a step; one that is stored keeps its time. */
export const add = command(async ({ db, tables: { firstSteps } }, step: FirstStep) => {
  await db.insert(firstSteps).values(step).onConflictDoNothing();
});

export const remove = command(
  async ({ db, tables: { firstSteps } }, { accountId, personId, step }: Omit<FirstStep, "at">) => {
    const isOfPerson = and(eq(firstSteps.accountId, accountId), eq(firstSteps.personId, personId));
    await db.delete(firstSteps).where(and(isOfPerson, eq(firstSteps.step, step)));
  },
);
