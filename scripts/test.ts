import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DIST } from "./build/bundle.ts";
import { buildTestPrograms } from "./build/test-programs.ts";

/**
 * `npm test`: builds the service and the command line as tests start them, and runs the tests but the guards, or those that the
 * arguments name. `npm run test:guards` runs the guards. Run by `bun test` alone they start both from source.
 */

/** A hang should fail, whatever the machine does besides; a test that is slow on a busy one should not. */
const TIMEOUT = ["--timeout", "60000"];

/**
 * CI tries a test that failed once more at once: a machine that others use too must not refuse a change. Its report names
 * such tests and shows how they failed. Everywhere else the first failure counts.
 */
const AGAIN = process.env["CI"] === undefined ? [] : ["--retry=1"];

/** More than there are cores: browsers, databases and other processes are waited for. */
const WORKERS = 4;
const GUARD_WORKERS = 2;
/** The end of what `bun test` says, which has its counts. */
const END_CHARS = 500;

/**
 * The files of a worker share its modules: to load the service takes half a second of a core, and most files need it. A test
 * therefore puts back what it changes of the process.
 */
const SHARED = "--no-isolate";

/**
 * Most code runs only a few times in a test: what optimizes it as soon as in a service takes a tenth of the processor time of all
 * tests. The guards, which measure, are optimized as ever.
 */
const OPTIMIZE_LATER = { BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "1000000" };

/** A collection whenever a timer rings would be half of all collections, each of a heap that the files of a worker share. */
const COLLECT_LATER = { BUN_GC_TIMER_DISABLE: "1" };

/** How long each file took, so that the slowest begin first; `npm test -- --update-timings` writes it anew. */
const TIMINGS = "--timings=test/timings.json";

/** What measures or fuzzes: one after the other, so that nothing else takes its time. */
const MEASURES = [
  ...["faults", "metrics", "nodes", "nodes-waits", "remote"].map(inE2e),
  "test/delivery/large-rows.test.ts",
  ...["generated", "generated-databases", "hostile-lengths", "held-bodies", "loop-gaps"].map(inHttp),
  ...["memory", "receipt-load", "slow-readers", "small-chunks"].map(inHttp),
  ...["lane-growth", "pages-under-writes", "postgres-connection", "postgres-nodes", "postgres-races"].map(inDb),
  ...["faults", "lock", "search-gaps", "sqld", "threaded"].map(inDb),
  ...["deadline", "hostile-connections", "resolving"].map((name) => `test/outbound/${name}.test.ts`),
  "test/receipts/masking.test.ts",
];

/** What kills, or starts programs and browsers, for which `npm test` has no time: it waits more than it works. */
const KILLS = [
  ...["attacks", "backup", "demo", "first-run", "guides", "mcp-restart"].map(inE2e),
  ...["migrate", "rotate-key", "start", "stop"].map(inE2e),
  "test/delivery/callback-crash.test.ts",
  ...["login-throttle", "unproved"].map(inHttp),
  "test/outbound/rebinding.test.ts",
  "test/build/binary.test.ts",
  "test/build/package.test.ts",
  "test/cli/on-the-machine.test.ts",
  "test/deploy/balancers.test.ts",
  "test/deploy/nodes.test.ts",
  "test/mcp/conformance.test.ts",
  "test/mcp/stdio.test.ts",
  "test/pages/account-looks.test.ts",
  "test/pages/firefox.test.ts",
  "test/pages/hostile-text.test.ts",
  "test/pages/looks.test.ts",
];

/** Run with the guards too, which have the time for more seeds and for canaries in every kind of body. */
const IN_BOTH = ["test/simulation.test.ts", "test/http/canaries.test.ts"];
const GUARD_SEEDS = "300";
const FEW_CANARIES = { CANARIES_IN: "body" };

const PREFIX = "test-";
/** What a run that was killed has left goes after this long. */
const LEFT_MS_MAX = 3_600_000;

mkdirSync(DIST, { recursive: true });
for (const name of readdirSync(DIST).filter((left) => left.startsWith(PREFIX))) {
  const path = join(DIST, name);
  if (statSync(path).mtimeMs < Date.now() - LEFT_MS_MAX) rmSync(path, { recursive: true, force: true });
}

let isStopped = false;
// Ctrl+C goes to the tests too: this one waits for them.
process.on("SIGINT", () => (isStopped = true));
process.on("SIGTERM", () => (isStopped = true));
const folder = mkdtempSync(join(DIST, PREFIX));
try {
  await buildTestPrograms(folder);
  const [first, ...others] = process.argv.slice(2);
  process.exitCode = first === "guards" ? await guards(folder, others) : await tests(folder, process.argv.slice(2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function inE2e(name: string): string {
  return `test/e2e/${name}.test.ts`;
}

function inDb(name: string): string {
  return `test/db/${name}.test.ts`;
}

function inHttp(name: string): string {
  return `test/http/${name}.test.ts`;
}

/** What was named, or all but the guards. */
async function tests(programs: string, asked: readonly string[]): Promise<number> {
  const isNamed = asked.some((name) => name.startsWith("test/"));
  const chosen = isNamed ? [] : [TIMINGS, ...[...KILLS, ...MEASURES].map((path) => `--path-ignore-patterns=${path}`)];
  const env = { ...FEW_CANARIES, ...OPTIMIZE_LATER, ...COLLECT_LATER };
  return bunTest([`--parallel=${WORKERS}`, SHARED, ...chosen, ...asked], { env, programs, stderr: "inherit" }).exited;
}

/** The guards, in two runs whose counts are said together behind the last one. */
async function guards(programs: string, others: readonly string[]): Promise<number> {
  const env = { SEEDS: GUARD_SEEDS };
  const counts = new Map<string, number>();
  let code = 0;
  for (const [workers, paths] of [
    [[`--parallel=${GUARD_WORKERS}`], KILLS],
    [[], [...MEASURES, ...IN_BOTH]],
  ] as const) {
    const named = paths.map((path) => `./${path}`);
    const run = bunTest([...workers, ...named, ...others], { env, programs, stderr: "pipe" });
    let end = "";
    for await (const chunk of run.stderr.pipeThrough(new TextDecoderStream())) {
      process.stderr.write(chunk);
      end = (end + chunk).slice(-END_CHARS);
    }
    for (const [, count, kind = ""] of end.matchAll(/^ *(\d+) (pass|skip|fail|errors?)$/gm))
      counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
    code ||= await run.exited;
    if (isStopped) return code;
  }
  console.error(["\nAll guards:", ...[...counts].map(([kind, count]) => ` ${count} ${kind}`)].join("\n"));
  return code;
}

function bunTest<Stderr extends "inherit" | "pipe">(
  args: readonly string[],
  { env, programs, stderr }: { env: Readonly<Record<string, string>>; programs: string; stderr: Stderr },
) {
  const run = Bun.spawn([process.execPath, "test", ...TIMEOUT, ...AGAIN, ...args], {
    env: { ...env, ...process.env, TEST_PROGRAMS: programs },
    stdin: "inherit",
    stdout: "inherit",
    stderr,
  });
  process.on("SIGTERM", () => run.kill());
  return run;
}
