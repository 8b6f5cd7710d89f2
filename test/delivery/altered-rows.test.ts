import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { actionJson } from "../../src/receipts/action-json.ts";
import { seeAll, seeWhole } from "../../src/receipts/see.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";
import { DATE_MS_MAX, SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { actionOf, answering } from "../actions/senders.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered, aQuery } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";
import { words } from "../support/words.ts";

/** What a hand, an import of comma-separated values or another program may leave in any column. */
const VALUES = ["'soon'", "x'00ff'", "9223372036854775807"];

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

/** Writes to the file of an engine by hand. */
function alter({ folder }: Engine, text: string, ...values: (string | number)[]): void {
  using db = new Database(join(folder, "outgate.db"));
  expect(byHand(db, text, ...values)).toBe(true);
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
    const action = await engine.get(id).catch(ours);
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
  const { hosts } = await store.actions.scheduledRetries(owner.accountId, clock.now());
  for (const { nextAt } of hosts) nextAt.toISOString();
  await overviewService.read(owner, "30d");
  for (const { createdAt, dueAt } of await store.outbox.list(owner.accountId, null, 500)) {
    createdAt.toISOString();
    dueAt?.toISOString();
  }
}

/** Puts each value into each column of a table, each into the row of another action. Returns the rows that have one. */
function alterEach(db: Database, table: "actions" | "outbox", ids: readonly string[]) {
  const key = table === "actions" ? "id" : "action_id";
  const rowOf = db.query<{ rowid: number }, [string]>(`SELECT rowid FROM ${table} WHERE ${key} = ?`);
  const rows = ids.map((id) => rowOf.get(id)?.rowid ?? 0);
  const cases = columnsOf(db, table).flatMap((column) => VALUES.map((value) => ({ column, value })));
  const altered = cases.flatMap(({ column, value }, at) => {
    const row = rows[at] ?? 0;
    const isWritten = byHand(db, `UPDATE ${table} SET ${column} = ${value} WHERE rowid = ?`, row);
    return isWritten ? [{ id: ids[at] ?? "", row, column, value }] : [];
  });
  expect(altered.length).toBeGreaterThan(8 * VALUES.length);
  return altered;
}

const countColumns = (db: Database, table: string) => columnsOf(db, table).length;

/** The rows that the log names, each once. */
function namedIn({ lines }: Engine, of: string, field: string): ReadonlySet<unknown> {
  const named = lines.flatMap(({ event, fields }) => (event === `${of}.set_aside` ? [fields[field]] : []));
  expect(named.length).toBe(new Set(named).size);
  return new Set(named);
}

/** What a row is found by, claimed by and written by: where it says something else, the row stays as it is. */
const FINDS_IT = new Set(words("id account_id host key_id kind due_at lease_until revision attempts"));

const ACTIVE = "status = 'active', attempts = 1, due_at = NULL, lease_until = 0";

test("an action, altered in any column, ends as failed with one line in the log, unsent, or goes its way; can be read; and holds up no other", async () => {
  await using folder = await temporaryFolder();
  const before = await openEngine({ folder: folder.path, starts: false });
  const db = new Database(join(folder.path, "outgate.db"));
  const count = countColumns(db, "actions") * VALUES.length;
  const create = () => before.create({ retries: 2 });
  const createMany = async () => (await Promise.all(Array.from({ length: count }, create))).map(({ id }) => id);
  const [waiting, active] = [await createMany(), await createMany()];
  // Behind all of them in the one queue.
  const good = await Promise.all(Array.from({ length: 20 }, create));
  await before.abandon();
  for (const id of active) byHand(db, `UPDATE actions SET ${ACTIVE} WHERE id = ?`, id);
  const altered = [waiting, active].flatMap((ids) => alterEach(db, "actions", ids));

  const sender = answering(answered(200));
  await using engine = await openEngine({ folder: folder.path, sender });
  for (const { id } of good) await engine.saw(id, { status: "completed", attempts: 1 });
  const look = db.query<{ status: string }, [number]>("SELECT status FROM actions WHERE rowid = ?");
  const isLeft = ({ row, column }: (typeof altered)[number]) => {
    return !FINDS_IT.has(column) && !FINAL.has(look.get(row)?.status ?? "");
  };
  await eventually(async () => {
    await seconds(engine, 5);
    return altered.some(isLeft) ? null : true;
  }, "the end of every row").catch(() => {});
  expect(altered.filter(isLeft)).toEqual([]);
  // What is written is logged a moment later.
  await seconds(engine, 2);

  const named = namedIn(engine, "action", "action_id");
  expect(named.size).toBeGreaterThan(30);
  expect(await engine.renderMetrics()).toContain(`outgate_rows_set_aside_total{of="action"} ${named.size}\n`);
  const sent = Map.groupBy(sender.sent, actionOf);
  for (const id of named) expect(sent.get(String(id))).toBeUndefined();
  for (const { id, row } of altered) if (named.has(id)) expect(look.get(row)).toEqual({ status: "failed" });
  for (const [id, calls] of sent) expect(calls, id).toHaveLength(1);
  expect(engine.lines.filter(({ event }) => event.endsWith(".failed"))).toEqual([]);
  await readsAll(engine);
  for (const { id } of altered) await isAnswerable(engine, id);
  db.close();
}, 30_000);

test("a held action that can't be read is left out of the list, and never sent", async () => {
  const sender = answering(answered(200));
  await using engine = await openEngine({ sender });
  const [altered, good] = [await engine.create({ approve: true }), await engine.create({ approve: true })];
  alter(engine, "UPDATE actions SET url = 'nowhere' WHERE id = ?", altered.id);
  const { actions } = await engine.store.actions.held(engine.owner.accountId, null, 10);
  expect(actions.map(({ id }) => id)).toEqual([good.id]);
  const refused = await engine.actionService.approve(engine.owner, altered.id, null).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "not_found" });
  await engine.actionService.approve(engine.owner, good.id, null);
  await engine.saw(good.id, { status: "completed" });
  expect(sender.sent.map(actionOf)).toEqual([good.id]);
});

