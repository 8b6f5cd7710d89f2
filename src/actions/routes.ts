import { viewerOf } from "../accounts/roles.ts";
import { seesWhole } from "../accounts/scope.ts";
import type { ActionService } from "./service.ts";
import { createCheckCreate, type CreateRules } from "./create-schema.ts";
import { factsOf } from "../approvals/facts-schema.ts";
import { memberText } from "../json/scan.ts";
import { API, type ApiOperation } from "../api/operations.ts";
import { checkList, ListQuery, pageJson } from "./list-schemas.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { NoQuery, ReadQuery, WaitQuery, checkDecision, checkRetry } from "./schemas.ts";
import { type Action, isTerminal } from "./action.ts";
import { WAIT_SECONDS_DEFAULT } from "../config/limits.ts";
import { json } from "../http/errors.ts";
import { readJson, parseFields, readOptionalJson } from "../http/body.ts";
import { readQuery } from "../http/query.ts";
import { type Route, routeOf } from "../http/router.ts";
import { maskOneAhead, allReadyFor, readyFor } from "../receipts/masked-action.ts";
import { callerOf, type RequestContext } from "../http/context.ts";
import { type WaitingDeps, whileWaiting } from "../http/sse.ts";
import { actionIdOf, type Show, showTimeline } from "./caller-view.ts";
import type { Operation } from "./status.ts";
import type { StreamEvents } from "../events/stream.ts";

interface ActionRouteDeps extends CreateRules, WaitingDeps {
  readonly actionService: Pick<ActionService, "create" | "get" | "list" | "timeline" | "historyOf" | "wait">;
  /** The public URL of the service, without a trailing slash. */
  readonly baseUrl: string;
  readonly show: Show;
}

const WAIT = compileQuery(WaitQuery);

const READ = compileQuery(ReadQuery);

const LIST = compileQuery(ListQuery);

const NONE = compileQuery(NoQuery);

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

/** The facts that an approver sees, for clients that ask a person themselves. */
function decisionFacts({ actionService, baseUrl }: ActionRouteDeps): Route {
  return routeOf(API.getDecisionFacts, async (context, params) => {
    readQuery(context.search, NONE);
    const caller = callerOf(context);
    const action = await actionService.get(caller, actionIdOf(context, params));
    const viewer = seesWhole(caller, action) ? "decider" : viewerOf(caller.role);
    const [history, ready] = await Promise.all([actionService.historyOf(action), maskOneAhead(action, viewer)]);
    return json(JSON.stringify(factsOf(ready, history, baseUrl, viewer)));
  });
}

interface DecisionRouteDeps {
  readonly actionService: Pick<ActionService, Operation>;
  readonly show: Show;
}

/** Approve, cancel and retry: 200 with the whole action. The body may give a reason, and for approve and cancel a run. */
export function decisionRoutes({ actionService, show }: DecisionRouteDeps): readonly Route[] {
  const route = (operation: ApiOperation, verb: Operation): Route =>
    routeOf(operation, async (context, params) => {
      readQuery(context.search, NONE);
      const body = await readOptionalJson(context, parseFields);
      const { reason, run } =
        verb === "retry" ? { reason: checkRetry(body?.value), run: null } : checkDecision(body?.value);
      const caller = callerOf(context);
      const ofRun = run === null ? undefined : { run, isHeld: false };
      const decided = await actionService[verb](caller, actionIdOf(context, params), reason, ofRun);
      return json(show(caller, await readyFor(caller, decided)));
    });
  return [route(API.approveAction, "approve"), route(API.cancelAction, "cancel"), route(API.retryAction, "retry")];
}

export function eventRoutes(streamEvents: StreamEvents): readonly Route[] {
  return [
    routeOf(API.streamEvents, (context) => {
      readQuery(context.search, NONE);
      return streamEvents(context, callerOf(context));
    }),
  ];
}
