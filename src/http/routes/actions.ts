import type { ActionDesk } from "../../actions/desk.ts";
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
import { callerOf, type Visit } from "../visit.ts";
import { type WaitingDeps, whileWaiting } from "../waiting.ts";
import { actionIdOf } from "./action-id.ts";
import { type Show, showTimeline } from "./show.ts";

export interface ActionRouteDeps extends CreateRules, WaitingDeps {
  readonly desk: Pick<ActionDesk, "create" | "get" | "list" | "timeline" | "contextOf" | "wait">;
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
  const { desk, show } = deps;
  const checkCreate = createCheckCreate(deps);

  const waitFor = (visit: Visit, id: string, seconds: number): Promise<Action> =>
    whileWaiting(visit, deps, (stop) => desk.wait(callerOf(visit), id, { waitMs: seconds * 1_000, stop }));

  const create = async (visit: Visit): Promise<Response> => {
    const caller = callerOf(visit);
    const { wait = WAIT_SECONDS_DEFAULT } = readQuery(visit.search, WAIT);
    const body = await readJson(visit, parseFields);
    const { request, sync, reason } = checkCreate({
      value: body.value,
      bodyText: () => memberText(body, "body"),
      idempotencyKey: visit.request.headers.get("idempotency-key"),
      hold: caller.hold,
    });
    const { action, differs } = await desk.create(caller, request, { reason });
    visit.actionId = action.id;
    const shown = sync && !isTerminal(action.status) ? await waitFor(visit, action.id, wait) : action;
    const ready = await readyFor(caller, shown);
    if (differs !== undefined) return json(show(caller, ready, differs));
    return json(show(caller, ready), 201, { location: `/v1/actions/${action.id}` });
  };

  return [
    routeOf(API.createAction, create),
    routeOf(API.listActions, async (visit) => {
      const caller = callerOf(visit);
      const { actions, before } = await desk.list(caller, checkList(readQuery(visit.search, LIST)));
      const shown = (await allReadyFor(caller, actions)).map((action) => show(caller, action));
      return json(pageJson(shown, before));
    }),
    routeOf(API.getAction, async (visit, params) => {
      const { wait } = readQuery(visit.search, READ);
      const id = actionIdOf(visit, params);
      const caller = callerOf(visit);
      const action = await desk.get(caller, id);
      const isOver = wait === undefined || isTerminal(action.status);
      const shown = isOver ? action : await waitFor(visit, id, wait);
      return json(show(caller, await readyFor(caller, shown)));
    }),
    decisionFacts(deps),
    routeOf(API.getTimeline, async (visit, params) => {
      readQuery(visit.search, NONE);
      const caller = callerOf(visit);
      const id = actionIdOf(visit, params);
      const [action, entries] = await Promise.all([desk.get(caller, id), desk.timeline(caller, id)]);
      return json(showTimeline(caller, action, entries));
    }),
  ];
}

/** What is told to whoever decides, for those who put the decision to a person themselves. */
function decisionFacts({ desk, baseUrl }: ActionRouteDeps): Route {
  return routeOf(API.getDecisionFacts, async (visit, params) => {
    readQuery(visit.search, NONE);
    const action = await desk.get(callerOf(visit), actionIdOf(visit, params));
    const [context, ready] = await Promise.all([desk.contextOf(action), maskOneAhead(action, "decider")]);
    return json(JSON.stringify(factsOf(ready, context, baseUrl)));
  });
}
