import { Client, type ClientConfig, type Notification } from "pg";
import { setTimeout as pause } from "node:timers/promises";
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

/**
 * Hints of other nodes' commits, over a connection of their own. It is made again when it is lost, also when the server
 * stops answering without closing it. Null where hints would not come: behind a pooler, which lends a connection to
 * others after each transaction, or where the database has no LISTEN.
 */
export function createListen(config: ClientConfig, sender: string, times = TIMES): ClusterStore["listen"] {
  const { pingMs, retryMs, answerMs } = times;
  // Its queries have a deadline, or a server that went silent would never be noticed. A pipeline would be awaited at the end.
  const limits = { connectionTimeoutMillis: answerMs, query_timeout: answerMs };
  const settings = { ...config, ...limits, pipeline: false, keepAlive: true };
  return async (onHint, onGap) => {
    const stopping = new AbortController();
    const connect = () =>
      listenOn(new Client(settings), (payload) => {
        if (payload !== sender) onHint();
      });
    const first = await connect();
    if (first === "no hints") return null;
    const keepOn = async () => {
      for (let state: Listening = first; state !== "no hints";) {
        if (state !== "away") await untilLost(state, pingMs, stopping.signal);
        await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => {});
        if (stopping.signal.aborted) return;
        state = await connect();
        if (typeof state === "object" && !stopping.signal.aborted) onGap();
      }
    };
    // Each of its steps ends by itself, whatever happens.
    keepOn().catch(() => {});
    return async () => stopping.abort();
  };
}

/** A connection that listens; `lost` is aborted with its end. */
interface Listener {
  readonly client: Client;
  readonly lost: AbortSignal;
}

type Listening = Listener | "away" | "no hints";

async function listenOn(client: Client, onPayload: (payload: string | undefined) => void): Promise<Listening> {
  const end = new AbortController();
  client.on("error", () => end.abort());
  client.on("end", () => end.abort());
  client.on("notification", ({ payload }: Notification) => onPayload(payload));
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    // The server tells its process id when a connection begins; a pooler tells a number of its own.
    const isDirect = rows[0]?.pid === Reflect.get(client, "processID");
    if (isDirect) await client.query(`listen ${HINT_CHANNEL}`);
    else drop(client);
    return isDirect ? { client, lost: end.signal } : "no hints";
  } catch (error) {
    drop(client);
    return isUnsupported(error) ? "no hints" : "away";
  }
}

/** Resolves when the connection is lost, its server is silent or nobody listens any more, and gives it up. */
async function untilLost({ client, lost }: Listener, pingMs: number, stopping: AbortSignal): Promise<void> {
  const over = AbortSignal.any([lost, stopping]);
  try {
    for (;;) {
      await pause(pingMs, undefined, { signal: over });
      await client.query("select 1");
    }
  } catch {
    drop(client);
  }
}

/** Nobody waits for it: a server that went silent never confirms it. */
function drop(client: Client): void {
  client.end().catch(() => {});
}

/** Feature not supported, syntax error, or nothing of that name: the answers of engines without LISTEN. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set(["0A000", "42601", "42883"]);

function isUnsupported(error: unknown): boolean {
  return error instanceof Error && UNSUPPORTED.has(Reflect.get(error, "code"));
}
