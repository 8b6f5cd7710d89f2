import { lte, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { Tables } from "./command.ts";

export interface Until<Time = Date> {
  readonly finishedUntil: Time;
  /** An Idempotency-Key may name a later action that it matched by `dedupe`. */
  readonly boundUntil: Time;
}

/**
 * Holds for actions that may be deleted. A pending notification keeps an action, and so does an Idempotency-Key that may
 * name it; which keys do is not looked up, since every create would pay for that index.
 */
export function isDeletable(
  { actions, outbox }: Pick<Tables, "actions" | "outbox">,
  { finishedUntil, boundUntil }: Until<Date | Placeholder>,
): SQL {
  const isUnsent = sql`${outbox.actionId} = ${actions.id} and ${outbox.status} in ('pending', 'active')`;
  return sql`${lte(actions.finishedAt, finishedUntil)}
    and (${actions.dedupe} is null or ${lte(actions.createdAt, boundUntil)})
    and not exists (select 1 from ${outbox} where ${isUnsent})`;
}
