import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { actionJson } from "../../src/receipts/serialize.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";
import { seeWhole } from "../../src/receipts/seen-action.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { actionOf, answering, holding } from "../actions/senders.ts";
import { openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered, aQuery } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;

/** What a hand, an import of comma-separated values or another program may leave in any column. */
const VALUES = ["'soon'", "''", "x'00ff'", "9223372036854775807", "-1", "1.5", "NULL"];

/** Of them the ones that differ most. */
const FEW_VALUES = ["'soon'", "x'00ff'", "9223372036854775807"];

const FINAL = new Set(["completed", "failed", "cancelled"]);

/** Columns of a table as the migrations make it. */
function columnsOf(db: Database, table: string): readonly string[] {
  const rows = db.query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)").all(table);
  return rows.map(({ name }) => name);
}

/** False where the database itself does not let it be. */
function byHand(db: Database, text: string, ...values: (string | number)[]): boolean {
  try {
    return db.query(text).run(...values).changes > 0;
  } catch (error) {
    if (/constraint failed|datatype mismatch/.test(String(error))) return false;
    throw error;
  }
}

/** Seconds as a running process sees them: work goes on between one timer and the next. */
async function seconds({ clock }: Engine, count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    clock.advance(1_000);
    for (let turns = 0; turns < 20; turns += 1) await turn();
  }
}

/** Whatever anybody asks about an action is answered, or refused in words of ours. */
async function isAnswerable(engine: Engine, id: string): Promise<void> {
  const ours = (error: unknown) => {
    if (error instanceof DomainError) return null;
    throw error;
  };
  const options = { now: engine.clock.now(), receiptUrl: null };
  for (let look = 0; look < 2; look += 1) {
    const action = await engine.actionService.get(engine.owner, id).catch(ours);
    if (action !== null) {
      JSON.parse(actionJson(seeWhole(action), options));
      JSON.parse(actionJson(maskAction(action, "decider"), options));
    }
    await engine.actionService.timeline(engine.owner, id).catch(ours);
    // Then once more, as it is after a no.
    await engine.actionService.cancel(engine.owner, id, null).catch(ours);
  }
}

const { accountId: _, ...QUERY } = aQuery({ limit: 100 });

/** Everything that reads many actions at a time. */
async function readsAll({ store, overviewService, actionService, owner, clock }: Engine): Promise<void> {
  for (let before: string | null = null; ;) {
    const page = await actionService.list(owner, { ...QUERY, before });
    for (const action of page.actions) actionJson(seeWhole(action), { now: clock.now(), receiptUrl: null });
    if ((before = page.before) === null) break;
  }
  for (let position = 0; ;) {
    const page = await store.actions.changes(owner.accountId, position);
    for (const { action } of page.changes) actionJson(seeWhole(action), { now: clock.now(), receiptUrl: null });
    position = page.position;
    if (page.isLast) break;
  }
  await store.actions.held(owner.accountId, null, 100);
  await overviewService.read(owner, "30d");
  for (const { createdAt, dueAt } of await store.outbox.list(owner.accountId, null, 500)) {
    createdAt.toISOString();
    dueAt?.toISOString();
  }
}

const STATES = {
  pending: "UPDATE actions SET scheduled_at = scheduled_at WHERE id = ?",
  active: "UPDATE actions SET status = 'active', attempts = 1, due_at = NULL, lease_until = 0 WHERE id = ?",
  held: "UPDATE actions SET status = 'awaiting_approval', approve = 1, due_at = NULL WHERE id = ?",
} as const;

