import { existsSync, mkdtempSync, chmodSync, chownSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

const PROGRAM = "/usr/sbin/pgbouncer";

/** Whether tests can have a pooler between the service and its database. */
export const hasPooler = existsSync(PROGRAM);

const READY_MS_MAX = 10_000;

/** PgBouncer in transaction mode before a database: each transaction may get another connection, and session state is lost. */
export async function openPooler(
  database: string,
  connections = 4,
): Promise<AsyncDisposable & { readonly url: string }> {
  const { hostname, port, username, password, pathname } = new URL(database);
  const folder = mkdtempSync(join(tmpdir(), "outgate-pooler-"));
  const listenPort = await freePort();
  const settings = join(folder, "pgbouncer.ini");
  writeFileSync(
    settings,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
logfile = ${join(folder, "log")}
`,
  );
  // It refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];
  if (asUser.length > 0) own(folder, settings);
  const pooler = Bun.spawn([...asUser, PROGRAM, settings], { stdout: "ignore", stderr: "ignore" });
  const startedMs = performance.now();
  while (!isUp(join(folder, "log"))) {
    if (pooler.exitCode !== null || performance.now() - startedMs > READY_MS_MAX)
      throw new Error("PgBouncer did not start.");
    await Bun.sleep(20);
  }
  const url = new URL(database);
  url.hostname = "127.0.0.1";
  url.port = String(listenPort);
  url.pathname = pathname;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      pooler.kill("SIGKILL");
      await pooler.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function own(...paths: readonly string[]): void {
  const { stdout } = Bun.spawnSync(["id", "-u", "postgres"]);
  const user = Number(stdout.toString());
  for (const path of paths) {
    chmodSync(path, 0o700);
    chownSync(path, user, -1);
  }
}

function isUp(log: string): boolean {
  return existsSync(log) && readFileSync(log, "utf8").includes("process up");
}
