import type { ActionService } from "../../actions/desk.ts";
import { checkDecision, checkRetry } from "../../contract/decision.ts";
import { API, type ApiOperation } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import type { Operation } from "../../domain/transition.ts";
import { readyFor } from "../../masking/ahead.ts";
import { json } from "../answer.ts";
import { readOptionalJson } from "../body.ts";
import { parseFields } from "../parse-json.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";
import { actionIdOf } from "./action-id.ts";
import type { Show } from "./show.ts";

export interface DecisionRouteDeps {
  readonly actionService: Pick<ActionService, Operation>;
  readonly show: Show;
}

const NONE = compileQuery(NoQuery);

/** Approve, cancel and retry: 200 with the whole action; a reason may come along, and with the first two a run. */
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