describe.each(Object.entries(STATES))("a row that is %s and was altered in any column", (state, text) => {
  test("is ended or goes its way within five seconds, is named once, can be read, and holds up no other", async () => {
    await using folder = await temporaryFolder();
    const before = await openEngine({ folder: folder.path, starts: false });
    const db = new Database(join(folder.path, "outgate.db"));
    const values = state === "pending" ? VALUES : FEW_VALUES;
    const cases = columnsOf(db, "actions").flatMap((column) => values.map((value) => ({ column, value })));
    const made = await Promise.all(cases.map(() => before.create({ retries: 2 })));
    // Behind all of them in the one queue.
    const good = await Promise.all(Array.from({ length: 20 }, () => before.create({ retries: 2 })));
    await before.abandon();
    const rowid = db.query<{ rowid: number }, [string]>("SELECT rowid FROM actions WHERE id = ?");
    const broken = cases.flatMap(({ column, value }, at) => {
      const id = made[at]?.id ?? "";
      const row = rowid.get(id)?.rowid ?? 0;
      byHand(db, text, id);
      const isWritten = byHand(db, `UPDATE actions SET ${column} = ${value} WHERE rowid = ?`, row);
      return isWritten ? [{ id, row, column, value }] : [];
    });
    expect(broken.length).toBeGreaterThan(8 * values.length);

    const sender = answering(answered(200));
    await using engine = await openEngine({ folder: folder.path, sender });
    for (const { id } of good) await engine.saw(id, { status: "completed", attempts: 1 });
    await seconds(engine, 5);
    const look = db.query<{ id: unknown; status: string; attempts: number; dueAt: unknown; ok: number }, [number]>(
      "SELECT id, status, attempts, due_at AS dueAt, typeof(revision) = 'integer' AND typeof(attempts) = 'integer' AS ok FROM actions WHERE rowid = ?",
    );
    const isWrong = ({
      row,
      column,
      value,
    }: {
      readonly row: number;
      readonly column: string;
      readonly value: string;
    }) => {
      const is = look.get(row);
      // A time that is over: the job that cancels what has expired ends it.
      if (column === "expires_at" && /^-?\d+$/.test(value)) return false;
      // Not due yet, perhaps for a million years, or held: what it holds may be meant.
      const isLater = is?.status === "pending" && Number(is.dueAt) > engine.clock.now().getTime();
      const isMeant = isLater || (state === "held" && is?.status === "awaiting_approval");
      return !(FINAL.has(is?.status ?? "") || isMeant) || is?.ok !== 1;
    };
    // Time stands still here: only what is under way by now may still end.
    await eventually(() => !broken.some(isWrong) || null, "the end of every row").catch(() => {});
    expect(broken.filter(isWrong)).toEqual([]);
    const named = engine.lines.flatMap(({ event, fields }) =>
      event === "action.set_aside" ? [fields["action_id"]] : [],
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.length).toBe(new Set(named).size);
    expect(engine.lines.filter(({ event }) => /failed|not_set_aside/.test(event))).toEqual([]);
    const metrics = await engine.renderMetrics();
    expect(metrics).toContain(`outgate_rows_set_aside_total{of="action"} ${named.length}\n`);
    // No more often than its attempts allow, and never what was altered.
    const sends = Map.groupBy(sender.sent, actionOf);
    for (const [id, calls] of sends) expect({ id, sends: calls.length <= 2 }).toEqual({ id, sends: true });
    for (const id of named) expect(sends.get(String(id))).toBeUndefined();

    await readsAll(engine);
    for (const { row } of broken) await isAnswerable(engine, String(look.get(row)?.id));
    db.close();
  }, 30_000);
});

test("a callback that was altered in any column is given up or delivered within five seconds, and holds up no other", async () => {
  await using folder = await temporaryFolder();
  const before = await openEngine({ folder: folder.path, starts: false });
  const db = new Database(join(folder.path, "outgate.db"));
  const cases = columnsOf(db, "outbox").flatMap((column) =>
    FEW_VALUES.flatMap((value) => [true, false].map((isActive) => ({ column, value, isActive }))),
  );
  const held = { approve: true, callback: "http://127.0.0.1:9/hook" };
  const made = await Promise.all(cases.map(() => before.create(held)));
  const good = await Promise.all(Array.from({ length: 10 }, () => before.create(held)));
  await before.abandon();
  const rowid = db.query<{ rowid: number }, [string]>("SELECT rowid FROM outbox WHERE action_id = ?");
  const broken = cases.flatMap(({ column, value, isActive }, at) => {
    const row = rowid.get(made[at]?.id ?? "")?.rowid ?? 0;
    const active = "UPDATE outbox SET status = 'active', attempts = 1, due_at = NULL, lease_until = 0 WHERE rowid = ?";
    if (isActive) byHand(db, active, row);
    const isWritten = byHand(db, `UPDATE outbox SET ${column} = ${value} WHERE rowid = ?`, row);
    return isWritten ? [{ row, column, value, isActive }] : [];
  });
  expect(broken.length).toBeGreaterThan(30);

  await using engine = await openEngine({ folder: folder.path, sender: answering(answered(200)) });
  for (const { id } of good) expect(await engine.told(id, "callback", 1)).toMatchObject([{ delivered: true }]);
  await seconds(engine, 5);
  const look = db.query<{ status: string }, [number]>("SELECT status FROM outbox WHERE rowid = ?");
  // A time that is far away may be meant.
  const isOpen = ({ row, column }: { readonly row: number; readonly column: string }) =>
    ["pending", "active"].includes(look.get(row)?.status ?? "") && column !== "due_at";
  await eventually(() => !broken.some(isOpen) || null, "the end of every row").catch(() => {});
  expect(broken.filter(isOpen)).toEqual([]);
  const named = engine.lines.flatMap(({ event, fields }) => (event === "notification.set_aside" ? [fields["id"]] : []));
  expect(named.length).toBe(new Set(named).size);
  expect(named.length).toBeGreaterThan(10);
  await readsAll(engine);
  db.close();
}, 30_000);

