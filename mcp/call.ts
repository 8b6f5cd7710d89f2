import {
  type AuthInfo,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Counts } from "../src/core/maps.ts";
import type { Caller } from "../src/core/roles.ts";
import { DomainError } from "../src/core/domain-error.ts";
import { isJsonObject, memberText, orderedMemberText } from "../src/core/json.ts";
import { QUESTION_MS, QUESTIONS_OPEN_MAX } from "../src/core/limits.ts";
import type { Config } from "../src/config/config.ts";
import type { AppContext } from "../src/runtime/app-context.ts";
import type { Bus } from "../src/core/bus.ts";
import type { McpRequest } from "../src/http/mcp-routes.ts";
import type { Metrics } from "../src/observability/metrics.ts";
import { createOwnTurns } from "../src/runtime/fair-share.ts";
import type { RouteServices } from "../src/services/services.ts";

export interface AgentDeps extends RouteServices, Pick<AppContext, "clock" | "ids" | "log"> {
  readonly bus: Pick<Bus, "watch">;
  readonly metrics: Pick<Metrics, "toolCalled">;
  readonly config: Pick<Config, "agentApproval" | "baseUrl" | "mail" | "mcpSessionsPerAccount">;
  /** Aborted when the service stops: waiting calls are answered at once, idle streams closed. */
  readonly draining: AbortSignal;
}

/** What a session of a 2025 client adds to each of its requests. */
export interface SessionState {
  /** The caller of the session's newest request, since the role may have changed while an older request waits. */
  readonly caller: Caller;
  /** Whether the client can ask its person, by its `initialize`. */
  readonly canAsk: boolean;
  /** Whether all requests of the session reach this process, including the user's answer. */
  readonly isHere: boolean;
}

/** An HTTP request with its session. The SDK hands it to its handlers in `authInfo`. */
export class Exchange {
  readonly request: McpRequest;
  readonly session: SessionState | null;
  readonly #ownTurn = createOwnTurns();

  constructor(request: McpRequest, session: SessionState | null) {
    this.request = request;
    this.session = session;
  }

  get caller(): Caller {
    return this.session?.caller ?? this.request.caller;
  }

  /** Awaited by each call before it begins: a hundred lists in one batch would hold the event loop for 0.2 s. */
  async turn(): Promise<void> {
    if (Array.isArray(this.request.body?.value)) await this.#ownTurn();
  }

  get authInfo(): AuthInfo {
    return { token: "", clientId: this.caller.keyId ?? "", scopes: [], extra: { exchange: this } };
  }
}

/** The exchange of a message. Throws if there is none: the message is not authenticated. */
export function callExchange({ http }: ServerContext): Exchange {
  const exchange = http?.authInfo?.extra?.["exchange"];
  if (exchange instanceof Exchange) return exchange;
  throw new Error("A message came without a request.");
}

/** Whether a JSON-RPC message expects a response. The client's responses have ids too: those of our requests. */
export function isRequest(message: unknown): message is { readonly id: unknown } {
  return isJsonObject(message) && "method" in message && "id" in message;
}

export class ToolCall {
  readonly exchange: Exchange;
  readonly #context: ServerContext;
  readonly #draining: AbortSignal;
  readonly #openQuestions: Counts;
  /** Whether it was to answer only after the action had ended. */
  hasWaited = false;

  /** `draining` is aborted when the service stops; `openQuestions` counts the questions that block calls, by key. */
  constructor(context: ServerContext, draining: AbortSignal, openQuestions: Counts) {
    this.exchange = callExchange(context);
    this.#context = context;
    this.#draining = draining;
    this.#openQuestions = openQuestions;
  }

  get caller(): Caller {
    return this.exchange.caller;
  }

