import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import type { Caller } from "../../domain/caller.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Action } from "../../domain/action.ts";
import type { StreamEvents } from "../events.ts";
import type { OwnOrigin } from "../own-origin.ts";
import { readQuery } from "../query.ts";
import type { Route } from "../route.ts";
import type { WatchOf } from "../session.ts";

export interface PageEventRouteDeps {
  readonly watchOf: WatchOf;
  readonly ownOrigin: OwnOrigin;
}

const NONE = compileQuery(NoQuery);

/** What a page is told of a change: enough to know whether it shows the action, and nothing that is secret. */
export function pageEventsOf(_caller: Caller, { id, status }: Action): string {
  return JSON.stringify({ id, status });
}

/** The stream of `GET /v1/events` for our own pages, by the session in place of a key: it ends with the session. */
export function pageEventRoutes({ watchOf, ownOrigin }: PageEventRouteDeps, stream: StreamEvents): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/events",
      operationId: null,
      async answer(context) {
        ownOrigin.refuseForeign(context.request.headers);
        readQuery(context.search, NONE);
        const watched = await watchOf(context);
        if (watched === null) throw new DomainError("forbidden", "Log in first: these events are for our own pages.");
        return stream(context, watched.caller, watched.release);
      },
    },
  ];
}
