import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { type Caller, holderOf } from "../src/accounts/roles.ts";
import { DomainError } from "../src/api/domain-error.ts";
import { KEEP_ALIVE_MS, SESSION_IDLE_MS, SESSION_SWEEP_MS } from "../src/config/limits.ts";
import { countByHolder, whoMakesRoom } from "../src/delivery/slots.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { AgentCall } from "./call.ts";

export interface SessionDeps {
  readonly newServer: () => McpServer;
  readonly newId: () => string;
  readonly clock: Clock;
  /** Aborted when the service stops: streams that nobody answers on are closed. */
  readonly draining: AbortSignal;
  readonly sessionsPerAccount: number;
}

/** A client of the revisions of 2025, which can be asked questions only while we know it (hostile M15). */
export interface Session {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** What the client said that it can do. */
  readonly capabilities: unknown;
  /** Whose it is, of those who share the account's sessions. */
  readonly holder: string;
  /** As its newest request has shown it. */
  caller: Caller;
  /** Ends it when its key is revoked. */
  readonly onRevoked: () => void;
  /** Answers and streams under way, and the calls among them. */
  open: number;
  calls: number;
  usedMs: number;
}

/** Sessions live in memory: a client whose session is gone is told so, and begins another one. */
export class Sessions {
  readonly #deps: SessionDeps;
  readonly #sessions = new Map<string, Session>();
  #cancelTimer: (() => void) | null = null;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    deps.draining.addEventListener("abort", () => this.#drain());
  }

  /**
   * A session for a client that begins one. Where the account has its number, one of the key with the most makes room for
   * a key with few, also one in use; else the one idle for longest, of this key or one with more. Throws `rate_limited`
   * where there is none.
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

  /** The session of this id, if this key began it; null for any other. */
  find(id: string, caller: Caller): Session | null {
    const session = this.#sessions.get(id);
    const isTheirs = session?.caller.accountId === caller.accountId && session.caller.keyId === caller.keyId;
    if (session === undefined || !isTheirs) return null;
    // The key may be remembered anew since: it is the newest signal that is heard.
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
    session.caller = caller;
    caller.revoked?.addEventListener("abort", session.onRevoked);
    return session;
  }

  /** Hands a request to its session, which counts as used until the answer has ended. */
  async answer(session: Session, { request, body, over }: AgentCall): Promise<Response> {
    const { clock } = this.#deps;
    const calls = body === null ? 0 : 1;
    session.open += 1;
    session.calls += calls;
    over.addEventListener("abort", () => {
      session.open -= 1;
      session.calls -= calls;
      session.usedMs = clock.monotonicMs();
    });
    const response = await session.transport.handleRequest(request, body === null ? {} : { parsedBody: body.value });
    // It was never begun: what came was no proper `initialize`.
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
    const [victim] = candidates.toSorted(byNeed);
    if (victim === undefined) {
      throw new DomainError(
        "rate_limited",
        `This account has ${sessionsPerAccount} MCP sessions, and all that this key could take over are in use. Close one of them, or set MCP_SESSIONS_PER_ACCOUNT to more.`,
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
    // Calls under way end by themselves; a stream that waits for news of ours would not.
    for (const { transport } of this.#sessions.values()) transport.closeStandaloneSSEStream();
  }

  #close(session: Session): void {
    this.#forget(session);
    // Never rejects: it only ends what is in memory.
    session.transport.close().catch(() => {});
  }

  /** Calls under way are told by themselves that the key is gone; a stream that waits for news of ours would stay. */
  #revoke(session: Session): void {
    this.#forget(session);
    session.transport.closeStandaloneSSEStream();
  }

  #forget(session: Session): void {
    this.#sessions.delete(session.id);
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
  }
}

/** First what is missed least: idle, the longest first; then what only listens; a call that is under way comes last. */
function byNeed(a: Session, b: Session): number {
  return a.calls - b.calls || Math.min(a.open, 1) - Math.min(b.open, 1) || a.usedMs - b.usedMs;
}
