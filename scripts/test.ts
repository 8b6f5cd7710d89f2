import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DIST } from "./build/bundle.ts";
import { buildTestPrograms } from "./build/test-programs.ts";

/**
 * `npm test`: builds the service and the command line as tests start them, and runs the tests, or those that the arguments
 * name. Run by `bun test` alone they start both from source.
 */
const OPTIONS = ["--parallel=2", "--timeout", "20000"];

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
  const tests = Bun.spawn([process.execPath, "test", ...OPTIONS, ...process.argv.slice(2)], {
    env: { ...process.env, TEST_PROGRAMS: folder },
    stdio: ["inherit", "inherit", "inherit"],
  });
  process.on("SIGTERM", () => tests.kill());
  process.exitCode = await tests.exited;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
