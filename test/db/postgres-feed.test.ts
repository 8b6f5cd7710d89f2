import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { toQuery } from "../../db/postgres/queries.ts";
import { openPostgres, type PostgresPool } from "../../db/postgres/connection.ts";
import { claimAll } from "../../db/postgres/claim.ts";
import { createChangeReader } from "../../db/postgres/cluster.ts";
import type { Statement } from "../../db/sql/dialect.ts";
import type { ChangedAction, Store } from "../../src/core/store.ts";
import { NODE_CHANGES_MAX } from "../../src/core/limits.ts";
import { ACCOUNT, aCreation, KEY, NOON } from "../support/factory.ts";
import { dropDatabase, hasPostgres } from "../support/postgres.ts";
import { createMigrated } from "../support/postgres-store.ts";
import { eventually } from "../support/eventually.ts";
import { storeOver } from "../support/store.ts";
import { claimOf } from "./conformance/steps.ts";

let url: string;
let sql: PostgresPool;
let store: Store;

/** A transaction that stays open as long as the test wants. */
async function openTransaction(): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  return client;
}

const insert = (client: Client, actionId: string) =>
  client.query(
    `insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
     values ($1, 'acc_one', 0, 1, 1, 'created', 'pending', '{}')`,
    [actionId],
  );

async function commit(client: Client): Promise<void> {
  await client.query("commit");
  await client.end();
}

async function insertOne(actionId: string): Promise<void> {
  const client = await openTransaction();
  await insert(client, actionId);
  await commit(client);
}

/** The position once nothing is held back any more, as transactions of other tests on the server may do. */
function settled(): Promise<number> {
  return eventually(async () => {
    const position = await store.actions.position();
    const [row] = await sql.read({ sql: "select coalesce(max(seq), 0) as seq from timeline", args: [] });
    return Number(row?.["seq"]) <= position ? position : null;
  }, "everything that was written is settled");
}