test("an action that can't be read ends no list: what is older is on the next page", async () => {
  await using engine = await openEngine({ starts: false });
  const ids: string[] = [];
  // More than one step of a search has.
  for (let count = 0; count < SEARCH_STEP_ROWS + 10; count += 1)
    ids.unshift((await engine.create({ approve: true })).id);
  const [newest = "", ...others] = ids;
  alter(engine, "UPDATE actions SET run = 'soon' WHERE id = ?", newest);
  const listed: string[] = [];
  let before: string | null = null;
  do {
    const page = await engine.store.actions.list(aQuery({ accountId: engine.owner.accountId, limit: 20, before }));
    listed.push(...page.actions.map(({ id }) => id));
    ({ before } = page);
  } while (before !== null);
  expect(listed).toEqual(others);
});

test.each([
  ["response_headers", "7"],
  ["response_headers", '[["etag"]]'],
  ["response_headers", '[["etag",{}]]'],
  ["late_result", '200 {"at":"x"}'],
  ["late_result", '200 {"run":1,"attempt":1,"at":1,"responseBody":"{","responseHeaders":null}'],
  ["late_result", '200 {"run":1,"attempt":1,"at":1,"responseBody":null,"responseHeaders":"7"}'],
])("an ended action whose %s were altered to %s keeps no other from being shown", async (column, value) => {
  await using engine = await openEngine({ sender: answering(answered(200), answered(200)) });
  const [altered, good] = [await engine.create({}), await engine.create({})];
  for (const { id } of [altered, good]) await engine.saw(id, { status: "completed" });
  alter(engine, `UPDATE actions SET ${column} = ? WHERE id = ?`, value, altered.id);
  const { actions } = await engine.actionService.list(engine.owner, { ...QUERY, before: null });
  const shown = await seeAll(actions, "decider");
  for (const one of shown) JSON.parse(actionJson(one, { now: engine.clock.now(), receiptUrl: null }));
  expect(shown.map(({ id }) => id)).toEqual([good.id]);
});

test("a channel of a kind that was altered leads nowhere, and can be seen and removed", async () => {
  await using engine = await openEngine({});
  const { owner, services } = engine;
  const asked = { name: "ops", kind: "slack", url: "https://hooks.example.com/" } as const;
  const { id } = await services.channelService.add(owner, asked);
  alter(engine, "UPDATE channels SET kind = 'pager' WHERE id = ?", id);
  expect(await services.channelService.list(owner)).toMatchObject([{ id, kind: "webhook", url: null }]);
});

test("an action that was altered after its end is not sent again, with a line in the log", async () => {
  const sender = answering(answered(500), answered(200));
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ retries: 1 });
  await engine.saw(id, { status: "failed" });
  alter(engine, "UPDATE actions SET method = 'SEND' WHERE id = ?", id);
  const refused = await engine.actionService.retry(engine.owner, id, null).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "not_found" });
  expect(namedIn(engine, "action", "action_id").has(id)).toBe(true);
  expect(sender.sent).toHaveLength(1);
});

