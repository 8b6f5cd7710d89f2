import {
  type CallToolRequest,
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool as ListedTool,
} from "@modelcontextprotocol/server";
import type { Static, TObject } from "typebox";
import { Counts } from "../src/core/maps.ts";
import { authorize, type Caller, type Permission } from "../src/core/roles.ts";
import { type Action, isTerminal } from "../src/core/action.ts";
import { createCheckCreate } from "../src/actions/create-schema.ts";
import { createdIfAway } from "../src/actions/wait.ts";
import { checkList, ListParameters } from "../src/api/list-schemas.ts";
import type { ListedCredentialRequest } from "../src/core/credential.ts";
import { AskCredentialBody, serializeRequest } from "../src/credentials/requests.ts";
import { serializeCredential } from "../src/credentials/routes.ts";
import { DomainError, type Issue } from "../src/core/domain-error.ts";
import { compile, onePerField, withoutNulls } from "../src/api/check.ts";
import {
  PROGRESS_EVERY_MS,
  SILENT_WAIT_SECONDS_MAX,
  TOOL_NAME_CHARS_SHOWN,
  TOOL_NOTES_BYTES,
  TOOL_REQUESTS_MAX,
  TOOL_RESULT_BYTES_MAX,
  TOOL_ROWS_MAX,
  WAIT_SECONDS_DEFAULT,
} from "../src/core/limits.ts";
import type { ToolOutcome } from "../src/observability/metrics.ts";
import { askForApproval, type ApprovalQuestion, QUESTION } from "./approve.ts";
import { type AgentDeps, ToolCall } from "./call.ts";
import { loggedFailure, describeAction, describePage, errorResult, toolResult, type ToolAnswer } from "./results.ts";
import {
  ActionResult,
  compileArguments,
  CreateArguments,
  CreateToolOptions,
  DecideArguments,
  GetArguments,
  inputSchemaJson,
  ListArguments,
  NoArguments,
  PageResult,
  RequestCredentialArguments,
  RetryArguments,
  WaitArguments,
} from "./schemas.ts";

interface Tool {
  readonly title: string;
  readonly description: string;
  /** Replaces `description` if AGENT_APPROVAL is off. */
  readonly descriptionWhenOff?: string;
  /** All four are set, because the defaults assume the worst. */
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
  /** The permission that REST requires for the same; null: the tool checks the role itself. */
  readonly permission: Permission | null;
  readonly input: TObject;
  /** Short, as every character costs tokens. Clients refuse an answer that it doesn't accept. */
  readonly output: ListedTool["outputSchema"];
  /** Throws `DomainError` or `ProtocolError`. */
  readonly run: (deps: AgentDeps, call: ToolCall) => Promise<ToolAnswer | ApprovalQuestion>;
}

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

const APPROVES_AT_ONCE =
  "Where the client can't ask, an owner's or approver's key approves at once: call it only when the person has said yes.";

const SENDS = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true } as const;

