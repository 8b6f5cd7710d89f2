import type { ActionService } from "../src/actions/desk.ts";
import type { CreateRules } from "../src/contract/create.ts";
import { checkList, ListQuery, pageJson } from "../src/contract/page.ts";
import { compileArguments, DecideInput, GetInput, RetryInput, WaitInput } from "../src/contract/tool-schemas.ts";
import type { ToolName } from "../src/contract/tools.ts";
import { isTerminal } from "../src/domain/action.ts";
import { authorize } from "../src/domain/caller.ts";
import { TOOL_LIST_BYTES_MAX, WAIT_SECONDS_DEFAULT } from "../src/domain/limits.ts";
import { type ApproveDeps, type Asked, createApprove } from "./approve.ts";
import type { ToolCall } from "./call.ts";
import { createCreate } from "./create.ts";
import { createDescribe, type Describe, type DescribeDeps } from "./describe.ts";
import { errorOf, type ToolAnswer } from "./results.ts";
import { waitForEnd, type WaitDeps } from "./waiting.ts";

export interface ToolDeps extends WaitDeps, ApproveDeps, CreateRules, DescribeDeps {
  readonly actionService: ActionService;
}

/** Does what a call asks for. Throws what is wrong with it. */
export type Tool = (call: ToolCall) => Promise<ToolAnswer | Asked>;

const readGet = compileArguments(GetInput);
const readWait = compileArguments(WaitInput);
const readDecide = compileArguments(DecideInput);
const readRetry = compileArguments(RetryInput);
const readList = compileArguments(ListQuery, "invalid_query");

/** The tools: each is the use case that a route of REST is, with the caller's role asked for first (decisions 9). */
export function createTools(deps: ToolDeps): Readonly<Record<ToolName, Tool>> {
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
      if ("asked" in answer) return { json: await describe(call, answer.action, { asked: answer.asked }) };
      const { action, refusal } = answer;
      const outcome = { asked: "unavailable", error: errorOf(refusal) } as const;
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