test("a line of a timeline that was altered in any column fails no page that shows it", async () => {
  await using folder = await temporaryFolder();
  await using engine = await openEngine({ folder: folder.path, sender: answering(answered(200)) });
  const db = new Database(join(folder.path, "outgate.db"));
  const cases = columnsOf(db, "timeline").flatMap((column) =>
    ["'[1'", ...FEW_VALUES].flatMap((value) =>
      ["created", "started", "attempt"].map((type) => ({ column, value, type })),
    ),
  );
  const made = await Promise.all(cases.map(() => engine.create({})));
  for (const { id } of made) await engine.saw(id, { status: "completed" });
  for (const [at, { column, value, type }] of cases.entries()) {
    // A number that is past the end of them all would leave none for what comes next.
    if (column === "seq") continue;
    byHand(db, `UPDATE timeline SET ${column} = ${value} WHERE action_id = ? AND type = ?`, made[at]?.id ?? "", type);
  }
  await readsAll(engine);
  for (const { id } of made) await isAnswerable(engine, id);
  db.close();
}, 30_000);

describe("a row whose revision was set back, as by a part of a backup", () => {
  /** An action that failed once, with its row as it was when it was made. */
  async function setBack(engine: Engine, db: Database, revision: number): Promise<string> {
    const { id } = await engine.create({ retries: 3 });
    await engine.saw(id, { status: "pending", attempts: 1 });
    byHand(db, "UPDATE actions SET revision = ?, attempts = 0, due_at = 0 WHERE id = ?", revision, id);
    return id;
  }

  test("takes no other along that is claimed with it, is ended within seconds, and a no to it is no fault of ours", async () => {
    const sender = answering(answered(500), answered(200));
    await using folder = await temporaryFolder();
    const before = await openEngine({ folder: folder.path, sender });
    const db = new Database(join(folder.path, "outgate.db"));
    const id = await setBack(before, db, 1);
    await before.drain(0);
    // In the same queue, so that all of them are claimed together.
    const others = await Promise.all(Array.from({ length: 10 }, () => before.create({})));
    await before.abandon();
    db.close();
    await using engine = await openEngine({ folder: folder.path, sender, clock: before.clock });
    for (const other of others) await engine.saw(other.id, { status: "completed", attempts: 1 });
    await isAnswerable(engine, id);
    await eventually(async () => {
      await seconds(engine, 1);
      return FINAL.has((await engine.actionService.get(engine.owner, id)).status) ? true : null;
    }, "its end");
    expect(sender.sent.filter((request) => actionOf(request) === id)).toHaveLength(1);
    expect(engine.lines.filter(({ event }) => event === "dispatch.failed")).toEqual([]);
  });

  test("is ended where nobody says no to it", async () => {
    const sender = answering(answered(500), answered(200));
    await using engine = await openEngine({ sender });
    const db = new Database(join(engine.folder, "outgate.db"));
    const id = await setBack(engine, db, 1);
    db.close();
    const failed = await eventually(async () => {
      await seconds(engine, 1);
      const action = await engine.actionService.get(engine.owner, id);
      return action.status === "failed" ? action : null;
    }, "its end");
    expect(failed.result?.lastError).toBe(
      "The request was altered after it was created or approved, so it was not sent.",
    );
    expect((await engine.events(id)).map(({ type }) => type)).toEqual([
      "created",
      "started",
      "attempt",
      "attempt",
      "failed",
    ]);
    expect(sender.sent).toHaveLength(1);
  });
});

test("a known result is written although the row was altered meanwhile, and counts", async () => {
  const { sender, began, end } = holding();
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ retries: 3, callback: "http://127.0.0.1:9/hook" });
  await began;
  const db = new Database(join(engine.folder, "outgate.db"));
  // The line of this attempt's end is there already, of another life.
  byHand(
    db,
    `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
      SELECT id, account_id, 1, run, revision + 1, 'attempt', 'pending', '{}' FROM actions WHERE id = ?`,
    id,
  );
  db.close();
  end(answered(200, '"done"'));
  const done = await engine.saw(id, { status: "completed", attempts: 1 });
  expect(done.result).toMatchObject({ responseCode: 200, responseBody: '"done"' });
  await seconds(engine, 50);
  expect(await engine.actionService.get(engine.owner, id)).toMatchObject({ status: "completed", attempts: 1 });
  await eventually(() => (sender.sent.length === 2 ? true : null), "the callback");
});
