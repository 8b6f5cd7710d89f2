import type { Action } from "../../src/domain/action.ts";
import type { Change } from "../../src/domain/change.ts";
import type { ChangeWrite } from "../../src/ports/store.ts";
import { ALWAYS, either, type Guard } from "./guard.ts";
import type { Hands } from "./hands.ts";
import { free, heldBy, type KeyOf, take } from "./keys.ts";
import { RESULT_COLUMNS, resultValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import { sideRows } from "./side-rows.ts";
import type { Statement } from "./sql.ts";
import { textOnce } from "./texts.ts";

const set = (columns: readonly string[]) => columns.map((column) => `${column} = ?`).join(", ");
const STATE = [...STATE_COLUMNS, "scheduled_at"];
const UPDATE_STATE = textOnce((guard) => `UPDATE actions SET ${set(STATE)} WHERE id = ? AND revision = ? AND ${guard}`);
const UPDATE_ALL = textOnce(
  (guard) => `UPDATE actions SET ${set([...STATE, ...RESULT_COLUMNS])} WHERE id = ? AND revision = ? AND ${guard}`,
);

/** Writes a change with its side rows if the action still has the revision that it was decided on; tells whether. */
export async function applyChange({ writer, recent }: Hands, write: ChangeWrite): Promise<boolean> {
  const [updated] = await writer.write(statements(write));
  const isWritten = updated?.changes === 1;
  if (isWritten) recent.keep(write.change.after);
  return isWritten;
}

function statements({ change, at, outbox }: ChangeWrite): readonly Statement[] {
  const { before, after, happenings } = change;
  const side = sideRows({ after, at, happenings, outbox });
  const key = retakenKey(before, after);
  if (key === null) return [update(change, at, ALWAYS), ...side];
  const isOurs = either(free(key, at), heldBy(key, before.id));
  return [update(change, at, isOurs), take(key, before), ...side];
}

/** A new run makes the action answer for its dedupe key again, unless another live action does by now. */
function retakenKey(before: Action, after: Action): KeyOf | null {
  if (after.run === before.run || after.dedupe === null) return null;
  return { accountId: after.accountId, kind: "dedupe", key: after.dedupe };
}

/** A result that the change leaves as it was is not written again: it may be a quarter of a megabyte. */
function update({ before, after }: Change, at: Date, guard: Guard): Statement {
  const keepsResult = after.result === before.result;
  const state = [...stateValues(after), at.getTime()];
  const values = keepsResult ? state : [...state, ...resultValues(after.result)];
  return {
    sql: (keepsResult ? UPDATE_STATE : UPDATE_ALL)(guard.sql),
    args: [...values, before.id, before.revision, ...guard.args],
  };
}
