import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Client } from "pg";
import { runCalls, runGroup, type DbConnection } from "../../db/commands/command.ts";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { tables } from "../../db/postgres/schema.ts";
import { type Query, toQuery } from "../../db/postgres/queries.ts";
import { openPostgres, type PostgresPool } from "../../db/postgres/connection.ts";
import { openTx } from "../../db/postgres/tx.ts";
import { NO_FILTER, type Store } from "../../src/core/store.ts";
import { approve, cancel } from "../../src/core/changes.ts";
import { toStoredCount } from "../../src/core/account-rules.ts";
import { NO_SEARCH } from "../../src/core/search.ts";
import {
  ACCOUNT,
  aCreation,
  aDecision,
  answered,
  aQuery,
  aRuleCount,
  NOON,
  settled,
  writeOf,
} from "../support/factory.ts";
import { eventually } from "../support/eventually.ts";
import { hasPostgres } from "../support/postgres.ts";
import { openMigrated } from "../support/postgres-store.ts";
import { storeOver } from "../support/store.ts";
import { activeAction, attemptedAction, claimOf, createdAction, LEASE } from "./conformance/steps.ts";
import { LANE, type Operation, OPERATIONS } from "./operations.ts";

/** Rows of each table: enough that reading all of them is not the fastest way any more. */
const ROWS = 5_000;

const AT_HOST = { ...NO_FILTER, host: "h3.example", before: NOON };