/** Every tool, in the order of the list. Each calls the service like its REST route. */
export const TOOLS = {
  create: {
    title: "Send an HTTP call",
    description:
      "Sends one HTTP call as an action: stored, held for approval if required, then signed, sent and retried. Use it " +
      "for every call with an effect. Say what it does in title and why in reason: approvers read them. Returns the " +
      "action at once, or with sync: true when it has ended. Same intent, same idempotency_key: choose one for each " +
      "intent and reuse it when you repeat this call after an error or a lost answer; then nothing is sent twice. To " +
      "send a failed action again, use retry; to learn how one ended, use wait.",
    annotations: SENDS,
    permission: "create",
    input: CreateArguments,
    output: ActionResult,
    run: create,
  },
  get: {
    title: "Look at an action",
    description:
      "Shows the current state of one action: status, attempts, the target's response, the error, what can be done. " +
      "decision, decided_by and decision_reason say who decided, and why. To wait for its end, use wait; to find an " +
      "action, use list.",
    annotations: READS,
    permission: "read",
    ...returnsAction(GetArguments, ({ actionService }, { caller }, { id }) => actionService.get(caller, id)),
  },
  list: {
    title: "List actions",
    description:
      "Lists actions, newest first, that match all filters. Those that need approval have the status awaiting_approval. " +
      "Returns data, a short row for each (get has the rest; cut names what is shortened), and next_cursor if there are " +
      "more, even when data is empty.",
    annotations: READS,
    permission: "read",
    input: ListArguments,
    output: PageResult,
    run: list,
  },
  wait: {
    title: "Wait for an action to end",
    description:
      "Waits until an action is completed, failed or cancelled, or until wait seconds have passed, and returns it as get " +
      "does. Without progress notifications it returns after 50 seconds: call it again. Ending the call doesn't end the " +
      "action. An approval may take hours: tell the person instead of waiting.",
    annotations: READS,
    permission: "read",
    ...returnsAction(WaitArguments, async (deps, call, { id, wait }) =>
      waitForEnd(deps, call, await deps.actionService.get(call.caller, id), wait),
    ),
  },
  approve: {
    title: "Ask for approval of an action",
    description:
      "Asks the person who uses this client to decide on a held action. First tell them what it does. Returns the action " +
      "with decision: approved (it is sent), rejected (cancelled; see decision_reason), declined or unanswered (still " +
      "held), or unavailable with an error that says who can decide. A later answer still counts: use get. " +
      APPROVES_AT_ONCE,
    descriptionWhenOff:
      "Only for keys of an owner or approver: asks the person who uses this client to decide on a held action. " +
      `${APPROVES_AT_ONCE} ` +
      "AGENT_APPROVAL is off here, so an agent's key is always refused: tell your person to decide in the inbox at " +
      "/approvals or by the link in the approval mail, and use get to learn what they decided.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    permission: null,
    input: DecideArguments,
    output: ActionResult,
    run: askForApproval,
  },
  cancel: {
    title: "Cancel an action",
    description:
      "Cancels a pending or held action, so that it is not sent, or not again. One that is active or has ended can't be " +
      "cancelled. Returns the action.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    permission: "cancel",
    ...returnsAction(DecideArguments, ({ actionService }, { caller }, { id, reason = null, run }) =>
      actionService.cancel(caller, id, reason, run === undefined ? undefined : { run, isHeld: false }),
    ),
  },
  retry: {
    title: "Send an action again",
    description:
      "Sends a failed or cancelled action again as a new run, with the same request and Idempotency-Key. If it needed " +
      "approval, it needs it again. After a person's rejection, call it only when they ask for it, with a reason, and at " +
      "most twice in 24 hours. Use it instead of create, except for a new intent. Returns the action.",
    annotations: SENDS,
    permission: "retry",
    ...returnsAction(RetryArguments, ({ actionService }, { caller }, { id, reason = null, run }) =>
      actionService.retry(caller, id, reason, run === undefined ? undefined : { run, isHeld: false }),
    ),
  },
  credentials: {
    title: "List credentials",
    description: "Lists credentials that this key may use and where they may go. create takes their names.",
    annotations: READS,
    permission: "read",
    input: NoArguments,
    output: PageResult,
    run: credentials,
  },
  request_credential: {
    title: "Ask for a credential",
    description:
      "Asks the account's owners for a credential for a host: they fill in the secret, you learn its name. Never ask for " +
      "the secret itself. requests in credentials says what became of it.",
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    permission: "create",
    input: RequestCredentialArguments,
    output: ActionResult,
    run: requestCredential,
  },
} as const satisfies Readonly<Record<string, Tool>>;

export type ToolName = keyof typeof TOOLS;

/** The tools as clients see them. */
export function listedTools(agentApproval: AgentDeps["config"]["agentApproval"]): ListedTool[] {
  return Object.entries<Tool>(TOOLS).map(([name, tool]) => ({
    name,
    title: tool.title,
    description: agentApproval === "off" ? (tool.descriptionWhenOff ?? tool.description) : tool.description,
    annotations: tool.annotations,
    inputSchema: inputSchemaJson(tool.input),
    outputSchema: tool.output,
  }));
}

