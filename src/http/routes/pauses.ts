import type { PauseDesk } from "../../actions/pauses.ts";
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
  readonly pauseDesk: Pick<PauseDesk, "list" | "pause" | "resume">;
}

const NONE = compileQuery(NoQuery);

/** What owners have stopped. */
export function pauseRoutes({ pauseDesk }: PauseRouteDeps): readonly Route[] {
  return [
    routeOf(API.listPauses, async (visit) => {
      readQuery(visit.search, NONE);
      return json(pauseListJson(await pauseDesk.list(callerOf(visit))));
    }),
    routeOf(API.createPause, async (visit) => {
      readQuery(visit.search, NONE);
      const request = checkCreatePause((await readJson(visit, parseFields)).value);
      const { pause, isNew } = await pauseDesk.pause(callerOf(visit), request);
      return json(pauseJson(pause), isNew ? 201 : 200);
    }),
    routeOf(API.endPause, async (visit, params) => {
      readQuery(visit.search, NONE);
      const id = params["id"] ?? "";
      if (!PAUSE_ID.test(id)) throw new DomainError("not_found", "There is no such pause.");
      await pauseDesk.resume(callerOf(visit), id);
      return new Response(null, { status: 204 });
    }),
  ];
}