/** Rows of many accounts, of which most are over. */
const ROWS_OF_TABLES = [
  `insert into actions (id, account_id, revision, status, run, attempts, retries, url, hostname, host, method, dedupe,
      on_unknown, approve, created_at, created_by, due_at, scheduled_at, lease_until, key_id, body)
    select 'act_' || lpad(n::text, 9, '0'), 'acc_' || n % 50, 1, s, 1, case s when 'active' then 1 else 0 end, 3,
      'https://h' || n % 40 || '.example/', 'h' || n % 40 || '.example', 'h' || n % 40 || '.example', 'POST',
      case when n % 3 = 0 then 'd' || n end, 'retry', 0, 1772000000000 + n, 'x',
      case s when 'pending' then 1772000000000 + n end, 1, case s when 'active' then 1772000000000 + n end, 'key_' || n % 60, '{}'
    from (select n, case n % 20 when 0 then 'pending' when 1 then 'active' when 2 then 'failed' when 3 then 'awaiting_approval'
      else 'completed' end as s from generate_series(1, ${ROWS}) n) all_rows`,
  `insert into timeline (seq, action_id, account_id, at, run, revision, type, status, detail)
    select n, 'act_' || lpad((n / 2)::text, 9, '0'), 'acc_' || n % 50, n, 1, n, 'created', 'pending', '{}'
    from generate_series(1, ${ROWS}) n`,
  `insert into action_keys select 'acc_' || n % 50, 'dedupe', 'd' || n, 'act_' || lpad(n::text, 9, '0'), 1772000000000 + n
    from generate_series(1, ${ROWS}) n`,
  `insert into outbox (id, action_id, account_id, run, revision, kind, event, target, host, status, attempts, due_at,
      scheduled_at, lease_until, created_at, sent_at, key_id)
    select 'out_' || n, 'act_' || lpad(n::text, 9, '0'), 'acc_' || n % 50, 1, 1, k, 'decided', 'x', 'h' || n % 40, s, 1,
      case s when 'pending' then n end, n, case s when 'active' then n end, n, case k when 'mail' then n end, 'key_' || n % 60
    from (select n, case n % 20 when 0 then 'pending' when 1 then 'active' else 'delivered' end as s,
      case n % 2 when 0 then 'callback' else 'mail' end as k from generate_series(1, ${ROWS}) n) all_rows`,
  `insert into api_keys (id, account_id, name, role, hold, hash, last4, created_at)
    select 'key_' || n, 'acc_' || n % 50, 'n', 'agent', 'none', 'hash ' || n, 'abcd', n from generate_series(1, ${ROWS}) n`,
  `insert into accounts (id, sealed_root_secret, created_at) select 'acc_' || n, 'x', n from generate_series(1, ${ROWS}) n`,
  `insert into people select 'per_' || n, n || '@example.com', n || '@example.com', 'h', n from generate_series(1, ${ROWS}) n`,
  `insert into members select 'acc_' || n, 'per_' || n, n from generate_series(1, ${ROWS}) n`,
  `insert into sessions select 'h' || n, 'per_' || n, 'acc_' || n, n, n from generate_series(1, ${ROWS}) n`,
  `insert into action_metadata select 'act_' || lpad(n::text, 9, '0'), 'acc_' || n % 50, 'customer', n % 100
    from generate_series(1, ${ROWS}) n`,
  `insert into attempts select 'act_' || lpad(n::text, 9, '0'), 1, 1, 0, '[]', '{}' from generate_series(1, ${ROWS}) n`,
  `insert into bulk_jobs (id, account_id, operation, filter, status, matching, done, failed, created_at, created_by, key_id,
      person_id, client, finished_at)
    select 'blk_' || n, 'acc_' || n % 50, 'retry', '{}', case n % 1000 when 0 then 'running' else 'finished' end, 1, 0, 0, n,
      'x', 'k', '', '', case n % 1000 when 0 then null else n end from generate_series(1, ${ROWS}) n`,
  `insert into bulk_results (job_id, action_id, run, status)
    select 'blk_' || n % 500, 'act_' || n, 1, 'done' from generate_series(1, ${ROWS}) n`,
  `insert into pauses (id, account_id, kind, subject, cancels, created_at, created_by, ended_at)
    select 'pau_' || n, 'acc_x' || n, 'account', '', 0, n, 'x', n from generate_series(1, ${ROWS}) n`,
  `insert into rejections (account_id, key_id, digest, similar_digest, kind, at, action_id, run, actor)
    select 'acc_' || n % 50, 'key_' || n % 60, 'd' || n, 's' || n % 900, 'rejected', n, 'x', 1, 'x' from generate_series(1, ${ROWS}) n`,
  `insert into host_settings select 'acc_' || n % 50, 'h' || n, '{}', n, 'x' from generate_series(1, ${ROWS}) n`,
  `insert into key_days select 'key_' || n % 60, 100000 + n, 1 from generate_series(1, ${ROWS}) n`,
  `insert into rule_counts select 'rul_' || n % 60, 's' || n % 600, n, '1', 0, n from generate_series(1, ${ROWS}) n`,
  `insert into invitations select 'inv_' || n, 'acc_' || n % 50, n || '@example.com', n || '@example.com', 'reader', 'h' || n, n, 'x', n
    from generate_series(1, ${ROWS}) n`,
  `insert into identities select 'i', 's' || n, 'per_' || n, n from generate_series(1, ${ROWS}) n`,
  `insert into activity select 'acc_' || n % 50, 30, n / 50 * 1800000, 'host', 'h' || n % 7, 1, 1, 0, 1, 0, 0, 0, '7:1', '', null, null
    from generate_series(1, ${ROWS}) n`,
  `insert into audit (at, account_id, actor, kind, subject, client, detail)
    select n, 'acc_' || n % 50, 'user:' || n % 9 || '@example.com', 'approved', 'x', '', '{}' from generate_series(1, ${ROWS}) n`,
  `insert into first_steps select 'acc_' || n, 'per_' || n, 'hidden', n from generate_series(1, ${ROWS}) n`,
  `insert into facts select 'fact ' || n, '7' from generate_series(1, ${ROWS}) n`,
  "update positions set base = 1000000",
  "vacuum analyze",
];

const FILLED = new Set(ROWS_OF_TABLES.flatMap((text) => /^insert into (\w+)/.exec(text)?.[1] ?? []));

/** What needs a store that has nothing else, or deletes so much of what is here that reading all of it is right. */
const ALONE =
  /^(claim|settle|retry with a key|changes|activity that is too old|reschedule|prune.*|list by unknown outcome|what a team does)$/;

/** Each is explained with the plan that holds for all values, as prepared statements get it. */
const EXPLAINED: readonly (readonly [name: string, run: Operation])[] = [
  ["claim of a lane", ({ actions }) => actions.claimDue(claimOf(LANE, { limit: 64 }))],
  [
    "settle what was claimed",
    async ({ actions }) => actions.apply(settled(await activeAction(actions), answered(500))),
  ],
  ["changes, as they came", async ({ actions }) => actions.changes(ACCOUNT, (await actions.position()) - 4096 * 10)],
  ["extend a lease", async ({ actions }) => actions.extendLease(await activeAction(actions), NOON)],
  ["prune bulk jobs", ({ bulk }) => bulk.prune(new Date(7))],
  ["prune keys", ({ upkeep }) => upkeep.pruneKeys(NOON)],
  ["list by unknown outcome", searchUnknown],
  ["claim of many lanes", ({ actions }) => actions.claimDue({ ...claimOf(LANE), lanes: manyLanes() })],
  ["approve", approveOne],
  ["held at a host, in turns of many", ({ actions }) => actions.held("acc_3", "2.act_x", 9, AT_HOST)],
  ...OPERATIONS.filter(([name]) => !ALONE.test(name)).map(([name, run]) => [name, run] as const),
];

