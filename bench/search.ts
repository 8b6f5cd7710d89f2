/**
 * Measures lists and searches of one account with many actions, on a file: milliseconds of a page (p50, p99), and the
 * longest time that the event loop stood still meanwhile. Absolute figures depend on the machine.
 *
 *   bun bench/search.ts [--rows 1000000] [--rounds 30] [--folder /var/tmp/outgate-search] [--seed]
 *
 * The table is written first (half a minute for 1,000,000 rows); in a `--folder` it stays for the next run, and `--seed`
 * writes it only.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openFile } from "../db/libsql/file.ts";
import { migrate } from "../db/libsql/migrate.ts";
import type { Store } from "../src/core/store.ts";
import { NO_SEARCH, type Search, type ActionQuery } from "../src/core/search.ts";
import { ACTION_STATUSES } from "../src/core/action.ts";
import { BULK_ACTIONS_MAX, BULK_SCAN_ROWS_MAX, COUNTED_MAX, LIST_SCAN_ROWS_MAX } from "../src/core/limits.ts";
import { ACCOUNT, aQuery, NOON } from "../test/support/factory.ts";
import { storeOver } from "../test/support/store.ts";
import { quantile } from "./parts/time.ts";
import { runStatements } from "../db/commands/command.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "30" },
    folder: { type: "string" },
    seed: { type: "boolean", default: false },
  },
});
const rows = Number(values.rows);
const rounds = Number(values.rounds);
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "outgate-search-"));
mkdirSync(folder, { recursive: true });
const path = join(folder, `${rows}.db`);

/** Every hundredth failed, of those one in ten without an answer; every tenth has a title and metadata. */
const SEED = `insert into actions (id, account_id, revision, status, run, attempts, retries, url, hostname, host, method, dedupe,
    on_unknown, approve, created_at, created_by, scheduled_at, finished_at, last_error, error_source, response_code, duration_ms,
    body, response_body, key_id, title, extras)
  with recursive n(n) as (select cast(?1 as integer) union all select n + 1 from n where n < ?2)
  select 'act_' || printf('%026d', n), '${ACCOUNT}', 3, case when n % 100 = 0 then 'failed' else 'completed' end, 1, 1, 3,
    'https://host' || (n % 100) || '.example.com/v1/orders/' || n, 'host' || (n % 100) || '.example.com',
    'host' || (n % 100) || '.example.com', 'POST', null, 'retry', 0, ${NOON.getTime()} + n, 'key:test', 1, ${NOON.getTime()} + n,
    case when n % 1000 = 0 then 'The target closed the connection before the whole answer came.'
      when n % 100 = 0 then 'The target answered with status 503.' end,
    case when n % 1000 = 0 then 'dispatch' when n % 100 = 0 then 'target' end,
    case when n % 1000 = 0 then null when n % 100 = 0 then 503 else 200 end, 40,
    '{"order":' || n || ',"note":"${"x".repeat(120)}"}', '{"ok":true}', 'key_one',
    case when n % 10 = 0 then 'Refund order ' || n end,
    case when n % 10 = 0 then '{"reason":"Lost","metadata":{"customer":"' || (n % 5000) || '"}}' end
  from n`;

const SEED_METADATA = `insert into action_metadata (action_id, account_id, name, value)
  with recursive n(n) as (select cast(?1 as integer) union all select n + 1 from n where n < ?2)
  select 'act_' || printf('%026d', n), '${ACCOUNT}', 'customer', (n % 5000) from n where n % 10 = 0`;

const SEED_TIMELINE = `insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
  with recursive n(n) as (select cast(?1 as integer) union all select n + 1 from n where n < ?2)
  select 'act_' || printf('%026d', n), '${ACCOUNT}', ${NOON.getTime()} + n, 1, 3, 'attempt', 'failed',
    '{"attempt":1,"outcome":"unknown"}' from n where n % 1000 = 0`;

const STEP = 50_000;