describe.skipIf(!hasPostgres)("changes of all nodes in PostgreSQL", () => {
  beforeAll(async () => {
    url = await createMigrated();
    sql = openPostgres(url);
    store = storeOver(sql, { isOnlyProcess: false });
  });

  afterAll(async () => {
    await store.close();
    await dropDatabase(url);
  });

  const idsOf = (changes: readonly ChangedAction[]) => changes.map(({ actionId }) => actionId);

  test("are told before an earlier transaction ends, and again after it, in order", async () => {
    const reader = createChangeReader(sql);
    const from = await settled();
    const early = await openTransaction();
    await insert(early, "act_early");
    await insertOne("act_late");
    const held = await reader.changedSince(from, 10);
    expect([idsOf(held.changes), held.position, held.isLast]).toEqual([["act_late"], from, false]);
    expect(await store.actions.position()).toBe(from);
    await commit(early);
    await settled();
    const all = await reader.changedSince(held.position, 10);
    expect([idsOf(all.changes), all.isLast]).toEqual([["act_early", "act_late"], true]);
    expect(all.position).toBe(all.changes[1]?.seq ?? 0);
    expect(await store.actions.position()).toBe(all.position);
    expect(await reader.changedSince(all.position, 10)).toEqual({ changes: [], position: all.position, isLast: true });
  });

  test("come in pages, of which only the last says so", async () => {
    const reader = createChangeReader(sql);
    const from = await settled();
    for (const id of ["act_1", "act_2", "act_3"]) await insertOne(id);
    await settled();
    const first = await reader.changedSince(from, 2);
    expect([idsOf(first.changes), first.isLast]).toEqual([["act_1", "act_2"], false]);
    const second = await reader.changedSince(first.position, 2);
    expect([idsOf(second.changes), second.isLast]).toEqual([["act_3"], true]);
  });

  test("are read once each and in order, up to the position, however many transactions overlap", async () => {
    const reader = createChangeReader(sql);
    const from = await settled();
    let isDone = false;
    const write = async (client: number) => {
      for (let count = 0; count < 30; count += 1) {
        const transaction = await openTransaction();
        await insert(transaction, `act_${client}_${count}_a`);
        await Bun.sleep((client * 7 + count * 3) % 5);
        await insert(transaction, `act_${client}_${count}_b`);
        await commit(transaction);
      }
    };
    const writing = Promise.all(Array.from({ length: 6 }, (_, client) => write(client))).then(() => (isDone = true));
    const read: ChangedAction[] = [];
    let heldBack = 0;
    for (let position = from; ;) {
      const wasDone = isDone;
      const page = await reader.changedSince(position, 50);
      read.push(...page.changes.filter(({ seq }) => seq <= page.position));
      if (page.changes.some(({ seq }) => seq > page.position)) heldBack += 1;
      position = page.position;
      if (wasDone && page.isLast) break;
    }
    await writing;
    const rows = await sql.read({ sql: `select seq from timeline where seq > ${from} order by seq`, args: [] });
    expect(rows.length).toBe(360);
    expect(read.map(({ seq }) => seq)).toEqual(rows.map(({ seq }) => Number(seq)));
    expect(heldBack).toBeGreaterThan(0);
  });

  test("are read by the index, and no more of them than asked for", async () => {
    const statements: Statement[] = [];
    const reader = createChangeReader({
      dialect: sql.dialect,
      read: async (statement) => (statements.push(statement), []),
    });
    const client = await openTransaction();
    // Below all others, so that no reader of another test sees them.
    await client.query(`insert into timeline (seq, action_id, account_id, at, run, revision, type, status, detail)
      select -n, 'act_plan_' || n, 'acc_one', 0, 1, 1, 'created', 'pending', '{}' from generate_series(1, 20000) n`);
    await client.query("analyze timeline");
    await reader.changedSince(-20_001, NODE_CHANGES_MAX);
    await reader.findRevisions(["act_one"]);
    await client.query("set local enable_seqscan = off");
    const plans: string[] = [];
    for (const { text, values } of statements.map(toQuery)) {
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain ${text}`, [...values]);
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
    }
    await client.query("rollback");
    await client.end();
    expect(plans[0]).toContain("Index Scan using timeline_pkey");
    expect(plans[0]).not.toMatch(/Sort|Seq Scan on timeline/);
    expect(plans[1]).toMatch(/Index Scan using actions_pkey|Bitmap Index Scan on actions_pkey/);
  });

  test("name the revisions of actions", async () => {
    const creation = aCreation();
    await store.actions.create(creation);
    const { id, revision } = creation.action;
    expect(await createChangeReader(sql).findRevisions([id, "act_gone"])).toEqual(new Map([[id, revision]]));
    expect(await createChangeReader(sql).findRevisions([])).toEqual(new Map());
  });

  test("tell of a claim after what it claims, also in a transaction that began to write before", async () => {
    const lane = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };
    const at = { now: NOON, leaseUntil: new Date(NOON.getTime() + 45_000) };
    // What other tests have left.
    await store.actions.claimDue(claimOf(lane, { limit: 10, lease: at }));
    const other = await openTransaction();
    // Another write of the same commit comes first.
    await insert(other, "act_other");
    const creation = aCreation();
    await store.actions.create(creation);
    const claimed = await claimAll(
      async ({ text, values }) => (await other.query({ text, values: [...values], rowMode: "array" })).rows,
      [
        {
          queue: "action",
          lanes: [{ ...lane, limit: 10 }],
          bytesMax: 1_000_000,
          rowBytesMax: 1_000_000,
          now: at.now.getTime(),
          leaseUntil: at.leaseUntil.getTime(),
          by: "",
        },
      ],
    );
    expect(claimed).toMatchObject([{ rows: [] }]);
    await commit(other);
    // Where it was left, the next claim takes it.
    await store.actions.claimDue(claimOf(lane, { limit: 10, lease: at }));
    const timeline = await store.actions.timeline(ACCOUNT, creation.action.id);
    expect(timeline.map(({ event }) => event.type)).toEqual(["created", "started"]);
  });
});