/** The indexes of these tables, as `db/tables.ts` names them, and the operations that find their rows by each. */
const INDEXES = Object.values<unknown>(tables).flatMap((table) => {
  if (!is(table, PgTable)) return [];
  const { name: tableName, indexes } = getTableConfig(table);
  const names = indexes.filter(({ config }) => !config.unique).map(({ config }) => config.name ?? "");
  return names.flatMap((index) => {
    const readers = OPERATIONS.filter(([name, , used]) => !ALONE.test(name) && used.split(" ").includes(index));
    return FILLED.has(tableName) && readers.length > 0 ? [[index, readers.map(([, run]) => run)] as const] : [];
  });
});

describe.skipIf(!hasPostgres)("on PostgreSQL", () => {
  let db: Awaited<ReturnType<typeof openMigrated>>;
  let real: PostgresPool;

  beforeAll(async () => {
    db = await openMigrated();
    for (const text of ROWS_OF_TABLES) await db.client.query(text);
    await stopAutovacuum(db.client);
    await db.client.query("set plan_cache_mode = force_generic_plan");
    real = openPostgres(db.url);
  }, 60_000);

  afterAll(async () => {
    await real.close();
    await db[Symbol.asyncDispose]();
  });

  test.each(EXPLAINED)("%s reads no table whole", async (_, run) => {
    const plans: Plan[] = [];
    await run(storeOver(explained(real, db.client, plans), { isOnlyProcess: false }));
    expect(plans.length).toBeGreaterThan(0);
    const whole = plans.filter((plan) => plan["Node Type"] === "Seq Scan" && FILLED.has(plan["Relation Name"] ?? ""));
    expect(whole.map((plan) => `${plan["Relation Name"]} for ${plan.text}`)).toEqual([]);
  });

  test.each(INDEXES)("%s is read by what it is for", async (index, readers) => {
    const plans: Plan[] = [];
    const isRead = () => plans.some((plan) => plan["Index Name"] === index);
    for (const run of readers.toReversed()) {
      if (!isRead()) await run(storeOver(explained(real, db.client, plans), { isOnlyProcess: false }));
    }
    expect(isRead()).toBe(true);
  });
});

describe.skipIf(!hasPostgres)("while tables are empty, and for as long as such a plan is kept,", () => {
  test.each([
    ["a claim", ({ actions }: Store) => actions.claimDue({ ...claimOf(LANE), lanes: manyLanes() })],
    ["a create with a claim", ({ actions }: Store) => actions.create({ ...aCreation({ dedupe: "d" }), claim: LEASE })],
    ["what gives back what it counted", cancelCounted],
  ])("%s reads indexes by their first column", async (_, run) => {
    await using db = await openMigrated();
    const { client: planner } = db;
    await stopAutovacuum(planner);
    // As the service sets them: what is turned off costs so much that everything would be compiled.
    const settings = ["enable_sort", "enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"];
    await planner.query(settings.map((name) => `set ${name} = off`).join("; "));
    await planner.query("set plan_cache_mode = force_generic_plan");
    const { rows: indexes } = await planner.query<{ name: string; first: string }>(
      "select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid, 1, true) as first from pg_index",
    );
    const firstOf = new Map(indexes.map(({ name, first }) => [name, first]));
    const real = openPostgres(db.url);
    const plans: Plan[] = [];
    await run(storeOver(explained(real, planner, plans), { isOnlyProcess: false }));
    await real.close();
    const scans = plans.filter((plan) => plan["Index Name"] !== undefined);
    expect(scans.length).toBeGreaterThan(0);
    const whole = scans.filter(({ "Index Name": name = "", "Index Cond": cond = "" }) => {
      return !cond.includes(`${firstOf.get(name)} = `);
    });
    expect(whole.map((plan) => `${plan["Index Name"]} by ${plan["Index Cond"]} for ${plan.text}`)).toEqual([]);
  });
});

