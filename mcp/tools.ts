import type { ActionService } from "../src/actions/service.ts";
import { type CreateRules, createCheckCreate } from "../src/actions/create-schema.ts";
import { checkList, ListQuery, pageJson } from "../src/actions/list-schemas.ts";
import {
  compileArguments,
  DecideInput,
  GetInput,
  RetryInput,
  WaitInput,
  type ToolName,
  TOOLS,
  CreateOptions,
} from "./schemas.ts";
import { isTerminal, type Action } from "../src/actions/action.ts";
import { authorize } from "../src/accounts/roles.ts";
import {
  TOOL_LIST_BYTES_MAX,
  WAIT_SECONDS_DEFAULT,
  PROGRESS_EVERY_MS,
  SILENT_WAIT_SECONDS_MAX,
} from "../src/config/limits.ts";
import { type ApproveDeps, type Question, createApprove, QUESTION } from "./approve.ts";
import {
  type ToolCall,
  questionsOf,
  notifyProgressOf,
  argumentsOf,
  argumentText,
  type Exchange,
  type ExchangeOf,
  type Progress,
} from "./call.ts";
import {
  createDescribe,
  type Describe,
  type DescribeDeps,
  errorOf,
  type ToolAnswer,
  asDomainError,
  errorResult,
  resultOf,
  type ErrorDeps,
  foundStep,
} from "./results.ts";
import {
  type CallToolRequest,
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { DomainError, type Issue } from "../src/api/domain-error.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { Metrics, ToolOutcome } from "../src/observability/metrics.ts";
import { compile, onePerField, withoutNulls } from "../src/api/schema-helpers.ts";
import type { Bus } from "../src/events/bus.ts";

interface ToolDeps extends WaitDeps, ApproveDeps, CreateRules, DescribeDeps {
  readonly actionService: ActionService;
}

/** Runs one call. Throws `DomainError` or `ProtocolError`. */
export type Tool = (call: ToolCall) => Promise<ToolAnswer | Question>;

const readGet = compileArguments(GetInput);

const readWait = compileArguments(WaitInput);

const readDecide = compileArguments(DecideInput);

const readRetry = compileArguments(RetryInput);

const readList = compileArguments(ListQuery, "invalid_query");

/** The tools. Each calls the service as the route of REST does, after checking the caller's role. */
function createTools(deps: ToolDeps): Readonly<Record<ToolName, Tool>> {
  const { actionService, show } = deps;
  const approve = createApprove(deps);
  const describe = createDescribe(deps);
  return {
    create: createCreate(deps, describe),
    async get(call) {
      authorize(call.caller(), "read");
      const action = await actionService.get(call.caller(), readGet(call.arguments).id);
      return { json: await describe(call, action) };
    },
    async list(call) {
      const caller = call.caller();
      authorize(caller, "read");
      const { actions, before } = await actionService.list(caller, {
        ...checkList(readList(call.arguments)),
        bytesMax: TOOL_LIST_BYTES_MAX,
      });
      const listed = actions.map((action) => show.listed(caller, action));
      return { json: pageJson(listed, before) };
    },
    async wait(call) {
      authorize(call.caller(), "read");
      const { id, wait = WAIT_SECONDS_DEFAULT } = readWait(call.arguments);
      const found = await actionService.get(call.caller(), id);
      const action = isTerminal(found.status) ? found : await waitForEnd(deps, call, id, wait);
      return { json: await describe(call, action) };
    },
    async approve(call) {
      const answer = await approve(call);
      if ("form" in answer) return answer;
      if ("undecided" in answer) return { json: await describe(call, answer.action, { undecided: answer.undecided }) };
      const { action, refusal } = answer;
      const outcome = { undecided: "unavailable", error: errorOf(refusal) } as const;
      return { json: await describe(call, action, outcome), refused: refusal.code };
    },
    cancel: cancelWith(deps, describe),
    async retry(call) {
      authorize(call.caller(), "retry");
      const { id, reason = null } = readRetry(call.arguments);
      const action = await actionService.retry(call.caller(), id, reason);
      return { json: await describe(call, action) };
    },
  };
}

function cancelWith({ actionService }: Pick<ToolDeps, "actionService">, describe: Describe): Tool {
  return async (call) => {
    authorize(call.caller(), "cancel");
    const { id, reason = null, run } = readDecide(call.arguments);
    const ofRun = run === undefined ? undefined : { run, isHeld: false };
    return { json: await describe(call, await actionService.cancel(call.caller(), id, reason, ofRun)) };
  };
}

export interface CallToolDeps extends ToolDeps, ErrorDeps {
  readonly clock: Clock;
  /** Aborted when the service stops: waiting calls are answered at once. */
  readonly draining: AbortSignal;
  readonly metrics: Pick<Metrics, "toolCalled">;
}

/** Handles tools/call. Errors of the tool become results, which models can read; errors of the protocol are thrown. */
export function createCallTool(deps: CallToolDeps, exchangeOf: ExchangeOf) {
  const tools = createTools(deps);
  return async ({ params }: CallToolRequest, ctx: ServerContext): Promise<CallToolResult | InputRequiredResult> => {
    const { name } = params;
    if (!isTool(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name)}.`);
    const exchange = exchangeOf(ctx);
    const startedMs = deps.clock.monotonicMs();
    const record = (outcome: ToolOutcome, code?: string) => {
      deps.metrics.toolCalled(name, outcome);
      const { accountId, keyId } = exchange.caller();
      const durationMs = Math.round((deps.clock.monotonicMs() - startedMs) * 10) / 10;
      deps.log.info("mcp.called", { tool: name, code, duration_ms: durationMs, account_id: accountId, key_id: keyId });
    };
    try {
      const answer = await tools[name](callOf(ctx, exchange, deps.draining));
      if ("json" in answer) {
        record(answer.refused === undefined ? "ok" : "refused", answer.refused);
        return resultOf(answer, exchange.verbatim);
      }
      record("asked");
      const { message, requestedSchema } = answer.form;
      const question = inputRequired.elicit({ message, requestedSchema });
      return inputRequired({ inputRequests: { [QUESTION]: question }, requestState: answer.state });
    } catch (error) {
      if (error instanceof ProtocolError) {
        record("refused", "invalid_state");
        throw error;
      }
      if (isClientGone(exchange, error)) {
        record("refused", "client_gone");
        return errorResult(new DomainError("unavailable", "The client has ended this call."));
      }
      const failure = asDomainError(error, name, deps);
      record(failure.code === "internal_error" ? "failed" : "refused", failure.code);
      return errorResult(failure);
    }
  };
}

/** Waiting ends with an AbortError when the client leaves, which is not a failure. */
function isClientGone({ ended }: Exchange, error: unknown): boolean {
  return ended.aborted && error instanceof Error && error.name === "AbortError";
}

function isTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** `stop` and `questions` are getters, so that the many calls which only read don't create signals. */
function callOf(ctx: ServerContext, exchange: Exchange, draining: AbortSignal): ToolCall {
  let stop: AbortSignal | null = null;
  const revokedOf = () => exchange.caller().revoked ?? draining;
  const stopOf = () => {
    exchange.onWait();
    return (stop ??= AbortSignal.any([ctx.mcpReq.signal, exchange.ended, draining, revokedOf()]));
  };
  // Without the call's own signal: clients time out after a minute, while the person may still be deciding.
  const stopAskingOf = () => {
    exchange.onWait();
    return AbortSignal.any([draining, revokedOf()]);
  };
  return {
    caller: exchange.caller,
    arguments: argumentsOf(exchange, ctx),
    textOf: (argument) => argumentText(exchange, ctx, argument),
    notifyProgress: notifyProgressOf(ctx),
    get stop() {
      return stopOf();
    },
    get questions() {
      return questionsOf(ctx, exchange.capabilities, stopAskingOf);
    },
  };
}

interface CreateToolDeps extends CreateRules, WaitDeps {
  readonly actionService: Pick<ActionService, "create" | "wait">;
}

const OPTIONS = compile(CreateOptions);

/** The create of REST; its header and its query parameter are arguments here. */
function createCreate(deps: CreateToolDeps, describe: Describe) {
  const { actionService } = deps;
  const check = createCheckCreate(deps);

  return async (call: ToolCall): Promise<ToolAnswer> => {
    const caller = call.caller();
    authorize(caller, "create");
    const { idempotency_key: key, wait, ...request } = call.arguments;
    const options = withoutNulls({ idempotency_key: key, wait }, CreateOptions.properties);
    const input = {
      value: request,
      bodyText: () => call.textOf("body"),
      idempotencyKey: typeof key === "string" ? key : null,
      hold: caller.hold,
    };
    const checked = allIssues(OPTIONS.issues(options), () => check(input));
    const { action, differs } = await actionService.create(caller, checked.request, { reason: checked.reason });
    const mustWait = checked.sync && !isTerminal(action.status);
    const seconds = typeof wait === "number" ? wait : WAIT_SECONDS_DEFAULT;
    const latest = mustWait ? await waitForEnd(deps, call, action.id, seconds) : action;
    const found = differs === undefined ? {} : { differs, before: foundStep(differs) };
    return { json: await describe(call, latest, found) };
  };
}

/** Reports issues of the options and of the request together. */
function allIssues<T>(issues: readonly Issue[], check: () => T): T {
  try {
    const checked = check();
    if (issues.length === 0) return checked;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const others = error.issues.map(({ field, message }) => ({ field: NAMES.get(field) ?? field, message }));
    throw new DomainError(error.code, error.message, onePerField([...issues, ...others]));
  }
  throw new DomainError("validation_error", "The arguments are not valid.", issues);
}

/** Arguments by the header that REST has for them. */
const NAMES: ReadonlyMap<string, string> = new Map([["Idempotency-Key", "idempotency_key"]]);

interface WaitDeps {
  readonly actionService: Pick<ActionService, "wait">;
  readonly bus: Pick<Bus, "watch">;
  readonly clock: Clock;
}

/**
 * Waits for the end of an action, and returns its current state after `seconds`. A client that asked for progress is
 * notified of every change and every `PROGRESS_EVERY_MS`, so that it doesn't time out; any other is answered after
 * `SILENT_WAIT_SECONDS_MAX`.
 */
async function waitForEnd(deps: WaitDeps, call: ToolCall, id: string, seconds: number): Promise<Action> {
  const { actionService, bus, clock } = deps;
  const { notifyProgress, stop } = call;
  if (notifyProgress === null) {
    const waitMs = Math.min(seconds, SILENT_WAIT_SECONDS_MAX) * 1_000;
    return actionService.wait(call.caller(), id, { waitMs, stop });
  }
  const progress = new ProgressReporter(clock, notifyProgress, seconds);
  const unwatch = bus.watch(id, (action) => progress.onChange(action));
  progress.start();
  try {
    return await actionService.wait(call.caller(), id, { waitMs: seconds * 1_000, stop });
  } finally {
    unwatch();
    progress.stop();
  }
}

/** Reports how long a wait has lasted. The number always increases, as the protocol requires. */
class ProgressReporter {
  readonly #clock: Clock;
  readonly #notify: (progress: Progress) => void;
  readonly #total: number;
  readonly #startedMs: number;
  #last = -1;
  #cancelTimer = () => {};

  constructor(clock: Clock, notify: (progress: Progress) => void, total: number) {
    this.#clock = clock;
    this.#notify = notify;
    this.#total = total;
    this.#startedMs = clock.monotonicMs();
  }

  start(): void {
    this.#report("waiting");
    this.#cancelTimer = this.#clock.after(PROGRESS_EVERY_MS, () => this.start());
  }

  onChange({ status, attempts, retries }: Action): void {
    this.#report(attempts === 0 ? status : `${status}, attempt ${attempts} of ${retries}`);
  }

  stop(): void {
    this.#cancelTimer();
  }

  #report(message: string): void {
    const seconds = Math.round(this.#clock.monotonicMs() - this.#startedMs) / 1_000;
    // Two changes may come in the same millisecond.
    this.#last = Math.max(seconds, this.#last + 0.001);
    this.#notify({ progress: this.#last, total: Math.max(this.#total, this.#last), message });
  }
}
