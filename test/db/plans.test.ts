import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { runCalls, runGroup, type DbConnection } from "../../db/commands/command.ts";
import { openFile } from "../../db/libsql/file.ts";
import { openTx } from "../../db/libsql/tx.ts";
import type { SqlValue, Statement } from "../../db/sql/dialect.ts";
import { putEmptyDatabase, storeOver, temporaryFolder } from "../support/store.ts";
import { claimOf } from "./conformance/steps.ts";
import { LANE, OPERATIONS } from "./operations.ts";

/** Only what is small in itself may be walked through: one row of values, a bounded page, what waits. */
const SCANS =
  /^SCAN (CONSTANT ROW|\d+ CONSTANT ROWS|\d+-ROW VALUES CLAUSE|s|head|held|found( LEFT-JOIN)?|newest|counted|replaced|managers|names|(j|lane|row|json_each) VIRTUAL TABLE INDEX 1:|\(subquery-\d+\)|(a|actions) USING (COVERING )?INDEX actions_(pending|active|held)|pauses USING INDEX pauses_in_force|bulk_jobs USING INDEX bulk_jobs_running)$/;

/** What is put in order after it was found: a few rows of one action, person or account. */
const SORTED: ReadonlySet<string> = new Set([
  "timeline",
  "changes",
  "activity",
  "activity of all",
  "figures of a range",
  "scheduled retries",
  "counts of the audit log",
  "person",
  "accounts of a person",
  "identified",
  "invitations",
  "invitation of an address",
  "grants that can be ended",
  "signing seeds",
]);

test.each(OPERATIONS)("%s finds its rows by index", async (name, run, names) => {
  const indexes = names.split(" ").filter(Boolean);
  await using db = await openExplained();
  await run(db.store);
  const plan = db.plan();
  expect(plan.filter((step) => step.startsWith("SCAN") && !SCANS.test(step))).toEqual([]);
  // A timeline is put in order after it was found: it is one action's, and bounded. So are what a change is told by, and
  // the rows that the overview counts, which it groups.
  // Callbacks of one lease are put in order among themselves.
  const isSorted = name.startsWith("orphaned");
  if (!SORTED.has(name) && !isSorted) expect(plan.filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
  const used = new Set(plan.flatMap(indexOf));
  // Every create reads the version of the rules by its name, and many operations create first.
  if (!indexes.includes("facts")) used.delete("facts");
  // Pages are joined to their rows by id.
  const joined = name.startsWith("list") ? ["actions"] : [];
  if (name.startsWith("list by metadata") || name.startsWith("list by a name")) joined.push("action_metadata");
  expect([...used].toSorted()).toEqual([...indexes, ...joined].toSorted());
});

test("a claim reads no more rows than it asks for, in the order of the index", async () => {
  await using db = await openExplained();
  await db.store.actions.claimDue(claimOf(LANE));
  await db.store.outbox.callbacks.claimDue(claimOf(LANE));
  const plan = db.plan();
  expect(plan).toContain("SEARCH actions USING INDEX actions_pending (account_id=? AND host=? AND key_id=?)");
  expect(plan).toContain("SEARCH outbox USING INDEX outbox_pending (kind=? AND account_id=? AND host=? AND key_id=?)");
  expect(plan.filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
});

/** A store that asks for the plan of every statement before it runs it. */
async function openExplained() {
  const folder = await temporaryFolder();
  await putEmptyDatabase(folder.file);
  const real = openFile(folder.file);
  // On a connection of its own: an explained write counts as one that is under way, and nothing could be committed.
  const planner = openFile(folder.file);
  const commands = new Database(folder.file);
  const steps: string[] = [];
  const explain = async ({ sql, args }: Statement) => {
    const rows = await planner.read({ sql: `EXPLAIN QUERY PLAN ${sql}`, args });
    steps.push(...rows.map((row) => String(row["detail"])));
  };
  const explained: DbConnection = {
    ...real,
    async read(statement) {
      await explain(statement);
      return real.read(statement);
    },
    transact: (calls) =>
      runCalls(calls, (group) => {
        const tx = openTx(async (sql, all) => {
          for (const args of all) await explain({ sql, args });
          const statement = commands.query<unknown, SqlValue[]>(sql);
          const columns = statement.columnNames;
          return all.map((args) => {
            if (columns.length === 0) return { columns, rows: [], changes: statement.run(...args).changes };
            const rows = statement.values(...args);
            return { columns, rows, changes: rows.length };
          });
        });
        return runGroup(tx, group).finally(() => tx.end());
      }),
  };
  return {
    store: storeOver(explained),
    plan: (): readonly string[] => steps,
    async [Symbol.asyncDispose]() {
      await real.close();
      await planner.close();
      commands.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The index that a step names; a primary key has the name of its table. */
const ALIASES: Readonly<Record<string, string>> = { k: "action_keys", m: "members", s: "sessions", l: "welcome_links" };

function indexOf(step: string): readonly string[] {
  if (step.includes("VIRTUAL TABLE")) return [];
  const [, table = ""] = /^SEARCH (\w+)/.exec(step) ?? [];
  if (step.includes("USING PRIMARY KEY")) return [ALIASES[table] ?? table];
  const [, index] = /INDEX (\w+)/.exec(step) ?? [];
  if (index === undefined) return [];
  return [index.replace(/^sqlite_autoindex_(\w+)_1$/, "$1")];
}
