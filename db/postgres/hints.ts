import { Client, type ClientConfig, type Notification } from "pg";
import { HINT_EVERY_MS, HINT_PING_MS, HINT_RETRY_MS, STORE_CALL_MS_MAX } from "../../src/core/limits.ts";
import type { ClusterStore } from "../../src/core/store.ts";
import type { Send } from "./connection.ts";

/** The channel on which each commit of a node is told, once, with a name of the sender as the payload. */
export const HINT_CHANNEL = "outgate_hints";

/** How often the connection is checked and made again, and how long the server may take to answer. */
interface HintTimes {
  readonly pingMs: number;
  readonly retryMs: number;
  readonly answerMs: number;
}

const TIMES: HintTimes = { pingMs: HINT_PING_MS, retryMs: HINT_RETRY_MS, answerMs: STORE_CALL_MS_MAX };

/**
 * Tells the other nodes of commits, after them: within their transactions, commits of all nodes would wait for each
 * other. `sender` is what the node's own listener ignores. Commits soon after a hint share the next one.
 */
export function createHintSender(sender: string): (send: Send) => void {
  let sentMs = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
  const hint = (send: Send) => {
    isWaiting = false;
    sentMs = performance.now();
    send("select pg_notify($1, $2)", [HINT_CHANNEL, sender]);
  };
  return (send) => {
    const waitMs = sentMs + HINT_EVERY_MS - performance.now();
    if (isWaiting) return;
    if (waitMs <= 0) return hint(send);
    isWaiting = true;
    setTimeout(hint, waitMs, send);
  };
}

interface Listener {
  readonly onHint: () => void;
  readonly onGap: () => void;
}

/**
 * Hints of other nodes' commits, over a connection of their own. It is made again when it is lost, also when the server
 * stops answering without closing it. Null where hints would not come: behind a pooler, which lends a connection to
 * others after each transaction, or where the database has no LISTEN.
 */
export function createListen(config: ClientConfig, sender: string, times = TIMES): ClusterStore["listen"] {
  return async (onHint, onGap) => {
    const listening = new HintConnection(config, sender, times, { onHint, onGap });
    return (await listening.begin()) ? async () => listening.stop() : null;
  };
}

/** What became of an attempt to listen. */
type Attempt = "listening" | "away" | "no hints";

class HintConnection {
  readonly #config: ClientConfig;
  readonly #sender: string;
  readonly #times: HintTimes;
  readonly #listener: Listener;
  #client: Client | null = null;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(config: ClientConfig, sender: string, times: HintTimes, listener: Listener) {
    const { answerMs } = times;
    // Its queries have a deadline, or a server that went silent would never be noticed. A pipeline would be awaited at the end.
    const limits = { connectionTimeoutMillis: answerMs, query_timeout: answerMs };
    this.#config = { ...config, ...limits, pipeline: false, keepAlive: true };
    this.#sender = sender;
    this.#times = times;
    this.#listener = listener;
  }

  /** False: there are no hints here. Where the database is away it goes on trying. */
  async begin(): Promise<boolean> {
    const attempt = await this.#connect();
    if (attempt === "away") this.#again();
    return attempt !== "no hints";
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#drop();
  }

  async #connect(): Promise<Attempt> {
    const client = new Client(this.#config);
    this.#client = client;
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    client.on("notification", ({ payload }: Notification) => {
      if (payload !== this.#sender) this.#listener.onHint();
    });
    try {
      await client.connect();
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      // The server tells its process id when a connection begins; a pooler tells a number of its own.
      const isDirect = rows[0]?.pid === Reflect.get(client, "processID");
      if (isDirect) await client.query(`listen ${HINT_CHANNEL}`);
      if (isDirect && this.#client === client) {
        this.#ping(client);
        return "listening";
      }
      this.#drop();
      return isDirect ? "away" : "no hints";
    } catch (error) {
      this.#drop();
      return isUnsupported(error) ? "no hints" : "away";
    }
  }

  /** Once for each connection that is no longer wanted or no longer works. */
  #lost(client: Client): void {
    if (this.#client !== client) return;
    this.#drop();
    clearTimeout(this.#timer);
    this.#again();
  }

  #again(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connectAgain(), this.#times.retryMs);
  }

  async #connectAgain(): Promise<void> {
    const attempt = await this.#connect();
    if (attempt === "away") this.#again();
    if (attempt === "listening") this.#listener.onGap();
  }

  #ping(client: Client): void {
    this.#timer = setTimeout(() => {
      client.query("select 1").then(
        () => this.#client === client && this.#ping(client),
        () => this.#lost(client),
      );
    }, this.#times.pingMs);
  }

  /** Nobody waits for it: a server that went silent never confirms it. */
  #drop(): void {
    const client = this.#client;
    this.#client = null;
    client?.end().catch(() => {});
  }
}

/** Feature not supported, syntax error, or nothing of that name: the answers of engines without LISTEN. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set(["0A000", "42601", "42883"]);

function isUnsupported(error: unknown): boolean {
  return error instanceof Error && UNSUPPORTED.has(Reflect.get(error, "code"));
}
