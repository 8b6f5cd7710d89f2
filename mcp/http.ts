import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type McpServer,
  ProtocolErrorCode,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { type Caller, holderId } from "../src/core/roles.ts";
import { DomainError } from "../src/core/domain-error.ts";
import { isJsonObject } from "../src/core/json.ts";
import { KEEP_ALIVE_MS, SESSION_IDLE_MS, SESSION_SWEEP_MS, NODE_SESSION_MS_MAX } from "../src/core/limits.ts";
import { countByHolder, holderToEvict } from "../src/runtime/fair-share.ts";
import type { Store } from "../src/core/store.ts";
import type { McpRequest } from "../src/http/mcp-routes.ts";
import { type AgentDeps, canAsk, Exchange, isRequest, type SessionState } from "./call.ts";

interface HandlerDeps extends Pick<AgentDeps, "clock" | "ids" | "secrets" | "draining"> {
  readonly config: Pick<AgentDeps["config"], "mcpSessionsPerAccount">;
  /** With a cluster, requests of one client may reach different processes. */
  readonly store: Pick<Store, "cluster">;
}

/**
 * MCP over Streamable HTTP: revision 2026-07-28 without state, and sessions for clients of 2025, which can be asked
 * questions only within one. A 2025 client without a session is answered, but never asked. See mcp/README.md.
 * A longer call is answered as a stream. Throws `rate_limited` if the account has too many sessions.
 */
export function createAgentHandler(newServer: () => McpServer, deps: HandlerDeps) {
  const stateless = createMcpHandler(newServer, { legacy: "stateless", keepAliveMs: KEEP_ALIVE_MS });
  const answerStateless = (call: McpRequest, session: SessionState | null) =>
    stateless.fetch(call.request, answerOptions(call, session));
  const answer =
    deps.store.cluster !== null ? forAnyNode(answerStateless, deps) : forOneProcess(answerStateless, newServer, deps);
  return async (received: McpRequest): Promise<Response> => {
    if (repeatsId(received.body?.value)) {
      return refusal(400, ProtocolErrorCode.InvalidRequest, "Two requests of this batch have the same id.");
    }
    // The actor of tools, for the timeline.
    return answer({ ...received, caller: { ...received.caller, actor: `mcp:${received.caller.keyName}` as const } });
  };
}

/** Whether two requests of a batch have one id, by which their arguments and their responses are told apart. */
function repeatsId(message: unknown): boolean {
  if (!Array.isArray(message)) return false;
  const ids = message.filter(isRequest).map(({ id }) => id);
  return new Set(ids).size < ids.length;
}

function refusal(status: number, code: number, message: string): Response {
  const headers = { "content-type": "application/json" };
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}

type AnswerStateless = (call: McpRequest, session: SessionState | null) => Promise<Response>;

function answerOptions(call: McpRequest, session: SessionState | null) {
  const { authInfo } = new Exchange(call, session);
  return call.body === null ? { authInfo } : { authInfo, parsedBody: call.body.value };
}

/** The `initialize` of a 2025 client, or a later message of its session; null: the request has no session. */
async function messageOfSession({ request, body }: McpRequest) {
  const message = body?.value;
  const id = request.headers.get("mcp-session-id");
  // The method first, which is cheap, since this runs for every request.
  const isInitialize = isJsonObject(message) && message["method"] === "initialize" && isInitializeRequest(message);
  if ((id === null && !isInitialize) || !(await isLegacyRequest(request, message))) return null;
  return isInitialize ? { capabilities: message.params.capabilities } : { id: id ?? "" };
}

/**
 * With several nodes, sessions aren't stored: the id contains what later requests need, so that any node can answer them. What
 * would need the same node again is not supported: a separate stream and DELETE get 405, and the tool asks nobody.
 */
function forAnyNode(answer: AnswerStateless, deps: HandlerDeps) {
  return async (call: McpRequest): Promise<Response> => {
    const message = await messageOfSession(call);
    if (message === null) return answer(call, null);
    if ("id" in message) {
      const session = sessionOfId(message.id, call.caller, deps);
      return session === null ? unknownSession() : answer(call, session);
    }
    const response = await answer(call, null);
    if (!response.ok) return response;
    const headers = new Headers(response.headers);
    headers.set("mcp-session-id", newSessionId(call.caller, canAsk(message.capabilities), deps));
    return new Response(response.body, { status: response.status, headers });
  };
}