describe.skipIf(!hasPostgres)("where actions were few when PostgreSQL last analyzed them,", () => {
  const one = (
    id: string,
    number: string,
  ) => `'act_${id}' || ${number}, 'acc_1', 1, 'pending', 1, 0, 3, 'https://h.example/',
    'h' || ${number} || '.example', 'h' || ${number} || '.example', 'POST', 'retry', 0, 1, 'x', 7, 1, 'key_1'`;
  const insert = `insert into actions (id, account_id, revision, status, run, attempts, retries, url, hostname, host, method,
    on_unknown, approve, created_at, created_by, due_at, scheduled_at, key_id)`;

  test.each([
    ["the heads of lanes are", ({ actions }: Store) => actions.lanes(null, 8)],
    ["what is due first is", ({ actions }: Store) => actions.firstDueAt()],
    ["the values of filters are", ({ actions }: Store) => actions.filterValues("acc_1", 8)],
  ])("%s read by index, step by step", async (_, run) => {
    await using db = await openMigrated();
    const { client } = db;
    await stopAutovacuum(client);
    await client.query(`${insert} values (${one("few", "1")}), (${one("few", "2")})`);
    await client.query("analyze actions");
    const real = openPostgres(db.url);
    const store = storeOver(real, { isOnlyProcess: false });
    // Each of its connections keeps a plan.
    for (let times = 0; times < 40; times += 1) await run(store);
    await client.query(`${insert} select ${one("many", "n")} from generate_series(100, 2100) n`);
    await run(store);
    await real.close();
    const counts = "select seq_tup_read, idx_scan from pg_stat_user_tables where relname = 'actions'";
    const [sequential, byIndex] = await readOf(client, counts, "outgate");
    expect(sequential).toBeLessThan(2_000);
    expect(byIndex).toBeGreaterThan(0);
  });
});

describe.skipIf(!hasPostgres)("while PostgreSQL has no statistics of actions,", () => {
  /** Enough that the planner prefers to read all of them for each. */
  const held = 20_000;
  const insert = `insert into actions (id, account_id, revision, status, run, attempts, retries, url, hostname, host, method,
      on_unknown, approve, created_at, created_by, scheduled_at, key_id)
    select 'act_' || lpad(n::text, 9, '0'), '${ACCOUNT}', 1, 'awaiting_approval', 1, 0, 3, 'https://h.example/',
      'h' || n % 20 || '.example', 'h' || n % 20 || '.example', 'POST', 'retry', 1, n, 'x', 1,
      case n % 5000 when 7 then 'key_few' else 'key_' || n % 20 end
    from generate_series(1, ${held}) n`;

  const OF_KEY = { ...NO_FILTER, keyId: "key_few" };
  const AT_HOST_7 = { ...NO_FILTER, host: "h7.example" };
  const AT_BOTH = { ...AT_HOST_7, ...OF_KEY, host: "h7.example" };

  const READS: readonly (readonly [name: string, most: number, run: Operation])[] = [
    ["an action", 10, ({ actions }) => actions.find(ACCOUNT, "act_000000700")],
    ["some that are held", 10, ({ actions }) => actions.heldAmong(ACCOUNT, ["act_000000700", "act_000000900"])],
    ["what is held of a key", 50, ({ actions }) => actions.held(ACCOUNT, null, 9, OF_KEY)],
    ["what is held at a host", 150, ({ actions }) => actions.held(ACCOUNT, null, 9, AT_HOST_7)],
    ["how much is held of a key", 50, ({ actions }) => actions.heldTotal(ACCOUNT, OF_KEY, 900)],
    ["how much is held at a host", 2_000, ({ actions }) => actions.heldTotal(ACCOUNT, AT_HOST_7, 900)],
    ["how much is held of a key at a host", 50, ({ actions }) => actions.heldTotal(ACCOUNT, AT_BOTH, 900)],
    // Each of them counted whole.
    ["hosts with something held", 3 * held, ({ actions }) => actions.heldHosts(ACCOUNT)],
    ["who has something held", 3 * held, ({ actions }) => actions.requesters(ACCOUNT)],
  ];

  let db: Awaited<ReturnType<typeof openMigrated>>;
  /** Each of its connections keeps a plan of the empty table. */
  const early = new Map<string, PostgresPool>();

  const asked = async (name: string, run: Operation, times: number) => {
    const sql = openPostgres(`${db.url}?application_name=${encodeURIComponent(name)}`);
    for (let n = 0; n < times; n += 1) await run(storeOver(sql, { isOnlyProcess: false }));
    return sql;
  };

  beforeAll(async () => {
    db = await openMigrated();
    await stopAutovacuum(db.client);
    for (const [name, , run] of READS) early.set(name, await asked(name, run, 40));
    await db.client.query(insert);
  }, 60_000);

  afterAll(async () => {
    for (const sql of early.values()) await sql.close();
    await db[Symbol.asyncDispose]();
  });

  test.each(READS)("%s is found without reading all that is held for each", async (name, most, run) => {
    const counts = "select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'actions'";
    const [before = 0] = await countsOf(db.client, counts);
    const kept = early.get(name);
    if (kept === undefined) throw new Error(`Nothing was opened for ${name}.`);
    await run(storeOver(kept, { isOnlyProcess: false }));
    await kept.close();
    await (await asked(name, run, 1)).close();
    const [after = 0] = await readOf(db.client, counts, name);
    expect(after - before).toBeGreaterThan(0);
    expect(after - before).toBeLessThan(most);
  });
});