async function seed(): Promise<void> {
  const sql = openFile(path);
  await migrate(sql, NOON);
  await sql.read({ sql: "PRAGMA synchronous = OFF", args: [] });
  const began = performance.now();
  for (let from = 1; from <= rows; from += STEP) {
    const args = [from, Math.min(rows, from + STEP - 1)];
    await runStatements(
      sql,
      [SEED, SEED_METADATA, SEED_TIMELINE].map((text) => ({ sql: text, args })),
    );
  }
  await sql.close();
  console.log(`${rows} rows written in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
}

/** The id of a row. */
const idAt = (row: number) => `act_${String(row).padStart(26, "0")}`;

const list = (query: Partial<ActionQuery>) => (store: Store) => store.actions.list(aQuery({ limit: 50, ...query }));

const search = (conditions: Partial<Search>, more: Partial<ActionQuery> = {}) =>
  list({ search: { ...NO_SEARCH, ...conditions }, ...more });

const FAILED = aQuery({ statuses: ["failed"], limit: BULK_ACTIONS_MAX, search: { ...NO_SEARCH, error: "closed" } });

const OPERATIONS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  "list 50 newest": list({}),
  "list 50 by status": list({ statuses: ["failed"] }),
  "list by method, looks at 10,000": list({ method: "PUT" }),
  "free text, found at once": search({ q: "ORDERS" }),
  "free text, looks at 10,000": search({ q: "no such text" }),
  "free text of a host": search({ q: "orders" }, { host: "host7.example.com" }),
  "start of an old id": search({ q: idAt(1234).slice(0, -1) }),
  "title, looks at 10,000": search({ title: "no such title" }),
  "reason, looks at 10,000": search({ reason: "no such reason" }),
  "path, looks at 10,000": search({ path: "/v2" }),
  "response code 5xx": search({ responseCodes: ["5xx"] }),
  "response code, looks at 10,000": search({ responseCodes: ["404", "500"] }),
  "outcome unknown": search({ outcome: "unknown" }),
  "metadata value": search({ metadata: [{ name: "customer", value: "4710" }] }),
  "metadata, two conditions": search({
    metadata: [
      { name: "customer", value: "4710" },
      { name: "order", value: null },
    ],
  }),
  "metadata name, looks at 10,000": search({ metadata: [{ name: "order", value: null }] }),
  "counts of all statuses": async (store) => {
    for (const status of ACTION_STATUSES) {
      const query = aQuery({ statuses: [status], limit: COUNTED_MAX });
      await store.actions.count(query, Math.floor(LIST_SCAN_ROWS_MAX / ACTION_STATUSES.length));
    }
  },
  "dry run of a bulk job": async (store) => {
    const found = await store.actions.matching(FAILED, BULK_SCAN_ROWS_MAX);
    await store.actions.withUnknown(found.actions.map(({ id }) => id));
  },
};

async function measure(store: Store): Promise<void> {
  console.log(`${"ms".padEnd(36)}${["p50", "p99", "largest gap"].map((name) => name.padStart(14)).join("")}`);
  for (const [name, run] of Object.entries(OPERATIONS)) {
    await run(store);
    const taken: number[] = [];
    let gap = 0;
    for (let round = 0; round < rounds; round += 1) {
      let isOver = false;
      let last = performance.now();
      const look = () => {
        const now = performance.now();
        gap = Math.max(gap, now - last);
        last = now;
        if (!isOver) setImmediate(look);
      };
      setImmediate(look);
      const began = performance.now();
      await run(store);
      taken.push(performance.now() - began);
      isOver = true;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const cells = [quantile(taken, 0.5), quantile(taken, 0.99), gap];
    console.log(name.padEnd(36) + cells.map((cell) => cell.toFixed(2).padStart(14)).join(""));
  }
}

if (!existsSync(path)) await seed();
if (!values.seed) {
  const store = storeOver(openFile(path));
  await measure(store);
  await store.close();
}
if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
