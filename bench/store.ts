/**
 * Measures what one operation of the store costs as the table grows: microseconds at 10,000 and at 1,000,000 rows, and
 * their ratio, on files with `synchronous=FULL`, singly and in groups of 64. All sizes are open at once and take turns;
 * the figure is the median of all rounds but the first. Absolute figures depend on the machine.
 *
 *   bun bench/store.ts [--rounds 8] [--large] [--indexes]
 *
 * `--large` adds 2,000,000 rows. `--indexes` measures what each index adds to the life of an action instead, on copies
 * of one file of 200,000 rows that lack one index each.
 */
import type { ActionQuery } from "../src/core/search.ts";
import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openFile } from "../db/libsql/file.ts";
import { openStore } from "../db/open.ts";
import type { Action } from "../src/core/action.ts";
import { systemIds } from "../src/core/ids.ts";
import type { Creation, Store } from "../src/core/store.ts";
import { createSecrets } from "../src/crypto/secrets.ts";
import { ACCOUNT, aCreation, answered, aQuery, later, settled } from "../test/support/factory.ts";
import { storeOver } from "../test/support/store.ts";
import { quantile } from "./parts/time.ts";
import { claimDue } from "../test/db/conformance/steps.ts";
import { runStatements } from "../db/commands/command.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "8" },
    large: { type: "boolean", default: false },
    indexes: { type: "boolean", default: false },
  },
});

const ROUNDS = Number(values.rounds);

/** Actions created, claimed and settled per round, and reads of each list. */
const LIVES = values.indexes ? 2_048 : 256;

const READS = 32;

/** Rows of the rare status and of the rare method, equal in every size. */
const RARE = 60;

/** Microseconds per operation, by name. */
type Figures = ReadonlyMap<string, number>;

interface Subject {
  readonly name: string;
  readonly path: string;
  readonly store: Store;
  /** Ids from all over the table. */
  readonly sample: readonly string[];
}

const folder = mkdtempSync(join(tmpdir(), "outgate-bench-"));

const seal = createSecrets(new Uint8Array(32), (count) => systemIds.bytes(count));

/** Milliseconds after the factory's noon: every action is younger than those before it. */
let ageMs = 0;

try {
  await (values.indexes
    ? compareIndexes(200_000)
    : compareSizes([10_000, 1_000_000, ...(values.large ? [2_000_000] : [])]));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function compareSizes(sizes: readonly number[]): Promise<void> {
  const subjects: Subject[] = [];
  for (const rows of sizes) subjects.push(await seeded(rows));
  const [small, ...larger] = await takeTurns(subjects);
  print("us an operation", [...subjects.map(({ name }) => name), ...larger.map(() => "ratio")]);
  for (const [operation, us] of small ?? []) {
    const others = larger.map((figures) => figures.get(operation) ?? Number.NaN);
    print(operation, [us, ...others, ...others.map((other) => (other / us).toFixed(2))]);
  }
  for (const { store } of subjects) await store.close();
}

/**
 * One file without each index: the difference is what the index costs. On this thread, without fsync, one file at a
 * time; the figure is the minimum of the rounds, since other load can only add time.
 */
async function compareIndexes(rows: number): Promise<void> {
  const whole = await seeded(rows);
  await whole.store.close();
  const sql = openFile(whole.path);
  const text =
    "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name <> 'api_keys' ORDER BY name";
  const names = ["none", ...(await sql.read({ sql: text, args: [] })).map(({ name }) => String(name))];
  await sql.close();
  const least = new Map(names.map((name) => [name, new Map<string, number>()]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, figures] of least) {
      for (const [life, us] of await liveWithout(name, whole.path)) {
        figures.set(life, Math.min(us, figures.get(life) ?? us));
      }
    }
  }
  const lives = [...(least.get("none")?.keys() ?? [])];
  const us = (index: string, life: string) => least.get(index)?.get(life) ?? Number.NaN;
  const line = (name: string, figure: (life: string) => number) => print(name, lives.map(figure));
  print("us an operation", lives);
  line("with all indexes", (life) => us("none", life));
  console.log("of which it is for");
  for (const name of names.slice(1)) line(`  ${name}`, (life) => us("none", life) - us(name, life));
}

async function liveWithout(index: string, whole: string): Promise<Figures> {
  const path = join(folder, "without.db");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  copyFileSync(whole, path);
  const sql = openFile(path);
  await runStatements(sql, [{ sql: `DROP INDEX IF EXISTS ${index}`, args: [] }]);
  await sql.read({ sql: "PRAGMA synchronous = OFF", args: [] });
  const store = storeOver(sql);
  await live(store, 64);
  const figures = await live(store, 64);
  await store.close();
  return figures;
}

/** The median of each operation over the rounds, for each subject; all take a turn in every round. */
async function takeTurns(subjects: readonly Subject[]): Promise<readonly Figures[]> {
  const rounds: Figures[][] = subjects.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [at, subject] of subjects.entries()) {
      const figures = await measure(subject);
      if (round > 0) rounds[at]?.push(figures);
    }
  }
  return rounds.map((measured) => {
    const median = (name: string) =>
      quantile(
        measured.map((figures) => figures.get(name) ?? Number.NaN),
        0.5,
      );
    return new Map([...(measured[0]?.keys() ?? [])].map((name) => [name, median(name)]));
  });
}

