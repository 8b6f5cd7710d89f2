import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { runCalls, runGroup } from "../../db/commands/command.ts";
import { type Query, queriesOf } from "../../db/postgres/queries.ts";
import { openPostgres, type PostgresSql } from "../../db/postgres/connection.ts";
import { openTx } from "../../db/postgres/tx.ts";
import { createStore } from "../../db/sql/store.ts";
import type { Sql } from "../../db/sql/sql.ts";
import { NO_FILTER } from "../../db/sql/held.ts";
import type { Store } from "../../src/core/store.ts";
import { approve } from "../../src/core/changes.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { NO_SEARCH, type Search } from "../../src/core/search.ts";
import { settleNotification } from "../../src/core/notification.ts";
import {
  aBulkJob,
  ACCOUNT,
  aCreation,
  aDecision,
  anAuditEntry,
  answered,
  aQuery,
  KEY,
  later,
  NOON,
  settled,
  writeOf,
} from "../support/factory.ts";
import { dropDatabase, hasPostgres } from "../support/postgres.ts";
import { createMigrated } from "../support/postgres-store.ts";
import { testSecrets } from "../support/store.ts";
import {
  activeAction,
  attemptedAction,
  claimDue,
  claimOf,
  createdAction,
  LEASE,
  settleMany,
} from "./conformance/steps.ts";

/** Rows of each table: enough that reading all of them is not the fastest way any more. */
const ROWS = 20_000;

/** Tables with one row for each rule of the service are read whole. */
const READ_WHOLE = new Set(["positions"]);

const LANE = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };

const SPAN = { accountId: ACCOUNT, slotMinutes: 30, since: NOON, until: later(9) };

const KEYS = { dedupe: "d", idempotencyKey: "i" };

const AT_HOST = { ...NO_FILTER, host: "h3.example", before: NOON };

const PAIR = [{ keyId: KEY, hostname: "api.example.com" }];

const AUDIT_QUERY = {
  accountId: ACCOUNT,
  kinds: ["approved" as const],
  actors: ["user:a@example.com", "email:a@example.com"],
  since: null,
  until: null,
  before: 9,
  limit: 9,
};

