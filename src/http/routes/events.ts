import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import type { StreamEvents } from "../events.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

const NONE = compileQuery(NoQuery);

/** The account's events as they happen (decisions 1). */
export function eventRoutes(streamEvents: StreamEvents): readonly Route[] {
  return [
    routeOf(API.streamEvents, (context) => {
      readQuery(context.search, NONE);
      return streamEvents(context, callerOf(context));
    }),
  ];
}