  /** The arguments as they were sent: the SDK's copy loses a member `__proto__`. */
  get arguments(): Readonly<Record<string, unknown>> {
    const body = this.exchange.request.body?.value;
    const message: unknown = Array.isArray(body) ? body[this.#indexIn(body)] : body;
    const params = isJsonObject(message) ? message["params"] : null;
    const given = isJsonObject(params) ? params["arguments"] : null;
    return isJsonObject(given) ? given : {};
  }

  /** The JSON text of an argument of `create`, with numbers as written and, except for `body`, names in their order. */
  bodyText(argument: "body" | "json" | "form"): string {
    const { body } = this.exchange.request;
    if (body === null) return "null";
    const read = argument === "body" ? memberText : orderedMemberText;
    const path = ["params", "arguments", argument];
    return read(body, ...(Array.isArray(body.value) ? [this.#indexIn(body.value), ...path] : path));
  }

  /** The place of this call's message in a batch. */
  #indexIn(batch: readonly unknown[]): number {
    return batch.findIndex((message) => isRequest(message) && message.id === this.#context.mcpReq.id);
  }

  /** Marks the call as waiting. The signal is aborted when the client has left, its key was revoked or the service stops. */
  beginWait(): AbortSignal {
    this.hasWaited = true;
    const { ended } = this.exchange.request;
    return AbortSignal.any([this.#context.mcpReq.signal, ended, this.#beginQuestion()]);
  }

  /** The same without the call's own signal, since clients time out after a minute, while the person may still be deciding. */
  #beginQuestion(): AbortSignal {
    this.exchange.request.onWait();
    return AbortSignal.any([this.#draining, this.caller.revoked ?? this.#draining]);
  }

  /** Sends a progress notification; null: the client didn't ask for them. */
  get notifyProgress(): ((progress: Progress) => void) | null {
    const { mcpReq } = this.#context;
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return null;
    return (progress) => {
      // Fails if the client has left, which also ends the wait.
      mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...progress } }).catch(() => {});
    };
  }

  /** How the client can ask its user; null: it can't. */
  get elicitation(): Elicitation | null {
    const { mcpReq } = this.#context;
    if (mcpReq.envelope !== undefined) {
      const envelope: unknown = mcpReq.envelope;
      if (!canAsk(isJsonObject(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : null)) return null;
      return { era: "modern", answers: mcpReq.inputResponses ?? null, state: mcpReq.requestState() };
    }
    const { session } = this.exchange;
    if (session === null || !session.canAsk) return null;
    if (!session.isHere) return { era: "unreachable" };
    return { era: "legacy", ask: (form) => this.#askAndWait(form) };
  }

  async #askAndWait({ message, requestedSchema }: QuestionForm): Promise<unknown> {
    const { accountId, keyId, actor } = this.caller;
    const open = this.#openQuestions;
    const key = `${accountId} ${keyId ?? actor}`;
    if (open.of(key) >= QUESTIONS_OPEN_MAX) {
      throw new DomainError("rate_limited", `This key has ${QUESTIONS_OPEN_MAX} questions open already.`);
    }
    open.add(key);
    const question = { method: "elicitation/create", params: { message, requestedSchema } } as const;
    try {
      return await this.#context.mcpReq.send(question, { timeout: QUESTION_MS, signal: this.#beginQuestion() });
    } catch {
      return null;
    } finally {
      open.remove(key);
    }
  }
}

/** How a client can ask the person who uses it (elicitation). */
type Elicitation =
  /** Revision 2026-07-28: the call returns the question, and the client repeats it with the answer and our state. */
  | { readonly era: "modern"; readonly answers: Readonly<Record<string, unknown>> | null; readonly state: unknown }
  /**
   * Earlier revisions: we send a request while the call waits. `ask` resolves with the answer, or with null: the client
   * failed or left, its key was revoked, the service stops, or `QUESTION_MS` have passed. Throws `rate_limited`.
   */
  | { readonly era: "legacy"; readonly ask: (form: QuestionForm) => Promise<unknown> }
  /** Earlier revisions with several nodes: the person's answer could reach another node. */
  | { readonly era: "unreachable" };

export interface QuestionForm {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams["requestedSchema"];
}

/** A progress notification. `progress` must increase from one to the next. */
interface Progress {
  readonly progress: number;
  readonly total: number;
  readonly message: string;
}

/** Whether a client with these capabilities shows forms. An elicitation capability without a mode means forms. */
export function canAsk(capabilities: unknown): boolean {
  const elicitation = isJsonObject(capabilities) ? capabilities["elicitation"] : null;
  return isJsonObject(elicitation) && ("form" in elicitation || !("url" in elicitation));
}
