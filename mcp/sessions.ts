import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Caller } from "../src/domain/caller.ts";
import { DomainError } from "../src/domain/errors.ts";
import { KEEP_ALIVE_MS, SESSION_IDLE_MS, SESSION_SWEEP_MS, SESSIONS_PER_ACCOUNT_MAX } from "../src/domain/limits.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { AgentCall } from "./call.ts";

export interface SessionDeps {
  readonly newServer: () => McpServer;
  readonly newId: () => string;
  readonly clock: Clock;
  /** Aborted when the service stops: streams that nobody answers on are closed. */
  readonly draining: AbortSignal;
}

/** A client of the revisions of 2025, which can be asked questions only while we know it (hostile M15). */
export interface Session {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** What the client said that it can do. */
  readonly capabilities: unknown;
  /** As its newest request has shown it. */
  caller: Caller;
  /** Ends it when its key is revoked. */
  readonly onRevoked: () => void;
  /** Answers and streams under way. */
  open: number;
  usedMs: number;
}

/** Sessions live in memory: a client whose session is gone is told so, and begins another one. */
export class Sessions {
  readonly #deps: SessionDeps;
  readonly #sessions = new Map<string, Session>();
  #unring: (() => void) | null = null;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    deps.draining.addEventListener("abort", () => this.#drain());
  }

  /** A session for a client that begins one. Where the account has its number, the one idle for longest makes room. */
  async begin(caller: Caller, capabilities: unknown): Promise<Session> {
    const { newServer, newId, clock } = this.#deps;
    this.#makeRoom(caller.accountId);
    const id = newId();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#forget(session),
      keepAliveMs: KEEP_ALIVE_MS,
    });
    const onRevoked = () => this.#revoke(session);
    const session: Session = { id, transport, capabilities, caller, onRevoked, open: 0, usedMs: clock.monotonicMs() };
    this.#sessions.set(id, session);
    caller.revoked?.addEventListener("abort", onRevoked);
    this.#unring ??= clock.after(SESSION_SWEEP_MS, () => this.#sweep());
    await newServer().connect(transport);
    return session;
  }

  /** The session of this id, if this key began it. Throws `not_found` in the same words for any other (hostile M14). */
  find(id: string, caller: Caller): Session {
    const session = this.#sessions.get(id);
    const isTheirs = session?.caller.accountId === caller.accountId && session.caller.keyId === caller.keyId;
    if (session === undefined || !isTheirs) {
      throw new DomainError("not_found", "There is no such session any more; begin a new one with initialize.");
    }
    // The key may be remembered anew since: it is the newest signal that is heard.
    session.caller.revoked?.removeEventListener("abort", session.onRevoked);
    session.caller = caller;
    caller.revoked?.addEventListener("abort", session.onRevoked);
    return session;
  }

  /** Hands a request to its session, which counts as used until the answer has ended. */
  async answer(session: Session, { request, body, over }: AgentCall): Promise<Response> {
    const { clock } = this.#deps;
    session.open += 1;
    over.addEventListener("abort", () => {
      session.open -= 1;
      session.usedMs = clock.monotonicMs();
    });
    const response = await session.transport.handleRequest(request, body === null ? {} : { parsedBody: body.value });
    // It was never begun: what came was no proper `initialize`.
    if (session.transport.sessionId === undefined) this.#close(session);
    return response;
  }

  #makeRoom(accountId: string): void {
    const own = [...this.#sessions.values()].filter(({ caller }) => caller.accountId === accountId);
    if (own.length < SESSIONS_PER_ACCOUNT_MAX) return;
    const idle = own.filter(({ open }) => open === 0).toSorted((a, b) => a.usedMs - b.usedMs)[0];
    if (idle === undefined) {
      throw new DomainError(
        "rate_limited",
        `This account has ${SESSIONS_PER_ACCOUNT_MAX} MCP sessions, and all are in use; close one of them.`,
      );
    }
    this.#close(idle);
  }

  #sweep(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const session of this.#sessions.values()) {
      if (session.open === 0 && nowMs - session.usedMs >= SESSION_IDLE_MS) this.#close(session);
    }
    this.#unring = this.#sessions.size === 0 ? null : this.#deps.clock.after(SESSION_SWEEP_MS, () => this.#sweep());
  }

  #drain(): void {
    this.#unring?.();
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
