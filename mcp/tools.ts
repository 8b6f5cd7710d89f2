import type { ActionDesk } from "../src/actions/desk.ts";
import type { CreateRules } from "../src/contract/create.ts";
import { checkList, ListQuery, pageJson } from "../src/contract/page.ts";
import { compileArguments, DecideInput, GetInput, WaitInput } from "../src/contract/tool-schemas.ts";
import type { ToolName } from "../src/contract/tools.ts";
import { type Action, isTerminal } from "../src/domain/action.ts";
import { authorize } from "../src/domain/caller.ts";
import { WAIT_SECONDS_DEFAULT } from "../src/domain/limits.ts";
import { type ApproveDeps, type Asked, createApprove } from "./approve.ts";
import type { ToolCall } from "./call.ts";
import { createCreate } from "./create.ts";
import type { Told } from "./results.ts";
import type { Show } from "./show.ts";
import { ACTIONS_URI, uriOf } from "./uris.ts";
import { waitForEnd, type WaitDeps } from "./waiting.ts";
import { type Places, pageSentence, sentenceOf } from "./words.ts";

export interface ToolDeps extends WaitDeps, ApproveDeps, CreateRules, Places {
  readonly desk: Omit<ActionDesk, "timeline">;
  readonly show: Show;
}

/** Does what a call asks for. Throws what is wrong with it. */
export type Tool = (call: ToolCall) => Promise<Told | Asked>;

const readGet = compileArguments(GetInput);
const readWait = compileArguments(WaitInput);
const readDecide = compileArguments(DecideInput);
const readList = compileArguments(ListQuery, "invalid_query");

/** The tools: each is the use case that a route of REST is, with the caller's role asked for first (decisions 9). */
export function createTools(deps: ToolDeps): Readonly<Record<ToolName, Tool>> {
  const { desk, show } = deps;
  const approve = createApprove(deps);
  const told = (call: ToolCall, action: Action, before = ""): Told => ({
    sentence: before + sentenceOf(action, deps),
    json: show(call.caller(), action),
    uri: uriOf(action.id),
  });
  const decide = (operation: "cancel" | "retry") => async (call: ToolCall) => {
    authorize(call.caller(), operation);
    const { id, reason = null } = readDecide(call.arguments);
    return told(call, await desk[operation](call.caller(), id, reason));
  };

  return {
    create: createCreate(deps),
    async get(call) {
      authorize(call.caller(), "read");
      return told(call, await desk.get(call.caller(), readGet(call.arguments).id));
    },
    async list(call) {
      const caller = call.caller();
      authorize(caller, "read");
      const { actions, before } = await desk.list(caller, checkList(readList(call.arguments)));
      const shown = actions.map((action) => show(caller, action));
      return {
        sentence: pageSentence(actions.length, before !== null),
        json: pageJson(shown, before),
        uri: ACTIONS_URI,
      };
    },
    async wait(call) {
      authorize(call.caller(), "read");
      const { id, wait = WAIT_SECONDS_DEFAULT } = readWait(call.arguments);
      const action = await desk.get(call.caller(), id);
      return told(call, isTerminal(action.status) ? action : await waitForEnd(deps, call, id, wait));
    },
    async approve(call) {
      const answer = await approve(call);
      return "form" in answer ? answer : told(call, answer.action, answer.isOpen ? "Nobody decided. " : "");
    },
    cancel: decide("cancel"),
    retry: decide("retry"),
  };
}
