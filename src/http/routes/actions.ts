import type { ActionService } from "../../actions/desk.ts";
import { createCheckCreate, type CreateRules } from "../../contract/create.ts";
import { factsOf } from "../../contract/decision-facts.ts";
import { memberText } from "../../contract/json-text.ts";
import { API } from "../../contract/operations.ts";
import { checkList, ListQuery, pageJson } from "../../contract/page.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery, ReadQuery, WaitQuery } from "../../contract/wait.ts";
import { type Action, isTerminal } from "../../domain/action.ts";
import { WAIT_SECONDS_DEFAULT } from "../../domain/limits.ts";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { parseFields } from "../parse-json.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { maskOneAhead, allReadyFor, readyFor } from "../../masking/ahead.ts";
import { callerOf, type RequestContext } from "../visit.ts";
import { type WaitingDeps, whileWaiting } from "../waiting.ts";
import { actionIdOf } from "./action-id.ts";
import { type Show, showTimeline } from "./show.ts";

export interface ActionRouteDeps extends CreateRules, WaitingDeps {
  readonly actionService: Pick<ActionService, "create" | "get" | "list" | "timeline" | "historyOf" | "wait">;
  /** Where people reach the pages, without a trailing slash. */
  readonly baseUrl: string;
  readonly show: Show;
}

const WAIT = compileQuery(WaitQuery);
const READ = compileQuery(ReadQuery);
const LIST = compileQuery(ListQuery);
const NONE = compileQuery(NoQuery);

/** Making actions and reading them (decisions 1). */
export function actionRoutes(deps: ActionRouteDeps): readonly Route[] {
  const { actionService, show } = deps;
  const checkCreate = createCheckCreate(deps);

  const waitFor = (context: RequestContext, id: string, seconds: number): Promise<Action> =>
    whileWaiting(context, deps, (stop) => actionService.wait(callerOf(context), id, { waitMs: seconds * 1_000, stop }));

  const create = async (context: RequestContext): Promise<Response> => {
    const caller = callerOf(context);
    const { wait = WAIT_SECONDS_DEFAULT } = readQuery(context.search, WAIT);
    const body = await readJson(context, parseFields);
    const { request, sync, reason } = checkCreate({
      value: body.value,
      bodyText: () => memberText(body, "body"),
      idempotencyKey: context.request.headers.get("idempotency-key"),
      hold: caller.hold,
    });
    const { action, differs } = await actionService.create(caller, request, { reason });
    context.actionId = action.id;
    const shown = sync && !isTerminal(action.status) ? await waitFor(context, action.id, wait) : action;
    const ready = await readyFor(caller, shown);
    if (differs !== undefined) return json(show(caller, ready, differs));
    return json(show(caller, ready), 201, { location: `/v1/actions/${action.id}` });
  };

  return [
    routeOf(API.createAction, create),
    routeOf(API.listActions, async (context) => {
      const caller = callerOf(context);
      const { actions, before } = await actionService.list(caller, checkList(readQuery(context.search, LIST)));
      const shown = (await allReadyFor(caller, actions)).map((action) => show(caller, action));
      return json(pageJson(shown, before));
    }),
    routeOf(API.getAction, async (context, params) => {
      const { wait } = readQuery(context.search, READ);
      const id = actionIdOf(context, params);
      const caller = callerOf(context);
      const action = await actionService.get(caller, id);
      const isOver = wait === undefined || isTerminal(action.status);
      const shown = isOver ? action : await waitFor(context, id, wait);
      return json(show(caller, await readyFor(caller, shown)));
    }),
    decisionFacts(deps),
    routeOf(API.getTimeline, async (context, params) => {
      readQuery(context.search, NONE);
      const caller = callerOf(context);
      const id = actionIdOf(context, params);
      const [action, entries] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
      return json(showTimeline(caller, action, entries));
    }),
  ];
}

/** What is told to whoever decides, for those who put the decision to a person themselves. */
function decisionFacts({ actionService, baseUrl }: ActionRouteDeps): Route {
  return routeOf(API.getDecisionFacts, async (context, params) => {
    readQuery(context.search, NONE);
    const action = await actionService.get(callerOf(context), actionIdOf(context, params));
    const [history, ready] = await Promise.all([actionService.historyOf(action), maskOneAhead(action, "decider")]);
    return json(JSON.stringify(factsOf(ready, history, baseUrl)));
  });
}
