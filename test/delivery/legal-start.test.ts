import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { ACTION_STATUSES } from "../../src/core/action.ts";
import { answering } from "../actions/senders.ts";
import { openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { SEED } from "../support/long.ts";
import { newFolders, shared } from "../support/shared.ts";

const newFolder = newFolders();

/** Writes a row as somebody does who opens the file by hand; false where the database does not let them. */
function byHand(db: Database, id: string, changes: Readonly<Record<string, unknown>>): boolean {
  const columns = Object.keys(changes);
  const values = Object.values(changes) as (string | number | null)[];
  try {
    db.query(`UPDATE actions SET ${columns.map((column) => `${column} = ?`).join(", ")} WHERE id = ?`).run(
      ...values,
      id,
    );
    return true;
  } catch (error) {
    if (String(error).includes("constraint failed")) return false;
    throw error;
  }
}

const unchanged = await shared(openEngine({ starts: false }));

test.each([
  ["a status that is none", { status: "done" }],
  ["what waits and is never due", { due_at: null }],
  ["what would be sent once too often", { attempts: 3 }],
  ["more attempts than are allowed", { status: "failed", attempts: 4 }],
  ["what is sent without a yes", { approve: 1 }],
  ["what is in flight and nobody's", { status: "active", attempts: 1, lease_until: null }],
  ["what is in flight without an attempt", { status: "active", attempts: 0, lease_until: 1 }],
  ["attempts below none", { attempts: -1 }],
  ["a revision that was never", { revision: 0 }],
])("a hand can't leave behind %s", async (_name, changes) => {
  const { id } = await unchanged.create({});
  const db = new Database(join(unchanged.folder, "outgate.db"));
  expect(byHand(db, id, changes)).toBe(false);
  db.close();
  expect(await unchanged.get(id)).toMatchObject({ status: "pending", attempts: 0 });
});

const time = fc.constantFrom(null, -5, 1, 1_767_225_590_000, 1_767_225_600_000, 1_767_225_700_000, 9_999_999_999_999);

const row = fc.record(
  {
    status: fc.constantFrom(...ACTION_STATUSES),
    attempts: fc.integer({ min: 0, max: 3 }),
    retries: fc.integer({ min: 1, max: 3 }),
    approve: fc.constantFrom(0, 0, 1),
    approved_at: time,
    due_at: time,
    scheduled_at: time.map((at) => at ?? 0),
    lease_until: time,
    started_at: time,
    finished_at: time,
    on_unknown: fc.constantFrom("retry", "stop"),
    last_error: fc.constantFrom(null, "The target refused the connection."),
    error_source: fc.constantFrom(null, "dispatch"),
    response_code: fc.constantFrom(null, 500),
    url: fc.constantFrom("http://127.0.0.1:9/", "http://127.0.0.1:9/", "nonsense", ""),
    account_id: fc.constantFrom("acc_gone", undefined, undefined, undefined),
    callback: fc.constantFrom("nowhere", null, null, null),
    sealed_headers: fc.constantFrom("garbage", null, null, null),
  },
  { requiredKeys: ["status"] },
);

const ROWS = Number(process.env["ROWS"] ?? 250);

const HOUR_MS = 3_600_000;

test("whatever rows a start finds, within five seconds each is on its way or ended, and none is sent unasked", async () => {
  const folder = newFolder();
  const before = await openEngine({ folder, starts: false });
  const made = await Promise.all(Array.from({ length: ROWS }, () => before.create({})));
  await before.abandon();
  const db = new Database(join(folder, "outgate.db"));
  const rows = fc.sample(row, { seed: SEED, numRuns: ROWS }).map(({ account_id: account, ...rest }) => {
    return account === undefined ? rest : { ...rest, account_id: account };
  });
  const written = made.filter(({ id }, at) => byHand(db, id, rows[at] ?? {}));
  const look = (id: string) => db.query<Row, [string]>("SELECT * FROM actions WHERE id = ?").get(id) as Row;
  const found = new Map(written.map(({ id }) => [id, look(id)]));
  console.log(`legal start: seed ${SEED}, ${written.length} of ${ROWS} rows could be written`);
  expect(written.length).toBeGreaterThan(ROWS / 5);

  const sender = answering(answered(500));
  await using engine = await openEngine({ folder, sender });
  const open = db.query("SELECT 1 FROM actions WHERE status = 'active' OR (status = 'pending' AND due_at <= ?)");
  const quiet = () =>
    eventually(() => open.get(engine.clock.now().getTime()) === null || null, "nothing due or in flight");
  for (let second = 0; second < 5; second += 1) {
    await quiet();
    engine.clock.advance(1_000);
  }
  await quiet();

  const sends = Map.groupBy(sender.sent, ({ headers }) => headers.find(([name]) => name === "webhook-id")?.[1] ?? "");
  const now = engine.clock.now().getTime();
  for (const [id, was] of found) {
    const is = look(id);
    const count = sends.get(id)?.length ?? 0;
    const told = { seed: SEED, was, is, count };
    // Nothing is in flight any more, and what waits does so for a time that its schedule knows.
    expect({ ...told, ok: is.status !== "active" }).toEqual({ ...told, ok: true });
    const isFarOff = was.due_at > now + HOUR_MS && (was.scheduled_at <= now || was.due_at - was.scheduled_at > HOUR_MS);
    if (is.status === "pending" && !isFarOff) {
      expect({ ...told, ok: is.due_at < now + HOUR_MS }).toEqual({ ...told, ok: true });
    }
    // Whoever has ended stays ended; what waits for a person waits; each as it was.
    const isAtRest = !["pending", "active"].includes(was.status);
    if (isAtRest) expect({ ...told, is }).toEqual({ ...told, is: was });
    expect({ ...told, ok: is.attempts <= is.retries && count <= is.retries - was.attempts }).toEqual({
      ...told,
      ok: true,
    });
    const mayBeSent = !isAtRest && was.url.startsWith("http") && was.sealed_headers === null && was.approve === 0;
    if (!mayBeSent) expect({ ...told, count }).toEqual({ ...told, count: 0 });
  }
}, 30_000);

interface Row {
  readonly status: string;
  readonly attempts: number;
  readonly retries: number;
  readonly approve: number;
  readonly due_at: number;
  readonly scheduled_at: number;
  readonly url: string;
  readonly sealed_headers: string | null;
}