/** What a working day consists of. Each is explained with the plan that holds for all values, as prepared statements get it. */
const OPERATIONS: readonly (readonly [name: string, run: (store: Store) => Promise<unknown>])[] = [
  ["create", ({ actions }) => actions.create(aCreation())],
  ["create with keys", ({ actions }) => actions.create(aCreation(KEYS))],
  ["create what is held", ({ actions }) => actions.create(aCreation({ approve: true }))],
  ["create that is claimed", ({ actions }) => actions.create({ ...aCreation(), claim: LEASE })],
  ["claim", ({ actions }) => actions.claimDue(claimOf(LANE, { limit: 64 }))],
  ["claim of many lanes", ({ actions }) => actions.claimDue({ ...claimOf(LANE), lanes: manyLanes() })],
  ["settle", async ({ actions }) => actions.apply(settled(await activeAction(actions), answered(500)))],
  ["approve", approveOne],
  ["find", ({ actions }) => actions.find(ACCOUNT, "act_x")],
  ["audit log of a person", ({ audit }) => audit.page(AUDIT_QUERY)],
  [
    "counts of the audit log",
    ({ audit }) => audit.count({ accountId: ACCOUNT, kinds: ["credential_used"], until: NOON, days: 7 }),
  ],
  ["holder of a key", ({ actions }) => actions.holderOf(ACCOUNT, "dedupe", "d", NOON)],
  ["settle, and keep the response", ({ actions }) => settleMany(actions)],
  ["responses", ({ actions }) => actions.responses(ACCOUNT, "act_x")],
  ["timeline", ({ actions }) => actions.timeline(ACCOUNT, "act_x")],
  ["position", ({ actions }) => actions.position()],
  ["changes", async ({ actions }) => actions.changes(ACCOUNT, (await actions.position()) - 4096 * 10)],
  ["lanes", ({ actions }) => actions.lanes(null, 128)],
  ["orphans", ({ actions }) => actions.orphans(NOON, 9, null)],
  ["what became of a claim", ({ actions }) => actions.claimed([ACCOUNT], LEASE)],
  ["first due", ({ actions }) => actions.firstDueAt()],
  ["held", ({ actions }) => actions.held(ACCOUNT, "act_x", 9)],
  ["held at a host", ({ actions }) => actions.held("acc_3", "act_x", 9, { ...NO_FILTER, host: "h3.example" })],
  ["held at a host, in turns", ({ actions }) => actions.held("acc_3", "2.act_x", 9, AT_HOST)],
  ["count what is held", ({ actions }) => actions.heldTotal(ACCOUNT, NO_FILTER, 9)],
  ["count what is held at a host", ({ actions }) => actions.heldTotal(ACCOUNT, AT_HOST, 9)],
  ["count what is held of a key", ({ actions }) => actions.heldTotal(ACCOUNT, { ...AT_HOST, keyId: KEY }, 9)],
  ["hosts with something held", ({ actions }) => actions.heldHosts(ACCOUNT)],
  ["held among some", ({ actions }) => actions.heldAmong(ACCOUNT, ["act_x"])],
  ["held of a key", ({ actions }) => actions.held(ACCOUNT, "act_x", 9, { ...NO_FILTER, keyId: KEY })],
  ["approved hosts", ({ actions }) => actions.approvedHosts(ACCOUNT, PAIR)],
  ["list", ({ actions }) => actions.list(aQuery())],
  ["list by status", ({ actions }) => actions.list(aQuery({ statuses: ["failed"] }))],
  ["list by host", ({ actions }) => actions.list(aQuery({ host: "api.example.com" }))],
  ["list of a key", ({ actions }) => actions.list(aQuery({ createdBy: KEY }))],
  ["list by free text", searching({ q: "refund", title: "x", reason: "y", path: "/" })],
  ["list by code and error", searching({ responseCodes: ["5xx"], error: "target" })],
  ["hosts and keys", ({ actions }) => actions.filterValues(ACCOUNT, 9)],
  ["list by ids", searching({ ids: ["act_x", "act_y"] })],
  ["list by metadata", searching({ metadata: [{ name: "customer", value: "7" }] })],
  ["list by a name of metadata", searching({ metadata: [{ name: "customer", value: null }] })],
  ["list by unknown outcome", searchUnknown],
  ["count", ({ actions }) => actions.count(aQuery({ statuses: ["failed"] }), 99)],
  ["count what failed since", ({ actions }) => actions.count(aQuery({ statuses: ["failed"], createdAfter: NOON }), 99)],
  ["waiting approvals", ({ actions }) => actions.waitingApprovals(ACCOUNT, later(DAY_MS))],
  ["scheduled retries", ({ actions }) => actions.scheduledRetries(ACCOUNT, NOON)],
  ["activity", ({ activity }) => activity.groups(4096 * 1000, { accountId: ACCOUNT, since: NOON, limit: 9 })],
  ["figures of a range", ({ activity }) => activity.read(SPAN)],
  ["latencies of a range", ({ activity }) => activity.latencies(SPAN, [{ kind: "host", name: "h7.example" }])],
  ["hours of hosts", ({ activity }) => activity.hostSlots(SPAN, ["h7.example"])],
  ["first steps", ({ firstSteps }) => firstSteps.done(ACCOUNT, "per_7")],
  ["newest actions", ({ firstSteps }) => firstSteps.newest(ACCOUNT)],
  ["who has something held", ({ actions }) => actions.requesters(ACCOUNT)],
  ["what may have been received", ({ actions }) => actions.withUnknown(["act_x"])],
  ["what was done too late", ({ actions }) => actions.withLateSuccess(["act_x"])],
  ["what rules did", ({ rules }) => rules.ruled("acc_x", NOON, 9)],
  ["expired", ({ upkeep }) => upkeep.expired(NOON, null, 9)],
  ["settings of hosts", ({ hostSettings }) => hostSettings.list(ACCOUNT)],
  ["extend a lease", async ({ actions }) => actions.extendLease(await activeAction(actions), NOON)],
  ["prune keys", ({ actions }) => actions.pruneKeys(NOON)],
  ["claim and settle a callback", notifyOne],
  ["count a mail in", mailOne],
  ["lanes of callbacks", ({ outbox }) => outbox.callbacks.lanes(null, 128)],
  ["orphaned callbacks", ({ outbox }) => outbox.callbacks.orphans(NOON, 9, null)],
  ["deliveries", ({ outbox }) => outbox.list(ACCOUNT, "x", 9)],
  ["key by hash", ({ accounts }) => accounts.keyByHash("x")],
  ["session", ({ people }) => people.session("x", NOON)],
  ["sessions of a person", ({ people }) => people.sessionsOf("x", NOON)],
  ["members", ({ team }) => team.members(ACCOUNT, 9)],
  ["accounts of a person", ({ team }) => team.accountsOf("x", 9)],
  ["managers", ({ team }) => team.managers("acc_7", NOON)],
  ["invitation", ({ team }) => team.invitation({ hash: "x" }, NOON)],
  ["invitations", ({ team }) => team.invitations(ACCOUNT, NOON, 9)],
  ["identified", ({ team }) => team.identified({ issuer: "i", subject: "s" })],
  ["budget of a key", ({ actions }) => actions.hasBudgetLeft({ keyId: KEY, limit: 5, day: 20_516 })],
  ["create with a daily limit", ({ actions }) => actions.create({ ...aCreation(), budget: { limit: 5, day: 20_516 } })],
  ["pauses in force", ({ pauses }) => pauses.inForce(ACCOUNT)],
  ["add a bulk job", ({ bulk }) => bulk.add(aBulkJob(), [{ id: "act_x", run: 1 }], anAuditEntry())],
  ["bulk jobs", ({ bulk }) => bulk.list(ACCOUNT, null, 9)],
  ["bulk jobs that run", ({ bulk }) => bulk.running(9)],
  ["results of a bulk job", ({ bulk }) => bulk.results("blk_7", { status: null, before: null, limit: 9 })],
  ["failures of a bulk job", ({ bulk }) => bulk.results("blk_7", { status: "failed", before: null, limit: 9 })],
  ["next actions of a bulk job", ({ bulk }) => bulk.waiting("blk_7", 9)],
  ["settle a bulk job", ({ bulk }) => bulk.settle("blk_7", [{ id: "act_7", status: "done", actionStatus: "pending" }])],
  ["end a bulk job", ({ bulk }) => bulk.end("blk_7", { status: "finished", at: NOON, by: null })],
  ["who began a bulk job", ({ bulk }) => bulk.member("acc_7", "per_7")],
  ["prune bulk jobs", ({ bulk }) => bulk.prune(new Date(7))],
  [
    "similar rejections",
    ({ rejections }) => rejections.similar({ accountId: ACCOUNT, keyId: KEY, digest: "d", similar: "s" }, NOON),
  ],
  ["rejections", ({ rejections }) => rejections.count({ accountId: ACCOUNT, keyId: KEY, digest: "d" }, NOON)],
];

