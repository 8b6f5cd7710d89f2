import type { Action } from "../../src/domain/action.ts";
import { dispatched } from "../../src/domain/dispatch.ts";
import { DECIDE_TRIES_MAX } from "../../src/domain/limits.ts";
import { refusalOfAsking } from "../../src/domain/rejections.ts";
import { type Created, type Creation, StoreUnavailable } from "../../src/ports/store.ts";
import { holderOf } from "./find.ts";
import { allOf } from "./guard.ts";
import type { StoreContext } from "./hands.ts";
import { bind, free, keysOf, take } from "./keys.ts";
import { unpaused } from "./pauses.ts";
import { createRejectionStore, mayAsk, noteRows } from "./rejections.ts";
import { type HeaderSeal, REQUEST_COLUMNS, requestValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import { claimedSideRows, sideRows } from "./side-rows.ts";
import type { Statement } from "./sql.ts";
import { textOnce } from "./texts.ts";

const COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS, "scheduled_at"];
const INSERT = textOnce(
  (guard) => `INSERT INTO actions (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map(() => "?").join(", ")} WHERE ${guard}`,
);

/**
 * Inserts an action unless a live one holds one of its keys, or its key has as many waiting for approval as it may. The
 * condition is in the statement, so of a hundred racing equals, in one commit or in many, the first inserts and the others
 * read its row. An idempotency key whose create matched by `dedupe` is stored in the same commit: its retry finds that
 * action also when it has failed since.
 */
export async function createAction(db: StoreContext, creation: Creation): Promise<Created> {
  const { action, claim, note } = creation;
  const { sql, writer, seal, recent, heldCounts } = db;
  const bound = bind(action, action.createdAt);
  const bindings = bound === null ? [] : [bound];
  let isBound = false;
  const write = async (written: readonly Statement[]) => {
    const done = await writer.write([...written, ...bindings]);
    isBound = bound !== null && done.at(-1)?.changes === 1;
    return done[0]?.changes === 1;
  };
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    // What was not inserted although nothing holds its keys is paused by now.
    const claimed = claim === null || tries > 0 ? null : dispatched(action, claim);
    const insert = () => write(statements(creation, claimed, seal));
    const isInserted = action.status === "awaiting_approval" ? await heldCounts.insert(action, insert) : await insert();
    if (isInserted === true) {
      if (claimed === null) recent.keep(action);
      return { kind: "created", claimed };
    }
    // Nothing was inserted because too many wait: the repeat of an older create is matched, and remembered, all the same.
    if (isInserted === null && bound !== null) await write([]);
    for (const { accountId, kind, key } of keysOf(action)) {
      const holder = await holderOf({ sql, seal }, { accountId, kind, key }, action.createdAt);
      if (holder !== null) return { kind: "matched", by: isBound ? "dedupe" : kind, action: holder };
    }
    if (isInserted === null) return { kind: "too_many_held" };
    if (note !== null && note !== undefined) {
      const counted = await createRejectionStore(db).count({ ...action, digest: note.digest }, action.createdAt);
      const refusal = refusalOfAsking(counted, note.reason, "forbidden");
      if (refusal !== null) return { kind: "rejected_before", refusal };
    }
    // It is paused, or the holder has failed between the two looks and its key is free again.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** One that is claimed as it is created is inserted as it is then; its timeline tells of both. */
function statements(creation: Creation, claimed: Action | null, seal: HeaderSeal): readonly Statement[] {
  const { action, events, outbox, note } = creation;
  const keys = keysOf(action);
  const isFree = keys.map((key) => free(key, action.createdAt));
  const isAllowed = mayAsk(action, note, action.createdAt);
  const guard = allOf([isAllowed, ...isFree, ...(claimed === null ? [] : [unpaused(action)])]);
  const insert = {
    sql: INSERT(guard.sql),
    args: [
      ...requestValues(action, seal),
      ...stateValues(claimed ?? action),
      action.createdAt.getTime(),
      ...guard.args,
    ],
  };
  const created = { after: action, at: action.createdAt, events, outbox };
  const side = claimed === null ? sideRows(created) : claimedSideRows(created, claimed);
  return [insert, ...keys.map((key) => take(key, action)), ...side, ...noteRows(action, note, action.createdAt)];
}
