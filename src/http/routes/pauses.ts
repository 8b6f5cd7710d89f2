import type { PauseService } from "../../actions/pauses.ts";
import { API } from "../../contract/operations.ts";
import { checkCreatePause, pauseJson, pauseListJson } from "../../contract/pause.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import { DomainError } from "../../domain/errors.ts";
import { PAUSE_ID } from "../../domain/id.ts";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { parseFields } from "../parse-json.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface PauseRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
}

const NONE = compileQuery(NoQuery);

/** What owners have stopped. */
export function pauseRoutes({ pauseService }: PauseRouteDeps): readonly Route[] {
  return [
    routeOf(API.listPauses, async (context) => {
      readQuery(context.search, NONE);
      return json(pauseListJson(await pauseService.list(callerOf(context))));
    }),
    routeOf(API.createPause, async (context) => {
      readQuery(context.search, NONE);
      const request = checkCreatePause((await readJson(context, parseFields)).value);
      const { pause, isNew } = await pauseService.pause(callerOf(context), request);
      return json(pauseJson(pause), isNew ? 201 : 200);
    }),
    routeOf(API.endPause, async (context, params) => {
      readQuery(context.search, NONE);
      const id = params["id"] ?? "";
      if (!PAUSE_ID.test(id)) throw new DomainError("not_found", "There is no such pause.");
      await pauseService.resume(callerOf(context), id);
      return new Response(null, { status: 204 });
    }),
  ];
}
