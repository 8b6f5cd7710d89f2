import { describe, expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { answering } from "../actions/senders.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";
import { runStatements } from "../../db/commands/command.ts";

/** Approves an action, lets the process die before anything is sent, alters its row by hand, and starts again. */
async function startOverAltered(column: string, value: string) {
  await using folder = await temporaryFolder();
  const first = await openEngine({ folder: folder.path, starts: false });
  const { id } = await first.create({ approve: true, body: '{"amount":5}', url: "http://127.0.0.1:9/pay" });
  await first.actionService.approve(first.owner, id, null);
  await first.abandon();
  const file = openFile(`${folder.path}/outgate.db`);
  const text = `UPDATE actions SET ${column} = ? WHERE id = ?`;
  await runStatements(file, [{ sql: text, args: [value, id] }]);
  await file.close();
  const sender = answering(answered(200));
  await using second = await openEngine({ folder: folder.path, sender });
  const end = await second.saw(id, column === "dedupe" ? { status: "completed" } : { status: "failed" });
  return { end, sent: sender.sent, told: await second.events(id) };
}

test("a request that is not what was approved is not sent, and its action says why", async () => {
  const { end, sent, told } = await startOverAltered("body", '{"amount":50000}');
  expect(sent).toEqual([]);
  expect(end).toMatchObject({ status: "failed", attempts: 1 });
  expect(end.result).toMatchObject({
    lastError: "The request was altered after it was created or approved, so it was not sent.",
    errorSource: "dispatch",
  });
  expect(told).toContainEqual(expect.objectContaining({ type: "attempt", outcome: "not_sent", next_retry_at: null }));
});

describe("what another version stored with an action, and this one doesn't know", () => {
  const NEWER = '{"reason":"x","priority":{"level":7}}';

  /** An action with those members, before it is decided on and sent. */
  async function startWithNewer(approve: boolean, alter: string | null = null) {
    await using folder = await temporaryFolder();
    const first = await openEngine({ folder: folder.path, starts: false });
    const { id } = await first.create({ approve, url: "http://127.0.0.1:9/" });
    await first.abandon();
    const file = openFile(`${folder.path}/outgate.db`);
    const write = (text: string) =>
      runStatements(file, [{ sql: "UPDATE actions SET extras = ? WHERE id = ?", args: [text, id] }]);
    await write(NEWER);
    const between = await openEngine({ folder: folder.path, starts: false });
    if (approve) await between.actionService.approve(between.owner, id, null);
    await between.abandon();
    if (alter !== null) await write(alter);
    const sender = answering(answered(200));
    await using last = await openEngine({ folder: folder.path, sender });
    const end = await last.saw(id, { status: alter === null ? "completed" : "failed" });
    const [row] = await file.read({ sql: "SELECT extras FROM actions WHERE id = ?", args: [id] });
    await file.close();
    return { error: end.result?.lastError, sent: sender.sent.length, stored: row?.["extras"] };
  }

  test.each([true, false])("is kept, and no alteration (approved: %p)", async (approve) => {
    expect(await startWithNewer(approve)).toEqual({ error: null, sent: 1, stored: NEWER });
  });

  test("is part of what is approved: altered it is not sent", async () => {
    const altered = '{"reason":"x","priority":{"level":8}}';
    expect(await startWithNewer(true, altered)).toMatchObject({
      error: expect.stringContaining("was altered"),
      sent: 0,
      stored: altered,
    });
  });
});

test("headers of another action don't open: the action fails with a line in the log, and the other is sent", async () => {
  await using folder = await temporaryFolder();
  const first = await openEngine({ folder: folder.path, starts: false });
  const headed = async (value: string) =>
    (await first.create({ retries: 1, headers: { "X-N": value }, url: "http://127.0.0.1:9/" })).id;
  const [donor, victim] = [await headed("one"), await headed("two")];
  await first.abandon();
  const file = openFile(`${folder.path}/outgate.db`);
  const text = "UPDATE actions SET sealed_headers = (SELECT sealed_headers FROM actions WHERE id = ?) WHERE id = ?";
  await runStatements(file, [{ sql: text, args: [donor, victim] }]);
  await file.close();
  const sender = answering(answered(200));
  await using second = await openEngine({ folder: folder.path, sender });
  expect(await endOf(second, victim)).toEqual({
    status: "failed",
    last_error: "The stored row can't be read, so it was altered. Nothing of it is sent any more.",
  });
  await second.saw(donor, { status: "completed" });
  expect(sender.sent).toHaveLength(1);
});

/** How a row ended that can't be read, once the log tells of it. */
async function endOf({ folder, lines }: Engine, id: string) {
  const isTold = () => lines.some(({ event, fields }) => event === "action.set_aside" && fields["action_id"] === id);
  await eventually(() => isTold() || null, "the line in the log");
  const file = openFile(`${folder}/outgate.db`, "read");
  const [row] = await file.read({ sql: "SELECT status, last_error FROM actions WHERE id = ?", args: [id] });
  await file.close();
  return row;
}

test("what is no part of the request may change, and the approved request is sent after a restart", async () => {
  const { sent } = await startOverAltered("dedupe", "another");
  expect(sent).toHaveLength(1);
  expect(sent[0]).toMatchObject({ url: "http://127.0.0.1:9/pay", body: '{"amount":5}' });
});
