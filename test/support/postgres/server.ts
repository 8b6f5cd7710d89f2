import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../free-port.ts";

/** Where Debian's packages put the programs of each version. */
const DEBIAN = "/usr/lib/postgresql";
const VERSION_MIN = 15;
const START_TRIES = 3;
const USER = "outgate";
/** The server refuses to run as root: then it runs as the user that its package makes. */
const SERVER_USER = "postgres";
const isRoot = process.getuid?.() === 0;

/** The folder of the newest server's programs; null, and why, if there is none that can run here. */
export function findPrograms(): { readonly folder: string | null; readonly reason: string } {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).filter((name) => Number(name) >= VERSION_MIN) : [];
  const newest = versions.toSorted((a, b) => Number(b) - Number(a)).find((name) => hasServer(join(DEBIAN, name)));
  if (newest === undefined) {
    return { folder: null, reason: `no server of version ${VERSION_MIN} or newer in ${DEBIAN}` };
  }
  if (isRoot && serverUser() === null) return { folder: null, reason: `root has no user ${SERVER_USER} to run it as` };
  return { folder: join(DEBIAN, newest, "bin"), reason: "" };
}

export interface ServerOptions {
  /** An empty folder that exists, and that the server's user may enter. */
  readonly folder: string;
  readonly password: string;
  /** Lines of postgresql.conf, without the quotes. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A server on loopback in a folder of its own, that is started and stopped. */
export class PostgresServer {
  readonly #programs: string;
  readonly #folder: string;
  readonly #password: string;
  readonly #settings: Readonly<Record<string, string>>;
  port = 0;

  private constructor({ folder, password, settings }: ServerOptions) {
    const { folder: programs, reason } = findPrograms();
    if (programs === null) throw new Error(`PostgreSQL can't be started: ${reason}.`);
    this.#programs = programs;
    this.#folder = folder;
    this.#password = password;
    this.#settings = settings;
  }

  /** Makes the files of a server; nothing runs yet. */
  static async create(options: ServerOptions): Promise<PostgresServer> {
    const server = new PostgresServer(options);
    const passwordFile = giveFile(options.folder, "password", options.password);
    // An ordering unlike C's: a column that forgot its own would be sorted differently from SQLite's.
    const locale = ["--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"];
    const access = ["--auth=scram-sha-256", `--pwfile=${passwordFile}`, `--username=${USER}`];
    await server.#run("initdb", ["--pgdata", server.data, "--no-sync", ...locale, ...access]);
    return server;
  }

  /** Makes a copy of a running server that follows it; nothing runs yet. `name` is what the other one knows it by. */
  static async createReplica(options: ServerOptions, of: PostgresServer, name: string): Promise<PostgresServer> {
    const server = new PostgresServer(options);
    const source = `host=127.0.0.1 port=${of.port} user=${USER} password=${of.#password} application_name=${name}`;
    const copy = ["--pgdata", server.data, "--checkpoint=fast", "--no-sync", "--write-recovery-conf"];
    await server.#run("pg_basebackup", [...copy, "--dbname", source]);
    return server;
  }

  get data(): string {
    return join(this.#folder, "data");
  }

  /** The address of a database on this server, or, through something that stands in between, at another port. */
  url(database: string, port = this.port): string {
    return `postgres://${USER}:${this.#password}@127.0.0.1:${port}/${database}`;
  }

  /** Starts it and waits until it takes connections; its port stays the same from the first start on. */
  async start(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const port = this.port === 0 ? await freePort() : this.port;
      try {
        await this.#startAt(port);
        this.port = port;
        return;
      } catch (error) {
        // Somebody may have taken the port meanwhile.
        if (this.port !== 0 || tries === START_TRIES) throw error;
      }
    }
  }

  /** `immediate` is a crash of which the server's processes know; `kill` one of which they don't. */
  async stop(mode: "fast" | "immediate" | "kill"): Promise<void> {
    if (mode !== "kill") return this.#run("pg_ctl", ["stop", "--pgdata", this.data, "--mode", mode, "--wait"]);
    const pid = this.processId();
    if (pid === null) return;
    process.kill(pid, "SIGKILL");
    while (isAlive(pid)) await Bun.sleep(5);
    // Its children see that it has gone and end; while one holds the shared memory, nothing starts in this folder.
    rmSync(join(this.data, "postmaster.pid"), { force: true });
  }

  /** Makes a replica the one that takes writes. */
  async promote(): Promise<void> {
    await this.#run("pg_ctl", ["promote", "--pgdata", this.data, "--wait"]);
  }

  processId(): number | null {
    const file = join(this.data, "postmaster.pid");
    return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : null;
  }

  async #startAt(port: number): Promise<void> {
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...this.#settings, port };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`);
    // The last line of a name counts: these come after what initdb or the copy wrote.
    const file = giveFile(this.#folder, "settings.conf", lines.join("\n"));
    const include = `include = '${file}'\n`;
    const main = join(this.data, "postgresql.conf");
    const text = readFileSync(main, "utf8");
    if (!text.endsWith(include)) writeFileSync(main, `${text}\n${include}`);
    const log = join(this.#folder, "server.log");
    await this.#run("pg_ctl", ["start", "--pgdata", this.data, "--log", log, "--wait", "--timeout", "30"]);
  }

  async #run(program: string, options: readonly string[]): Promise<void> {
    // The server that pg_ctl starts keeps its outputs open: pipes would never end.
    const output = join(this.#folder, "output.log");
    const child = Bun.spawn(serverCommand([join(this.#programs, program), ...options]), {
      cwd: this.#folder,
      env: { PATH: process.env["PATH"], LC_ALL: "C" },
      stdin: "ignore",
      stdout: Bun.file(output),
      stderr: Bun.file(output),
    });
    if ((await child.exited) === 0) return;
    throw new Error(`${program} ended with ${child.exitCode}: ${readFileSync(output, "utf8").slice(-1_000)}`);
  }
}

/** Makes a folder that the server's user may write to. */
export function makeServerFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const user = isRoot ? serverUser() : null;
  if (user !== null) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  return folder;
}

/** Writes a file that only the server's user may read. */
export function giveFile(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  const user = isRoot ? serverUser() : null;
  if (user !== null) chownSync(file, user.uid, user.gid);
  return file;
}

/** A command as the server's user runs it. */
export function serverCommand(command: readonly string[]): string[] {
  const as = isRoot ? ["setpriv", `--reuid=${SERVER_USER}`, `--regid=${SERVER_USER}`, "--init-groups"] : [];
  return [...as, ...command];
}

/** Whether a process runs, whoever's it is. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function hasServer(folder: string): boolean {
  return existsSync(join(folder, "bin", "initdb")) && existsSync(join(folder, "bin", "postgres"));
}

function serverUser(): { readonly uid: number; readonly gid: number } | null {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${SERVER_USER}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}