describe.skipIf(!hasPostgres)("on PostgreSQL", () => {
  let url = "";
  let planner: Client;
  let real: PostgresSql;

  beforeAll(async () => {
    url = await createMigrated();
    planner = new Client({ connectionString: url });
    await planner.connect();
    await fill(planner);
    await planner.query("set plan_cache_mode = force_generic_plan");
    real = openPostgres(url);
  }, 60_000);

  afterAll(async () => {
    await planner.end();
    await real.close();
    await dropDatabase(url);
  });

  test.each(OPERATIONS)("%s reads no table whole", async (_, run) => {
    const plans: Plan[] = [];
    await run(storeOver(explained(real, planner, plans)));
    expect(plans.length).toBeGreaterThan(0);
    const whole = plans.filter(
      (plan) => plan["Node Type"] === "Seq Scan" && !READ_WHOLE.has(plan["Relation Name"] ?? ""),
    );
    expect(whole.map((plan) => `${plan["Relation Name"]} for ${plan.text}`)).toEqual([]);
  });
});

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
  readonly text?: string;
}

function nodesOf(plan: Plan, text: string): readonly Plan[] {
  return [{ ...plan, text }, ...(plan.Plans ?? []).flatMap((child) => nodesOf(child, text))];
}

let explainedCount = 0;

/** A connection that asks for the plan of every statement before it runs it. */
function explained(sql: PostgresSql, planner: Client, plans: Plan[]): Sql {
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
      await explain(queriesOf([statement]));
      return sql.read(statement);
    },
    async transact(calls) {
      let last: Promise<unknown> = Promise.resolve();
      const results = await runCalls(calls, (group) => {
        const tx = openTx((query) => {
          const { text, values } = query;
          const answer = last.then(async () => {
            await explain([query]);
            return [await planner.query({ text, values: [...values], rowMode: "array", types: sql.config.types })];
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

function storeOver(sql: Sql): Store {
  return createStore({
    sql,
    seal: testSecrets,
    cluster: null,
    isOnlyProcess: false,
    onFatal: () => {},
    release: () => {},
  });
}

/** Rows of many accounts, of which most are over. */
async function fill(client: Client): Promise<void> {
  const texts = [
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
    `insert into key_days select 'key_' || n % 60, n, 1 from generate_series(1, ${ROWS}) n`,
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
  for (const text of texts) await client.query(text);
}

function searching(search: Partial<Search>) {
  return ({ actions }: Store) => actions.list(aQuery({ search: { ...NO_SEARCH, ...search } }));
}

async function searchUnknown(store: Store): Promise<void> {
  await attemptedAction(store.actions, { kind: "unknown", fault: "closed" }, { retries: 1 });
  await searching({ outcome: "unknown" })(store);
}

function manyLanes() {
  return Array.from({ length: 40 }, (_, at) => ({
    accountId: "acc_0",
    host: `h${at}.example`,
    keyId: `key_${at}`,
    limit: 4,
  }));
}

async function approveOne({ actions }: Store): Promise<void> {
  const held = await createdAction(actions, { approve: true, callback: "https://hooks.example.com/" });
  await actions.apply(writeOf(approve(held, aDecision())));
}

async function notifyOne({ actions, outbox }: Store): Promise<void> {
  await actions.create(aCreation({ approve: true, callback: "https://api.example.com/" }));
  const [before] = await claimDue(outbox.callbacks, LANE);
  if (before === undefined) throw new Error("There was nothing to be claimed.");
  await outbox.settle(settleNotification(before, { delivery: { kind: "delivered" }, now: NOON, chance: 0.5 }), NOON);
}

async function mailOne({ actions, outbox }: Store): Promise<void> {
  await actions.create(aCreation({ approve: true, notifyEmail: "boss@example.com" }));
  const [mail] = await claimDue(outbox.mails, { ...LANE, host: "boss@example.com" });
  if (mail !== undefined) await outbox.permitMail(mail, NOON);
}
