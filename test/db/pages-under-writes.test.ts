import { expect, test } from "bun:test";
import { cancel } from "../../src/core/changes.ts";
import { LIST_SCAN_ROWS_MAX, SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { openFile } from "../../db/libsql/file.ts";
import type { Store } from "../../src/core/store.ts";
import { aBulkJob, aDecision, anAuditEntry, answered, aQuery, later, settled, writeOf } from "../support/factory.ts";
import { putEmptyDatabase, storeOver, temporaryFolder } from "../support/store.ts";
import { activeAction, claimed, createdAction, failedAction, stored } from "./conformance/steps.ts";

/** A store in which something happens after each read. */
async function openDisturbed(disturb: (store: Store) => Promise<void>) {
  const folder = await temporaryFolder();
  await putEmptyDatabase(folder.file);
  const sql = openFile(folder.file);
  const quiet = storeOver(sql);
  const store = storeOver({
    ...sql,
    async read(statement) {
      const rows = await sql.read(statement);
      await disturb(quiet);
      return rows;
    },
  });
  const close = async () => {
    await quiet.close();
    await folder[Symbol.asyncDispose]();
  };
  return { quiet, store, [Symbol.asyncDispose]: close };
}

test("a bulk job begins on each action that matched, once, whatever is created and settled between two reads of its search", async () => {
  const leaving: (() => Promise<unknown>)[] = [];
  let at = 0;
  await using db = await openDisturbed(async ({ actions }) => {
    at += 1;
    // One comes to match, or another one no longer does.
    if (at % 2 === 0) await failedAction(actions, { createdAt: later(at) });
    else await leaving.pop()?.();
  });
  const { actions } = db.quiet;
  const staying: string[] = [];
  for (let made = 0; made < 3 * SEARCH_STEP_ROWS; made += 1) {
    if (made % 3 > 0) staying.push((await failedAction(actions)).id);
    else {
      const pending = await createdAction(actions);
      leaving.push(() => actions.apply(writeOf(cancel(pending, aDecision()))));
    }
  }
  const query = aQuery({ statuses: ["failed", "pending"], limit: LIST_SCAN_ROWS_MAX });
  for (let round = 0; round < 8; round += 1) {
    const { actions: matched } = await db.store.actions.matching(query, LIST_SCAN_ROWS_MAX);
    const ids = matched.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)]);
    expect(staying.filter((id) => !ids.includes(id))).toEqual([]);
    expect(await db.quiet.bulk.add(aBulkJob(), matched, anAuditEntry())).toBe(true);
  }
});

test("no attempt is taken for left behind that ended between the two reads of a page, nor one that began", async () => {
  const meanwhile: (() => Promise<unknown>)[] = [];
  await using db = await openDisturbed(async () => void (await meanwhile.pop()?.()));
  const { actions } = db.quiet;
  const [ended, again, left] = [await activeAction(actions), await activeAction(actions), await activeAction(actions)];
  meanwhile.push(async () => {
    await actions.apply(settled(ended, answered(200)));
    await actions.apply(settled(again, answered(500)));
    const retried = await stored(actions, again);
    await claimed(actions, retried, { now: later(60_000), leaseUntil: later(120_000) });
  });
  const orphans = await db.store.actions.orphans(later(46_000), 10, null);
  expect(orphans.map(({ id }) => id)).toEqual([left.id]);
  // A page of what has ended meanwhile is not the last one.
  meanwhile.push(async () => actions.apply(settled(left, answered(200))));
  const behind = await activeAction(actions);
  const first = await db.store.actions.orphans(later(46_000), 1, null);
  expect(first.map(({ id }) => id)).toEqual([behind.id]);
});