/** Handles tools/call. Errors of the tool become results, which models can read; errors of the protocol are thrown. */
export function createCallTool(deps: AgentDeps) {
  const { clock, draining, log, metrics } = deps;
  const openQuestions = new Counts();
  return async ({ params }: CallToolRequest, ctx: ServerContext): Promise<CallToolResult | InputRequiredResult> => {
    const { name } = params;
    if (!isTool(name)) {
      const given = JSON.stringify(name.slice(0, TOOL_NAME_CHARS_SHOWN));
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${given}.`);
    }
    const { permission, run } = TOOLS[name];
    const call = new ToolCall(ctx, draining, openQuestions);
    const startedMs = clock.monotonicMs();
    const record = (outcome: ToolOutcome, code?: string) => {
      metrics.toolCalled(name, outcome);
      const { accountId, keyId } = call.caller;
      const durationMs = Math.round((clock.monotonicMs() - startedMs) * 10) / 10;
      log.info("mcp.called", { tool: name, code, duration_ms: durationMs, account_id: accountId, key_id: keyId });
    };
    try {
      if (permission !== null) authorize(call.caller, permission);
      await call.exchange.turn();
      const answer = await run(deps, call);
      if ("json" in answer) {
        record(answer.refused === undefined ? "ok" : "refused", answer.refused);
        return toolResult(answer);
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
      // Waiting ends with an AbortError when the client leaves, which is not a failure.
      if (call.exchange.request.ended.aborted && error instanceof Error && error.name === "AbortError") {
        record("refused", "client_gone");
        return errorResult(new DomainError("unavailable", "The client has ended this call."));
      }
      const failure = loggedFailure(error, name, deps);
      record(failure.code === "internal_error" ? "failed" : "refused", failure.code);
      return errorResult(failure);
    }
  };
}

function isTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

const readNothing = compileArguments(NoArguments);

/** Lists as many credentials as fit. */
async function credentials(
  { credentialService, credentialRequests, clock }: AgentDeps,
  call: ToolCall,
): Promise<ToolAnswer> {
  readNothing(call.arguments);
  const { caller } = call;
  const rows: string[] = [];
  let bytes = TOOL_NOTES_BYTES;
  for (const one of await credentialService.list(caller)) {
    const { name, kind, hosts, paths, methods, enabled, expires_at } = serializeCredential(one, null);
    const row = JSON.stringify({ name, kind, hosts, paths, methods, ...(enabled ? {} : { enabled }), expires_at });
    bytes += Buffer.byteLength(row) + 1;
    if (bytes > TOOL_RESULT_BYTES_MAX) break;
    rows.push(row);
  }
  const asked = (await credentialRequests.own(caller, TOOL_REQUESTS_MAX)).map((one) =>
    JSON.stringify(credentialRequest(caller, one, clock.now())),
  );
  const fitting = asked.filter((row) => (bytes += Buffer.byteLength(row) + 1) <= TOOL_RESULT_BYTES_MAX);
  const requests = fitting.length === 0 ? "" : `,"requests":[${fitting.join(",")}]`;
  return { json: `{"data":[${rows.join(",")}]${requests}}` };
}

const readAsked = compileArguments(AskCredentialBody);

async function requestCredential(
  { credentialRequests, clock, config }: AgentDeps,
  call: ToolCall,
): Promise<ToolAnswer> {
  const { caller } = call;
  const { request } = await credentialRequests.ask(caller, readAsked(call.arguments));
  const seen = credentialRequest(caller, request, clock.now());
  const next =
    seen.status === "declined"
      ? "A person has said no: do not ask again unless they tell you to."
      : `An owner of the account fills it in at ${config.baseUrl}/approvals/credentials/${request.id}: tell your person, and ` +
        "continue with something else. credentials shows when it is granted; then name it in create.";
  return { json: JSON.stringify({ ...seen, next_step: next }) };
}

/** What a model needs to know of a request. */
function credentialRequest(caller: Caller, request: ListedCredentialRequest, now: Date) {
  const { id, status, host, name, paths, methods, credential, expires_at, decision_reason } = serializeRequest(
    caller,
    request,
    now,
  );
  return {
    id,
    status,
    host,
    ...(status === "pending" ? { name, paths, methods, expires_at } : {}),
    ...(credential === null ? {} : { credential }),
    ...(decision_reason === null ? {} : { decision_reason }),
  };
}

/** For a tool that takes these arguments and returns one action. */
function returnsAction<S extends TObject>(
  input: S,
  act: (deps: AgentDeps, call: ToolCall, given: Static<S>) => Promise<Action>,
): Pick<Tool, "input" | "output" | "run"> {
  const read = compileArguments(input);
  const run: Tool["run"] = async (deps, call) => ({
    json: await describeAction(deps, call, await act(deps, call, read(call.arguments))),
  });
  return { input, output: ActionResult, run };
}

const readList = compileArguments(ListParameters, "invalid_query");

async function list(deps: AgentDeps, call: ToolCall): Promise<ToolAnswer> {
  const query = checkList(readList(call.arguments));
  const limit = Math.min(query.limit, TOOL_ROWS_MAX);
  return { json: await describePage(deps, call, await deps.actionService.list(call.caller, { ...query, limit })) };
}

const OPTIONS = compile(CreateToolOptions);

/** The create of REST; its header and its query parameter are arguments here. */
async function create(deps: AgentDeps, call: ToolCall): Promise<ToolAnswer> {
  const { caller } = call;
  const { idempotency_key: key, wait, ...request } = call.arguments;
  const options = withoutNulls({ idempotency_key: key, wait }, CreateToolOptions.properties);
  const waitSeconds = typeof wait === "number" ? wait : undefined;
  const input = {
    value: request,
    bodyText: (member: "body" | "json" | "form") => call.bodyText(member),
    idempotencyKey: typeof key === "string" ? key : null,
    role: caller.role,
    now: deps.clock.now(),
    waitSeconds,
  };
  const { request: checked, ...given } = withIssues(OPTIONS.issues(options), () => createCheckCreate(deps)(input));
  const { action, differs } = await deps.actionService.create(caller, checked, given);
  const { sync } = given;
  // A rule has held it, so answer: the model can tell its user instead of waiting.
  const isHeld = differs === undefined && action.status === "awaiting_approval";
  const created = createdIfAway(action);
  const latest = sync && !isHeld ? await waitForEnd(deps, call, action, waitSeconds).catch(created) : action;
  const describe = (one: Action) => describeAction(deps, call, one, differs === undefined ? {} : { differs });
  // Describing one that has ended reads its timeline; of one just created nothing more is read.
  return { json: await describe(latest).catch((error: unknown) => describe(created(error))) };
}

/** Reports issues of the options and of the request together. */
function withIssues<T>(issues: readonly Issue[], check: () => T): T {
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

/** Arguments that are headers in REST. */
const NAMES: ReadonlyMap<string, string> = new Map([["Idempotency-Key", "idempotency_key"]]);

/**
 * Waits for the end of an action, and returns its current state after `seconds`. A client that asked for progress is
 * notified of every change and every `PROGRESS_EVERY_MS`, so that it doesn't time out; any other is answered after
 * `SILENT_WAIT_SECONDS_MAX`.
 */
async function waitForEnd(
  { actionService, bus, clock }: Pick<AgentDeps, "actionService" | "bus" | "clock">,
  call: ToolCall,
  action: Action,
  seconds = WAIT_SECONDS_DEFAULT,
): Promise<Action> {
  if (isTerminal(action.status)) return action;
  const { caller, notifyProgress } = call;
  const { id } = action;
  const stop = call.beginWait();
  if (notifyProgress === null) {
    return actionService.wait(caller, id, { waitMs: Math.min(seconds, SILENT_WAIT_SECONDS_MAX) * 1_000, stop });
  }
  const startedMs = clock.monotonicMs();
  let progress = -1;
  const report = (message: string) => {
    const elapsed = Math.round(clock.monotonicMs() - startedMs) / 1_000;
    // It must increase, and two changes may come in the same millisecond.
    progress = Math.max(elapsed, progress + 0.001);
    notifyProgress({ progress, total: Math.max(seconds, progress), message });
  };
  let cancelTimer = () => {};
  const reportWaiting = () => {
    report("waiting");
    cancelTimer = clock.after(PROGRESS_EVERY_MS, reportWaiting);
  };
  const unwatch = bus.watch(id, ({ status, attempts, retries }) =>
    report(attempts === 0 ? status : `${status}, attempt ${attempts} of ${retries}`),
  );
  reportWaiting();
  try {
    return await actionService.wait(caller, id, { waitMs: seconds * 1_000, stop });
  } finally {
    unwatch();
    cancelTimer();
  }
}
