import { join } from "node:path";
import { openSync, closeSync, readFileSync } from "node:fs";
import { freePort } from "../free-port.ts";
import { SERVICE } from "../programs.ts";
import { OWNER_KEY } from "../service.ts";

/** The same on all nodes: without it they could not open each other's secrets. */
const SECRET_KEY = "5f".repeat(32);
const READY_MS_MAX = 30_000;

export interface NodeOptions {
  /** Where its log is kept. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** One process of the service, as an operator starts it; it keeps its port through restarts. */
export class ClusterNode {
  readonly name: string;
  readonly port: number;
  readonly #options: NodeOptions;
  #process: Bun.Subprocess | null = null;

  private constructor(name: string, port: number, options: NodeOptions) {
    this.name = name;
    this.port = port;
    this.#options = options;
  }

  static async create(name: string, options: NodeOptions): Promise<ClusterNode> {
    return new ClusterNode(name, await freePort(), options);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Starts the process; `ready` tells when it serves. */
  start(): void {
    const { PATH, HOME } = process.env;
    const { folder, databaseUrl, env } = this.#options;
    const log = openSync(join(folder, `${this.name}.log`), "a");
    this.#process = Bun.spawn([...SERVICE], {
      cwd: folder,
      env: {
        PATH,
        HOME,
        BUN_CONFIG_MAX_HTTP_REQUESTS: "1024",
        PORT: String(this.port),
        DATABASE_URL: databaseUrl,
        SECRET_KEY,
        BOOTSTRAP_API_KEY: OWNER_KEY,
        RATE_LIMIT_PER_SECOND: "0",
        LOG_LEVEL: "warn",
        ...env,
      },
      stdin: "ignore",
      stdout: log,
      stderr: log,
    });
    closeSync(log);
  }

  /** Resolves when it says that it is ready, after so many milliseconds; throws with its log when it ends before. */
  async ready(): Promise<number> {
    const startedMs = performance.now();
    while (performance.now() - startedMs < READY_MS_MAX) {
      if (this.#process?.exitCode !== null) break;
      if (await this.isReady()) return performance.now() - startedMs;
      await Bun.sleep(25);
    }
    throw new Error(`Node ${this.name} is not ready: ${this.log().slice(-1_500)}`);
  }

  async isReady(): Promise<boolean> {
    const answer = await fetch(`${this.url}/ready`, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
    return answer?.status === 200;
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.kill(name);
  }

  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    // A frozen process would take no other signal.
    if (signal === "SIGTERM") this.#process?.kill("SIGCONT");
    this.#process?.kill(signal);
    await this.#process?.exited;
  }

  /** Everything that it has logged so far, through all restarts. */
  log(): string {
    return readFileSync(join(this.#options.folder, `${this.name}.log`), "utf8");
  }

  /** How often its log has this event. */
  logged(event: string): number {
    return this.log().split(`"event":"${event}"`).length - 1;
  }
}