async function measure({ store, sample }: Subject): Promise<Figures> {
  const figures = new Map([...(await live(store, 1)), ...(await live(store, 64))]);
  const find = (at: number) => store.actions.find(ACCOUNT, sample[(at * 7_919) % sample.length] ?? "");
  figures.set("get", await reading(1_024, find));
  const lists: Readonly<Record<string, Partial<ActionQuery>>> = {
    "list 50 newest": {},
    "list 50 behind a cursor in the middle": { before: sample[Math.floor(sample.length / 2)] ?? null },
    "list 50 by host": { host: "host7.example.com" },
    "list 50 by rare status": { statuses: ["failed"] },
    "list 50 by common status": { statuses: ["completed"] },
    "list 50 by rare method (bounded look)": { method: "PUT" },
  };
  for (const [name, filter] of Object.entries(lists)) {
    figures.set(name, await reading(READS, () => store.actions.list(aQuery({ limit: 50, ...filter }))));
  }
  const timeline = (at: number) => store.actions.timeline(ACCOUNT, sample[at % sample.length] ?? "");
  return figures.set("timeline", await reading(256, timeline));
}

/** Creates, claims and settles actions, `group` of them in one commit. */
async function live(store: Store, group: number): Promise<Map<string, number>> {
  const now = later((ageMs += 1));
  const at = { now, leaseUntil: later(ageMs + 45_000) };
  const plain = Array.from({ length: LIVES }, () => aCreation({ createdAt: now, retries: 1 }));
  const keyed = Array.from({ length: LIVES }, () => aCreation({ createdAt: now, idempotencyKey: systemIds.request() }));
  const active: Action[] = [];
  const create = (some: readonly Creation[]) => Promise.all(some.map((creation) => store.actions.create(creation)));
  const claim = async (some: readonly Creation[]) => {
    active.push(...(await claimDue(store.actions, aCreation().action, { limit: some.length, lease: at })));
  };
  const settle = (some: readonly Action[]) =>
    Promise.all(some.map((action) => store.actions.apply(settled(action, answered(200, '{"ok":true}'), { now }))));

  /** Every commit waits for a turn of the event loop, so that native memory is freed. */
  const inGroups = async <T>(items: readonly T[], work: (some: readonly T[]) => Promise<unknown>): Promise<number> => {
    const began = wallMs();
    for (let from = 0; from < items.length; from += group) await work(items.slice(from, from + group));
    return ((wallMs() - began) * 1_000) / items.length;
  };
  const label = group === 1 ? "one a commit" : `${group} a commit`;
  return new Map([
    [`insert, ${label}`, await inGroups(plain, create)],
    [`insert with key, ${label}`, await inGroups(keyed, create)],
    [`claim, ${label}`, await inGroups([...plain, ...keyed], claim)],
    [`settle, ${label}`, await inGroups(active, settle)],
  ]);
}

/** Microseconds per read; turns of the event loop between reads are not counted. */
async function reading(count: number, work: (at: number) => Promise<unknown>): Promise<number> {
  let totalMs = 0;
  for (let at = 0; at < count; at += 1) {
    const began = wallMs();
    await work(at);
    totalMs += wallMs() - began;
    if (at % 16 === 15) await nextTurn();
  }
  return (totalMs * 1_000) / count;
}

function wallMs(): number {
  return performance.now();
}

/** A file of finished actions with their timelines. */
async function seeded(rows: number): Promise<Subject> {
  const path = join(folder, `${rows}.db`);
  const store = await open(path);
  const sample: string[] = [];
  const began = wallMs();
  for (let from = 0; from < rows; from += 1_000) {
    const creations = Array.from({ length: 1_000 }, (_, at) => finished(from + at, rows));
    await Promise.all(creations.map((creation) => store.actions.create(creation)));
    sample.push(...creations.filter((_, at) => (from + at) % (rows / 5_000) === 0).map(({ action }) => action.id));
  }
  const megabytes = statSync(path).size / 1e6;
  console.log(`${rows} rows: ${megabytes.toFixed(0)} MB, written in ${((wallMs() - began) / 1_000).toFixed(0)} s`);
  return { name: `${rows} rows`, path, store, sample };
}

function finished(at: number, rows: number): Creation {
  const isRare = at % Math.floor(rows / RARE) === 0;
  const createdAt = later((ageMs += 1));
  const { action, outbox } = aCreation({
    createdAt,
    url: `https://host${at % 100}.example.com/orders/${at}`,
    method: isRare ? "PUT" : "POST",
    body: JSON.stringify({ order: at, note: "x".repeat(120) }),
    dedupe: at % 10 === 0 ? `order ${at} of ${rows}` : null,
    status: isRare ? "failed" : "completed",
    attempts: 1,
    revision: 3,
    dueAt: null,
    finishedAt: createdAt,
  });
  const created = { type: "created", actor: action.createdBy } as const;
  return {
    action,
    outbox,
    claim: null,
    rulesVersion: "",
    events: [created, { type: isRare ? "failed" : "completed" }],
  };
}

function open(path: string): Promise<Store> {
  return openStore({ url: `file:${path}`, authToken: null, seal, now: later(0), onFatal: console.error });
}

function print(name: string, cells: readonly (string | number)[]): void {
  const texts = cells.map((cell) => (typeof cell === "number" ? cell.toFixed(1) : cell));
  console.log(name.padEnd(40) + texts.map((text) => text.padStart(30)).join(""));
}