function forOneProcess(answer: AnswerStateless, newServer: () => McpServer, deps: HandlerDeps) {
  const sessions = new Sessions(newServer, deps);
  return async (call: McpRequest): Promise<Response> => {
    const session = await sessions.findSession(call);
    if (session === "unknown") return unknownSession();
    if (session === null) return answer(call, null);
    const options = answerOptions(call, session);
    sessions.use(session, call);
    const response = await session.transport.handleRequest(call.request, options);
    // It was never initialized, because the message was no valid `initialize`.
    if (session.transport.sessionId === undefined) sessions.close(session);
    return response;
  };
}

/** The official server's code, by which clients know that they must initialize again. */
const SESSION_NOT_FOUND = -32_001;

/** The same response whether the session is unknown, another key's, closed, or from before a restart. */
function unknownSession(): Response {
  return refusal(404, SESSION_NOT_FOUND, "Session not found. Begin a new one with initialize.");
}

/** A session of a client of the 2025 revisions. */
interface Session extends SessionState {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** The key whose share of the account's sessions it takes. */
  readonly holder: string;
  /** The caller by its newest request. */
  caller: Caller;
  /** Ends it when its key is revoked. */
  readonly onRevoked: () => void;
  /** Open responses and streams, and the calls among them. */
  open: number;
  calls: number;
  usedMs: number;
}

/** Sessions live in memory. After a restart clients get 404 and initialize again. */
class Sessions {
  readonly #newServer: () => McpServer;
  readonly #deps: HandlerDeps;
  readonly #sessions = new Map<string, Session>();
  #cancelTimer: (() => void) | null = null;

