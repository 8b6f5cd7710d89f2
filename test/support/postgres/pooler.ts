import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { freePort } from "../free-port.ts";
import { makeServerFolder, serverCommand, giveFile } from "./server.ts";

const PROGRAM = "/usr/sbin/pgbouncer";
const READY_MS_MAX = 10_000;
/** Fewer than the connections of two nodes, so that transactions of different clients share them. */
const POOL = 8;

export const hasPooler = existsSync(PROGRAM);

/** A pooler that gives a connection to a client for one transaction at a time, in front of one database. */
export class Pooler implements AsyncDisposable {
  readonly url: string;
  readonly #process: Bun.Subprocess;
  readonly #folder: string;

  private constructor(url: string, process: Bun.Subprocess, folder: string) {
    this.url = url;
    this.#process = process;
    this.#folder = folder;
  }

  static async start(databaseUrl: string): Promise<Pooler> {
    const parent = mkdtempSync(join(tmpdir(), "outgate-pooler-"));
    chmodSync(parent, 0o711);
    const folder = makeServerFolder(join(parent, "pooler"));
    const { hostname, port, username, password, pathname } = new URL(databaseUrl);
    const own = await freePort();
    const users = giveFile(folder, "users.txt", `"${username}" "${password}"\n`);
    const config = giveFile(
      folder,
      "pgbouncer.ini",
      [
        "[databases]",
        `${pathname.slice(1)} = host=${hostname} port=${port} user=${username} password=${password}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${own}`,
        "unix_socket_dir =",
        "auth_type = plain",
        `auth_file = ${users}`,
        "pool_mode = transaction",
        `default_pool_size = ${POOL}`,
        "max_client_conn = 500",
      ].join("\n"),
    );
    const process = Bun.spawn(serverCommand(["setpriv", "--pdeathsig=KILL", PROGRAM, config]), {
      cwd: folder,
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(join(folder, "pooler.log")),
    });
    const url = new URL(databaseUrl);
    url.port = String(own);
    const pooler = new Pooler(url.href, process, parent);
    const untilMs = performance.now() + READY_MS_MAX;
    while (!(await answers(url.href))) {
      if (performance.now() > untilMs || process.exitCode !== null) {
        const log = await Bun.file(join(folder, "pooler.log")).text();
        await pooler[Symbol.asyncDispose]();
        throw new Error(`pgbouncer does not answer: ${log.slice(-1_000)}`);
      }
      await Bun.sleep(20);
    }
    return pooler;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function answers(url: string): Promise<boolean> {
  const sql = new SQL(url, { max: 1, prepare: false });
  try {
    await sql`SELECT 1`.simple();
    return true;
  } catch {
    return false;
  } finally {
    await sql.close({ timeout: 0 }).catch(() => {});
  }
}