test.each([
  ["Idempotency-Key", { idempotencyKey: "order-1" }],
  ["dedupe", { dedupe: "order-1" }],
])("a repeat by %s of an action that can't be read is refused for good, and nothing is sent", async (field, key) => {
  const sender = answering(answered(200), answered(200));
  await using engine = await openEngine({ sender });
  const { id } = await engine.create(key);
  await engine.saw(id, { status: "completed" });
  alter(engine, "UPDATE actions SET method = 'SEND' WHERE id = ?", id);
  const refused = await engine.create(key).catch((error: unknown) => error);
  const issues = [
    { field, message: expect.stringContaining(`This key names action ${id}, whose stored row can't be read`) },
  ];
  expect(refused).toMatchObject({ code: "validation_error", issues });
  await seconds(engine, 5);
  expect(sender.sent).toHaveLength(1);
});

test("a retry whose dedupe key an action has that can't be read is refused and names it", async () => {
  await using engine = await openEngine({ sender: answering(answered(500), answered(200)) });
  const first = await engine.create({ dedupe: "d", retries: 1 });
  await engine.saw(first.id, { status: "failed" });
  const second = await engine.create({ dedupe: "d", retries: 1 });
  await engine.saw(second.id, { status: "completed" });
  alter(engine, "UPDATE actions SET method = 'SEND' WHERE id = ?", second.id);
  const refused = await engine.actionService.retry(engine.owner, first.id, null).catch((error: unknown) => error);
  const message = `Action ${first.id} cannot be retried: action ${second.id} now has its dedupe key and is completed.`;
  expect(refused).toMatchObject({ code: "not_retryable", message });
});

test("an action whose revision was set back, as by a part of a backup, fails unsent, and others of its lane are sent", async () => {
  const sender = answering(answered(500), answered(200));
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ retries: 3 });
  await engine.saw(id, { status: "pending", attempts: 1 });
  alter(engine, "UPDATE actions SET revision = 1, attempts = 0, due_at = 0 WHERE id = ?", id);
  const others = await Promise.all(Array.from({ length: 10 }, () => engine.create({})));
  await seconds(engine, 5);
  for (const other of others) await engine.saw(other.id, { status: "completed", attempts: 1 });
  const isFailed = async () => (await engine.get(id)).status === "failed" || null;
  await eventually(isFailed, "its end");
  expect(sender.sent.filter((request) => actionOf(request) === id)).toHaveLength(1);
  const failures = () => engine.lines.filter(({ event }) => event === "dispatch.failed");
  await eventually(() => (failures().length > 0 ? true : null), "the line in the log");
  expect(failures()).toHaveLength(1);
});

test("a row that is due after all dates is not asked for again and again", async () => {
  await using engine = await openEngine({ starts: false });
  const { store, clock } = engine;
  const { id } = await engine.create({});
  alter(engine, "UPDATE actions SET due_at = 9223372036854775807 WHERE id = ?", id);
  const [lane] = await store.actions.lanes(null, 10);
  expect(lane?.dueAt).toEqual(new Date(DATE_MS_MAX));
  const lanes = lane === undefined ? [] : [{ ...lane, limit: 1 }];
  const at = { now: clock.now(), leaseUntil: clock.now() };
  const claimed = await store.actions.claimDue({ lanes, bytesMax: 1_000, takesLarge: false, lease: at });
  expect(claimed).toMatchObject({ rows: [], next: [{ dueAt: new Date(DATE_MS_MAX) }] });
});

test("a time that can't be read keeps no other from being moved after the clock was set back", async () => {
  await using engine = await openEngine({ starts: false });
  const { store, clock } = engine;
  const [altered, other] = [await engine.create({}), await engine.create({})];
  const db = new Database(join(engine.folder, "outgate.db"));
  byHand(db, "UPDATE actions SET due_at = 'soon' WHERE id = ?", altered.id);
  clock.jump(-3_600_000);
  expect(await store.actions.reschedule({ now: clock.now(), byMs: 3_600_000 }, 10)).toBe(1);
  const due = db.query<{ due_at: unknown }, [string]>("SELECT due_at FROM actions WHERE id = ?");
  expect([altered, other].map(({ id }) => due.get(id)?.due_at)).toEqual(["soon", clock.now().getTime()]);
  db.close();
});

