import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { type Caller, holderOf } from "../src/accounts/roles.ts";
import { DomainError } from "../src/api/domain-error.ts";
import { KEEP_ALIVE_MS, SESSION_IDLE_MS, SESSION_SWEEP_MS } from "../src/config/limits.ts";
import { countByHolder, whoMakesRoom } from "../src/delivery/slots.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { McpRequest } from "../src/http/mcp-routes.ts";

export interface SessionDeps {
  readonly newServer: () => McpServer;
  readonly newId: () => string;
  readonly clock: Clock;
  /** Aborted when the service stops: idle streams are closed. */
  readonly draining: AbortSignal;
  readonly sessionsPerAccount: number;
}

/** A session of a client of the 2025 revisions, which can be asked questions only within one. */
export interface Session {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** The client's capabilities, from its `initialize`. */
  readonly capabilities: unknown;
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
export class Sessions {
  readonly #deps: SessionDeps;
  readonly #sessions = new Map<string, Session>();
  #cancelTimer: (() => void) | null = null;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    deps.draining.addEventListener("abort", () => this.#drain());
  }

  /**
   * Begins a session. Where the account has reached its limit, another one is closed: a key below its share takes one,
   * even in use, of the key with the most; any other key takes the longest idle one of its own, or of a key with more.
   * Throws `rate_limited` where there is none to take.
   */
  async begin(caller: Caller, capabilities: unknown): Promise<Session> {
    const { newServer, newId, clock } = this.#deps;
    const holder = holderOf(caller);
    this.#makeRoom(caller.accountId, holder);
    const id = newId();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#forget(session),
      keepAliveMs: KEEP_ALIVE_MS,
    });
    const onRevoked = () => this.#revoke(session);
    const usedMs = clock.monotonicMs();
    const session: Session = { id, transport, capabilities, holder, caller, onRevoked, open: 0, calls: 0, usedMs };
    this.#sessions.set(id, session);
    caller.revoked?.addEventListener("abort", onRevoked);
    this.#cancelTimer ??= clock.after(SESSION_SWEEP_MS, () => this.#sweep());
    await newServer().connect(transport);
    return session;
  }

  /** The session with this id; null where another key began it, or it is unknown. */
  find(id: string, caller: Caller): Session | null {
    const session = this.#sessions.get(id);
    const isSameKey = session?.caller.accountId === caller.accountId && session.caller.keyId === caller.keyId;
    if (session === undefined || !isSameKey) return null;
    // Each authentication of the key has a `revoked` signal of its own; listen to the newest.
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
    session.caller = caller;
    caller.revoked?.addEventListener("abort", session.onRevoked);
    return session;
  }

  /** Passes a request to its session, which counts as used until the response has ended. */
  async answer(session: Session, { request, body, ended }: McpRequest): Promise<Response> {
    const { clock } = this.#deps;
    const calls = body === null ? 0 : 1;
    session.open += 1;
    session.calls += calls;
    ended.addEventListener("abort", () => {
      session.open -= 1;
      session.calls -= calls;
      session.usedMs = clock.monotonicMs();
    });
    const response = await session.transport.handleRequest(request, body === null ? {} : { parsedBody: body.value });
    // Never initialized: the message was no valid `initialize`.
    if (session.transport.sessionId === undefined) this.#close(session);
    return response;
  }

  #makeRoom(accountId: string, holder: string): void {
    const { sessionsPerAccount } = this.#deps;
    const all = [...this.#sessions.values()].filter(({ caller }) => caller.accountId === accountId);
    if (all.length < sessionsPerAccount) return;
    const held = countByHolder(all);
    const most = whoMakesRoom(held, holder);
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
        `This account has reached its limit of ${sessionsPerAccount} MCP sessions, and those that this key could replace are in use. Close one of them, or raise MCP_SESSIONS_PER_ACCOUNT.`,
      );
    }
    this.#close(victim);
  }

  #sweep(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    try {
      for (const session of this.#sessions.values()) {
        if (session.open === 0 && nowMs - session.usedMs >= SESSION_IDLE_MS) this.#close(session);
      }
    } finally {
      this.#cancelTimer =
        this.#sessions.size === 0 ? null : this.#deps.clock.after(SESSION_SWEEP_MS, () => this.#sweep());
    }
  }

  #drain(): void {
    this.#cancelTimer?.();
    // Calls under way end by themselves; an idle stream would not.
    for (const { transport } of this.#sessions.values()) transport.closeStandaloneSSEStream();
  }

  #close(session: Session): void {
    this.#forget(session);
    // Never rejects: it only releases memory.
    session.transport.close().catch(() => {});
  }

  /** Calls under way end by their own `revoked` signal; an idle stream would stay open. */
  #revoke(session: Session): void {
    this.#forget(session);
    session.transport.closeStandaloneSSEStream();
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
