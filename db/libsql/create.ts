import type { Action } from "../../src/domain/action.ts";
import { dispatched } from "../../src/domain/dispatch.ts";
import { DECIDE_TRIES_MAX } from "../../src/domain/limits.ts";
import { type Created, type Creation, StoreUnavailable } from "../../src/ports/store.ts";
import { holderOf } from "./find.ts";
import { all, ALWAYS } from "./guard.ts";
import type { Hands } from "./hands.ts";
import { free, keysOf, take } from "./keys.ts";
import { type HeaderSeal, REQUEST_COLUMNS, requestValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import { claimedSideRows, sideRows } from "./side-rows.ts";
import type { Statement } from "./sql.ts";
import { textOnce } from "./texts.ts";

const COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS, "scheduled_at"];
const INSERT = textOnce(
  (guard) => `INSERT INTO actions (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map(() => "?").join(", ")} WHERE ${guard}`,
);

/**
 * Inserts an action unless a live one holds one of its keys. The condition is in the statement, so of a hundred racing
 * equals, in one commit or in many, the first inserts and the others read its row.
 */
export async function createAction({ sql, writer, seal, recent }: Hands, creation: Creation): Promise<Created> {
  const { action, claim } = creation;
  const claimed = claim === null ? null : dispatched(action, claim);
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    const [inserted] = await writer.write(statements(creation, claimed, seal));
    if (inserted?.changes === 1) {
      if (claimed === null) recent.keep(action);
      return { kind: "created", claimed };
    }
    for (const { accountId, kind, key } of keysOf(action)) {
      const holder = await holderOf({ sql, seal }, { accountId, kind, key }, action.createdAt);
      if (holder !== null) return { kind: "matched", by: kind, action: holder };
    }
    // The holder has failed between the two looks, and its key is free again.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** One that is claimed as it is created is inserted as it is then; its timeline tells of both. */
function statements(creation: Creation, claimed: Action | null, seal: HeaderSeal): readonly Statement[] {
  const { action, happenings, outbox } = creation;
  const keys = keysOf(action);
  const guard = keys.length === 0 ? ALWAYS : all(keys.map((key) => free(key, action.createdAt)));
  const insert = {
    sql: INSERT(guard.sql),
    args: [
      ...requestValues(action, seal),
      ...stateValues(claimed ?? action),
      action.createdAt.getTime(),
      ...guard.args,
    ],
  };
  const created = { after: action, at: action.createdAt, happenings, outbox };
  const side = claimed === null ? sideRows(created) : claimedSideRows(created, claimed);
  return [insert, ...keys.map((key) => take(key, action)), ...side];
}