/** New statistics in the middle of a test would change its plans. */
async function stopAutovacuum(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  );
  await client.query(rows.map(({ name }) => `alter table ${name} set (autovacuum_enabled = false)`).join("; "));
}

/** Statistics of the server, which counts what a connection has read at its end, at the latest. */
async function readOf(client: Client, counts: string, application: string): Promise<readonly number[]> {
  const others = "select 1 from pg_stat_activity where application_name = $1 and datname = current_database()";
  const isOver = async () => (await client.query(others, [application])).rowCount === 0 || null;
  await eventually(isOver, "the end of its connections");
  return countsOf(client, counts);
}

async function countsOf(client: Client, counts: string): Promise<readonly number[]> {
  const { rows } = await client.query<(string | null)[]>({ text: counts, rowMode: "array" });
  return (rows[0] ?? []).map(Number);
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly Plan[];
  readonly text?: string;
}

function nodesOf(plan: Plan, text: string): readonly Plan[] {
  return [{ ...plan, text }, ...(plan.Plans ?? []).flatMap((child) => nodesOf(child, text))];
}

let explainedCount = 0;

/** A connection that asks for the plan of every statement before it runs it. */
function explained(sql: PostgresPool, planner: Client, plans: Plan[]): DbConnection {
  const explain = async (queries: readonly Query[]) => {
    for (const { text, values } of queries) {
      const literals = values.map((value) => (value === null ? "null" : planner.escapeLiteral(literalOf(value))));
      explainedCount += 1;
      const name = `explained_${explainedCount}`;
      await planner.query(`prepare ${name} as ${text}`);
      const call = literals.length === 0 ? name : `${name}(${literals.join(", ")})`;
      const { rows } = await planner.query<{ "QUERY PLAN": readonly { Plan: Plan }[] }>(
        `explain (format json) execute ${call}`,
      );
      await planner.query(`deallocate ${name}`);
      for (const { Plan: plan } of rows[0]?.["QUERY PLAN"] ?? []) plans.push(...nodesOf(plan, text));
    }
  };
  return {
    ...sql,
    async read(statement) {
      await explain([toQuery(statement)]);
      return sql.read(statement);
    },
    async transact(calls) {
      let last: Promise<unknown> = Promise.resolve();
      const results = await runCalls(calls, (group) => {
        const tx = openTx((query) => {
          const { text, values, rowMode } = query;
          const answer = last.then(async () => {
            await explain([query]);
            const asked = { text, values: [...values], types: sql.config.types };
            if (rowMode === undefined) return [await planner.query(asked)];
            return [await planner.query({ ...asked, rowMode })];
          });
          last = answer;
          return answer;
        });
        return runGroup(tx, group).finally(() => tx.end());
      });
      await last;
      return results;
    },
  };
}

function literalOf(value: string | number | readonly (string | null)[]): string {
  if (!Array.isArray(value)) return String(value);
  return `{${value.map((item) => JSON.stringify(item)).join(",")}}`;
}

function manyLanes() {
  return Array.from({ length: 40 }, (_, at) => ({
    accountId: "acc_0",
    host: `h${at}.example`,
    keyId: `key_${at}`,
    limit: 4,
  }));
}

async function searchUnknown({ actions }: Store): Promise<void> {
  await attemptedAction(actions, { kind: "unknown", fault: "closed" }, { retries: 1 });
  await actions.list(aQuery({ search: { ...NO_SEARCH, outcome: "unknown" } }));
}

async function cancelCounted({ actions }: Store): Promise<void> {
  const counted = [toStoredCount(aRuleCount())];
  const action = await attemptedAction(actions, answered(500), { counted });
  await actions.apply(writeOf(cancel(action, aDecision())));
}

async function approveOne({ actions }: Store): Promise<void> {
  const held = await createdAction(actions, { approve: true, callback: "https://hooks.example.com/" });
  await actions.apply(writeOf(approve(held, aDecision())));
}
