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

/** How long each file took, so that the slowest begin first; `npm test -- --update-timings` writes it anew. */
const TIMINGS = "--timings=test/timings.json";

/**
 * What kills, measures or fuzzes: one after the other, so that nothing else takes their time. And what starts a program for each
 * of its cases, for which `npm test` has no time.
 */
const GUARDS = [
  ...["attacks", "backup", "demo", "faults", "first-run", "guides", "mcp-restart", "metrics"].map(inE2e),
  ...["migrate", "nodes", "nodes-waits", "remote", "rotate-key", "start", "stop"].map(inE2e),
  ...["callback-crash", "large-rows"].map((name) => `test/delivery/${name}.test.ts`),
  ...["generated", "generated-databases", "hostile-lengths", "held-bodies", "loop-gaps"].map(inHttp),
  ...["login-throttle", "memory", "receipt-load", "slow-readers", "small-chunks", "unproved"].map(inHttp),
  ...["lane-growth", "pages-under-writes", "postgres-connection", "postgres-nodes", "postgres-races"].map(inDb),
  ...["faults", "lock", "search-gaps", "sqld", "threaded"].map(inDb),
  ...["deadline", "hostile-connections", "rebinding", "resolving"].map((name) => `test/outbound/${name}.test.ts`),
  "test/build/binary.test.ts",
  "test/build/package.test.ts",
  "test/cli/on-the-machine.test.ts",
  "test/deploy/balancers.test.ts",
  "test/deploy/nodes.test.ts",
  "test/mcp/conformance.test.ts",
  "test/mcp/stdio.test.ts",
  "test/pages/account-looks.test.ts",
  "test/pages/entry-looks.test.ts",
  "test/pages/firefox.test.ts",
  "test/pages/hostile-text.test.ts",
  "test/pages/looks.test.ts",
  "test/receipts/masking.test.ts",
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

// Ctrl+C goes to the tests too: this one waits for them.
process.on("SIGINT", () => {});
const folder = mkdtempSync(join(DIST, PREFIX));
try {
  await buildTestPrograms(folder);
  const asked = process.argv.slice(2);
  const settings = asked[0] === "guards" ? { SEEDS: GUARD_SEEDS } : { ...FEW_CANARIES, ...OPTIMIZE_LATER };
  const tests = Bun.spawn([process.execPath, "test", ...TIMEOUT, ...AGAIN, ...chosen(asked)], {
    env: { ...settings, ...process.env, TEST_PROGRAMS: folder },
    stdio: ["inherit", "inherit", "inherit"],
  });
  process.on("SIGTERM", () => tests.kill());
  process.exitCode = await tests.exited;
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

/** What `bun test` runs: what was named, the guards, or all the others. */
function chosen(asked: readonly string[]): readonly string[] {
  const [first, ...others] = asked;
  if (first === "guards") return [...[...GUARDS, ...IN_BOTH].map((path) => `./${path}`), ...others];
  const workers = `--parallel=${WORKERS}`;
  if (asked.some((name) => name.startsWith("test/"))) return [workers, SHARED, ...asked];
  return [workers, SHARED, TIMINGS, ...GUARDS.map((path) => `--path-ignore-patterns=${path}`), ...asked];
}
