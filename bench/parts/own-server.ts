import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { makeServerFolder, PostgresServer } from "../../test/support/postgres/server.ts";

/** Stops the servers of a folder and deletes it when the process that made them has gone without doing so. */
const WATCHDOG = `
while kill -0 "$1" 2>/dev/null; do sleep 1; done
for file in "$2"/*/data/postmaster.pid; do kill -QUIT "$(head -n 1 "$file")"; done
sleep 1
rm -rf "$2"`;
const STANDBY = "standby";

/** Servers that a fault may kill: nobody else uses them, and they go with whoever made them. */
export class OwnServers implements AsyncDisposable {
  readonly primary: PostgresServer;
  readonly #folder: string;
  readonly #password: string;
  readonly #watchdog: Bun.Subprocess;
  readonly #all: PostgresServer[];

  private constructor(primary: PostgresServer, folder: string, password: string) {
    this.primary = primary;
    this.#folder = folder;
    this.#password = password;
    this.#all = [primary];
    this.#watchdog = Bun.spawn(["sh", "-c", WATCHDOG, "sh", String(process.pid), folder], {
      detached: true,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    this.#watchdog.unref();
  }

  /** One that runs and has an empty database `outgate`. What is killed is a process and not a machine: no fsync unless it is asked for. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<OwnServers> {
    const folder = mkdtempSync(join(tmpdir(), "outgate-servers-"));
    chmodSync(folder, 0o711);
    const password = randomBytes(16).toString("hex");
    const common = { max_connections: "300", shared_buffers: "64MB", fsync: "off", ...settings };
    const primary = await PostgresServer.create({
      folder: makeServerFolder(join(folder, "primary")),
      password,
      settings: common,
    });
    const servers = new OwnServers(primary, folder, password);
    try {
      await primary.start();
      await using sql = new SQL(primary.url("postgres"), { max: 1 });
      await sql`CREATE DATABASE outgate`;
      return servers;
    } catch (error) {
      await servers[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return this.primary.url("outgate");
  }

  /** Starts a copy that follows the primary, and resolves when the primary acknowledges no commit before the copy has it. */
  async follow(): Promise<PostgresServer> {
    const folder = makeServerFolder(join(this.#folder, STANDBY));
    const settings = { synchronous_standby_names: "", max_connections: "300", shared_buffers: "64MB", fsync: "off" };
    const options = { folder, password: this.#password, settings };
    const standby = await PostgresServer.createReplica(options, this.primary, STANDBY);
    this.#all.push(standby);
    await standby.start();
    await using sql = new SQL(this.primary.url("postgres"), { max: 1 });
    await sql.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`);
    await sql`SELECT pg_reload_conf()`;
    for (;;) {
      const rows = (await sql`SELECT sync_state FROM pg_stat_replication`) as readonly { sync_state: string }[];
      if (rows.some(({ sync_state: state }) => state === "sync")) return standby;
      await Bun.sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#all) if (server.processId() !== null) await server.stop("immediate").catch(() => {});
    this.#watchdog.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