test("a callback that can't be read ends no list of callbacks", async () => {
  await using engine = await openEngine({ starts: false });
  for (let count = 0; count < 6; count += 1)
    await engine.create({ approve: true, callback: "http://127.0.0.1:9/hook" });
  const { accountId } = engine.owner;
  const all = (await engine.store.outbox.list(accountId, null, 10)).map(({ id }) => id);
  expect(all).toHaveLength(6);
  for (const id of all.slice(0, 3)) alter(engine, "UPDATE outbox SET attempts = 'soon' WHERE id = ?", id);
  const listed = async (limit: number) => (await engine.store.outbox.list(accountId, null, limit)).map(({ id }) => id);
  expect(await Promise.all([1, 2, 3, 10].map(listed))).toEqual([
    all.slice(3, 4),
    all.slice(3, 5),
    all.slice(3),
    all.slice(3),
  ]);
  // However many there are, other work goes on.
  let isTurnOfOthers = false;
  const others = turn().then(() => (isTurnOfOthers = true));
  await listed(1);
  expect(isTurnOfOthers).toBe(true);
  await others;
});

test("a callback, altered in any column, is given up with one line in the log or goes its way, and holds up no other", async () => {
  await using folder = await temporaryFolder();
  const before = await openEngine({ folder: folder.path, starts: false });
  const db = new Database(join(folder.path, "outgate.db"));
  const count = countColumns(db, "outbox") * VALUES.length;
  const create = () => before.create({ approve: true, callback: "http://127.0.0.1:9/hook" });
  const createMany = async () => (await Promise.all(Array.from({ length: count }, create))).map(({ id }) => id);
  const [waiting, active] = [await createMany(), await createMany()];
  const good = await Promise.all(Array.from({ length: 10 }, create));
  await before.abandon();
  for (const id of active) byHand(db, `UPDATE outbox SET ${ACTIVE} WHERE action_id = ?`, id);
  const altered = [waiting, active].flatMap((ids) => alterEach(db, "outbox", ids));

  await using engine = await openEngine({ folder: folder.path, sender: answering(answered(200)) });
  for (const { id } of good) expect(await engine.told(id, "callback", 1)).toMatchObject([{ delivered: true }]);
  const look = db.query<{ status: string }, [number]>("SELECT status FROM outbox WHERE rowid = ?");
  const isLeft = ({ row, column }: (typeof altered)[number]) =>
    !FINDS_IT.has(column) && ["pending", "active"].includes(look.get(row)?.status ?? "");
  await eventually(() => (altered.some(isLeft) ? null : true), "the end of every row").catch(() => {});
  expect(altered.filter(isLeft)).toEqual([]);
  await eventually(() => (namedIn(engine, "notification", "id").size > 6 ? true : null), "the lines in the log");
  await readsAll(engine);
  db.close();
}, 30_000);

test.each([
  ["no body", "payload = NULL"],
  ["a target that is no URL", "target = 'nowhere'"],
])("a callback that somebody left with %s is given up at once, and never said to have left", async (_what, change) => {
  await using folder = await temporaryFolder();
  const before = await openEngine({ folder: folder.path, starts: false });
  const { id } = await before.create({ approve: true, callback: "http://127.0.0.1:9/hook" });
  await before.abandon();
  const db = new Database(join(folder.path, "outgate.db"));
  byHand(db, `UPDATE outbox SET ${change} WHERE action_id = ?`, id);
  db.close();
  const sender = answering(answered(200));
  await using engine = await openEngine({ folder: folder.path, sender });
  const error =
    "The request was altered after it was created or approved, so it was not sent. Given up after 1 attempt.";
  const expected = [{ delivered: false, attempts: 1, error, next_retry_at: null }];
  expect(await engine.told(id, "callback", 1)).toMatchObject(expected);
  expect(sender.sent).toEqual([]);
});

test("a line of a timeline that can't be read fails no page that shows it", async () => {
  await using engine = await openEngine({ sender: answering(answered(200)) });
  const changes = ["type = 'nothing'", "detail = '[1'", "status = 'soon'", "run = x'00ff'"];
  for (const change of changes) {
    const { id } = await engine.create({});
    await engine.saw(id, { status: "completed" });
    alter(engine, `UPDATE timeline SET ${change} WHERE action_id = ? AND type = 'attempt'`, id);
    await isAnswerable(engine, id);
  }
  await readsAll(engine);
});
