import { expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { answering } from "../actions/senders.ts";
import { verifies } from "../spec/verifies.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";

/** Approves an action, lets the process die before anything is sent, alters its row by hand, and starts again. */
async function startOverAltered(column: string, value: string) {
  await using folder = await temporaryFolder();
  const first = await openEngine({ folder: folder.path, starts: false });
  const { id } = await first.create({ approve: true, body: '{"amount":5}', url: "http://127.0.0.1:9/pay" });
  await first.desk.approve(first.owner, id, null);
  await first.abandon();
  const file = openFile(`${folder.path}/outgate.db`);
  const text = `UPDATE actions SET ${column} = ? WHERE id = ?`;
  await file.batch([{ sql: text, args: [value, id] }]);
  await file.close();
  const sender = answering(answered(200));
  await using second = await openEngine({ folder: folder.path, sender });
  const end = await second.saw(id, column === "dedupe" ? { status: "completed" } : { status: "failed" });
  return { end, sent: sender.sent, told: await second.happenings(id) };
}

test.each([
  ["url", "http://127.0.0.1:9/pay/another"],
  ["method", "DELETE"],
  ["body", '{"amount":50000}'],
])("a request whose %s is not what was approved is not sent, and its action says why", async (column, value) => {
  verifies("hostile.7.approval-bytes");
  const { end, sent, told } = await startOverAltered(column, value);
  expect(sent).toEqual([]);
  expect(end).toMatchObject({ status: "failed", attempts: 1 });
  expect(end.result).toMatchObject({
    lastError: "The request is not the one that was approved, so it was not sent.",
    errorSource: "dispatch",
  });
  expect(told).toContainEqual(expect.objectContaining({ type: "attempt", outcome: "not_sent", next_retry_at: null }));
});

test("what is no part of the request may change, and the approved request is sent after a restart", async () => {
  const { sent } = await startOverAltered("dedupe", "another");
  expect(sent).toHaveLength(1);
  expect(sent[0]).toMatchObject({ url: "http://127.0.0.1:9/pay", body: '{"amount":5}' });
});
