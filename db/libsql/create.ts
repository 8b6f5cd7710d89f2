import { dispatched } from "../../src/domain/dispatch.ts";
import { DECIDE_TRIES_MAX } from "../../src/domain/limits.ts";
import { type Created, type Creation, StoreUnavailable } from "../../src/ports/store.ts";
import { claimOf } from "./claim.ts";
import { holderOf } from "./find.ts";
import { all, ALWAYS } from "./guard.ts";
import type { Hands } from "./hands.ts";
import { free, keysOf, take } from "./keys.ts";
import { type HeaderSeal, REQUEST_COLUMNS, requestValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import { sideRows } from "./side-rows.ts";
import type { Statement } from "./sql.ts";
import { textOnce } from "./texts.ts";

const COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS];
const INSERT = textOnce(
  (guard) => `INSERT INTO actions (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map(() => "?").join(", ")} WHERE ${guard}`,
);

/**
 * Inserts an action unless a live one holds one of its keys. The condition is in the statement, so of a hundred racing
 * equals, in one commit or in many, the first inserts and the others read its row.
 */
export async function createAction({ sql, writer, seal, recent }: Hands, creation: Creation): Promise<Created> {
  const { action, claim } = creation;
  const keys = keysOf(action);
  const now = action.createdAt;
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    const done = await writer.write(statements(creation, seal));
    if (done[0]?.changes === 1) {
      if (claim !== null) return { kind: "created", claimed: dispatched(action, claim) };
      recent.keep(action);
      return { kind: "created", claimed: null };
    }
    for (const { accountId, kind, key } of keys) {
      const holder = await holderOf({ sql, seal }, { accountId, kind, key }, now);
      if (holder !== null) return { kind: "matched", by: kind, action: holder };
    }
    // The holder has failed between the two looks, and its key is free again.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

function statements(creation: Creation, seal: HeaderSeal): readonly Statement[] {
  const { action, happenings, outbox, claim } = creation;
  const keys = keysOf(action);
  const guard = keys.length === 0 ? ALWAYS : all(keys.map((key) => free(key, action.createdAt)));
  const insert = {
    sql: INSERT(guard.sql),
    args: [...requestValues(action, seal), ...stateValues(action), ...guard.args],
  };
  const side = sideRows({ after: action, at: action.createdAt, happenings, outbox });
  return [insert, ...keys.map((key) => take(key, action)), ...side, ...(claim === null ? [] : claimOf(action, claim))];
}