  constructor(newServer: () => McpServer, deps: HandlerDeps) {
    this.#newServer = newServer;
    this.#deps = deps;
    deps.draining.addEventListener("abort", () => this.#drain());
  }

  /** The session of a request, which `initialize` begins; null: the request needs none. */
  async findSession(call: McpRequest): Promise<Session | "unknown" | null> {
    const message = await messageOfSession(call);
    if (message === null) return null;
    if ("id" in message) return this.#find(message.id, call.caller) ?? "unknown";
    return this.#begin(call.caller, canAsk(message.capabilities));
  }

  /** Counts a request as using its session until the response has ended. */
  use(session: Session, { body, ended }: McpRequest): void {
    const calls = body === null ? 0 : 1;
    session.open += 1;
    session.calls += calls;
    ended.addEventListener("abort", () => {
      session.open -= 1;
      session.calls -= calls;
      session.usedMs = this.#deps.clock.monotonicMs();
    });
  }

  close(session: Session): void {
    this.#forget(session);
    // Never rejects: it only releases memory.
    session.transport.close().catch(() => {});
  }

  /**
   * Begins a session. Where the account has reached its limit, another one is closed: a key below its share takes one,
   * even in use, of the key with the most; any other key takes the longest idle one of its own, or of a key with more.
   * Throws `rate_limited` if there is none to take.
   */
  async #begin(caller: Caller, isAskable: boolean): Promise<Session> {
    const { ids, clock } = this.#deps;
    const holder = holderId(caller);
    this.#makeRoom(caller.accountId, holder);
    const id = Buffer.from(ids.bytes(16)).toString("hex");
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#forget(session),
      keepAliveMs: KEEP_ALIVE_MS,
    });
    // Calls under way end by their own `revoked` signal; an idle stream would stay open.
    const onRevoked = () => {
      this.#forget(session);
      transport.closeStandaloneSSEStream();
    };
    const idle = { open: 0, calls: 0, usedMs: clock.monotonicMs() };
    const client = { holder, caller, canAsk: isAskable, isHere: true };
    const session: Session = { id, transport, onRevoked, ...client, ...idle };
    this.#sessions.set(id, session);
    caller.revoked?.addEventListener("abort", onRevoked);
    this.#cancelTimer ??= clock.after(SESSION_SWEEP_MS, () => this.#sweep());
    await this.#newServer().connect(transport);
    return session;
  }

  /** The session with this id; null: another key began it, or it is unknown. */
  #find(id: string, caller: Caller): Session | null {
    const session = this.#sessions.get(id);
    const isSameKey = session?.caller.accountId === caller.accountId && session.caller.keyId === caller.keyId;
    if (session === undefined || !isSameKey) return null;
    // Each authentication of the key has a `revoked` signal of its own; listen to the newest.
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
    session.caller = caller;
    caller.revoked?.addEventListener("abort", session.onRevoked);
    return session;
  }

  #makeRoom(accountId: string, holder: string): void {
    const { mcpSessionsPerAccount: sessionsMax } = this.#deps.config;
    const all = [...this.#sessions.values()].filter(({ caller }) => caller.accountId === accountId);
    if (all.length < sessionsMax) return;
    const held = countByHolder(all);
    const most = holderToEvict(held, holder);
    const own = held.get(holder) ?? 0;
    const candidates = all.filter((session) =>
      most === null
        ? session.open === 0 && (session.holder === holder || (held.get(session.holder) ?? 0) > own)
        : session.holder === most,
    );
    const [victim] = candidates.toSorted(byUse);
    if (victim === undefined) {
      throw new DomainError(
        "rate_limited",
        `This account has reached its limit of ${sessionsMax} MCP sessions, and those that this key could replace are in use. Close one of them, or raise MCP_SESSIONS_PER_ACCOUNT.`,
      );
    }
    this.close(victim);
  }

  #sweep(): void {
    const { clock } = this.#deps;
    try {
      for (const session of this.#sessions.values()) {
        if (session.open === 0 && clock.monotonicMs() - session.usedMs >= SESSION_IDLE_MS) this.close(session);
      }
    } finally {
      this.#cancelTimer = this.#sessions.size === 0 ? null : clock.after(SESSION_SWEEP_MS, () => this.#sweep());
    }
  }

  #drain(): void {
    this.#cancelTimer?.();
    // Running calls end on their own, but an idle stream would not.
    for (const { transport } of this.#sessions.values()) transport.closeStandaloneSSEStream();
  }

  #forget(session: Session): void {
    this.#sessions.delete(session.id);
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
  }
}

/** Sorts what to close first: idle sessions, longest idle first; then those with only a stream; those with calls last. */
function byUse(a: Session, b: Session): number {
  return a.calls - b.calls || Math.min(a.open, 1) - Math.min(b.open, 1) || a.usedMs - b.usedMs;
}

/** A random part, the end in milliseconds, whether the client can ask its person, and a MAC over these and the key. */
const SESSION_ID = /^([0-9a-f]{32})\.(\d{1,15})\.([an])\.([\w-]{43})$/;

/** The id of a session that any node with the master key knows. It is valid for its key only, for `NODE_SESSION_MS_MAX`. */
function newSessionId(caller: Caller, isAskable: boolean, { clock, ids, secrets }: HandlerDeps): string {
  const random = Buffer.from(ids.bytes(16)).toString("hex");
  const said = `${random}.${clock.now().getTime() + NODE_SESSION_MS_MAX}.${isAskable ? "a" : "n"}`;
  return `${said}.${secrets.sessionToken(macInput(said, caller))}`;
}

/** The session of an id; null: it was altered, has expired, or is another key's. */
function sessionOfId(id: string, caller: Caller, { clock, secrets }: HandlerDeps): SessionState | null {
  const [, random = "", ends = "", initial = "", mac = ""] = SESSION_ID.exec(id) ?? [];
  const isOurs = secrets.isSessionToken(macInput(`${random}.${ends}.${initial}`, caller), mac);
  if (!isOurs || clock.now().getTime() >= Number(ends)) return null;
  return { caller, canAsk: initial === "a", isHere: false };
}

function macInput(said: string, { accountId, keyId }: Caller): string {
  return JSON.stringify([said, accountId, keyId]);
}
