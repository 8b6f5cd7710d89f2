import { eventJson, positionText } from "../actions/list-schemas.ts";
import { type Caller, type Viewer, viewerOf } from "../accounts/roles.ts";
import { seesWhole } from "../accounts/scope.ts";
import type { EventStream, Feed } from "./feed.ts";
import type { Log } from "../observability/log.ts";
import { StoreUnavailable, type ToldChange } from "../../db/store.ts";
import { traceOf } from "../http/errors.ts";
import { allReadyFor } from "../receipts/masked-action.ts";
import { drainBody } from "../http/body.ts";
import type { Show } from "../actions/caller-view.ts";
import { answerEvents, SSE_HEADERS, type SseDeps, type SseEnd, type SseSource } from "../http/sse.ts";
import type { RequestContext } from "../http/context.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { NoQuery } from "../actions/schemas.ts";
import { DomainError } from "../api/domain-error.ts";
import type { Action } from "../actions/action.ts";
import type { OwnOrigin } from "../http/own-origin.ts";
import { readQuery } from "../http/query.ts";
import type { Route } from "../http/router.ts";
import type { WatchOf } from "../http/session.ts";

export interface EventsDeps extends Pick<SseDeps, "clock" | "draining"> {
  readonly feed: Feed;
  readonly show: Show;
  readonly log: Log;
  /** A stream ends after so many heartbeats; left out: it goes on. */
  readonly beatsMax?: number;
}

/**
 * Answers with the changes of the caller's actions as they happen (decisions 1, 12), from behind the request's
 * `Last-Event-ID` or from now. Who the caller is, by a key or by a session, is the route's matter; it is told once when they
 * are gone.
 */
export type StreamEvents = (context: RequestContext, caller: Caller, left?: () => void) => Promise<Response>;

export function createStreamEvents({ feed, show, log, clock, draining, beatsMax }: EventsDeps): StreamEvents {
  const textOf = createTexts(show);
  const begin = async (context: RequestContext, caller: Caller, left: () => void) => {
    const { request, name } = context;
    // Its time limit will be lifted: a body that drips would live as long as it likes.
    if (context.isBodyUnread) await drainBody(request, clock);
    const stream = await feed.open(caller, request.headers.get("last-event-id") || null);
    if (request.method === "HEAD") {
      stream.end();
      left();
      return new Response(null, { headers: SSE_HEADERS });
    }
    const openedMs = clock.monotonicMs();
    const tellFault = (error: unknown) => {
      // The store being away is no bug, and whoever writes tells of it.
      if (error instanceof StoreUnavailable) return;
      log.error("http.failed", { request_id: name.id, route: context.route, error: traceOf(error) });
    };
    const ended = (why: SseEnd | Error) => {
      left();
      if (why instanceof Error) tellFault(why);
      log[why instanceof Error ? "warn" : "info"]("events.ended", {
        request_id: name.id,
        account_id: caller.accountId,
        why: why instanceof Error ? why.name : why,
        duration_ms: Math.round(clock.monotonicMs() - openedMs),
      });
    };
    const source = sourceOf(stream, (changes) => textOf(caller, changes), beatsMax);
    return answerEvents(context, source, { clock, draining, revoked: caller.revoked, ended, failedLate: tellFault });
  };
  return async (context, caller, left = () => {}) => {
    try {
      return await begin(context, caller, left);
    } catch (error) {
      left();
      throw error;
    }
  };
}

/** How long a browser waits before it comes back; its own default is three seconds or more. */
const RETRY_MS = 1_000;

function sourceOf(
  stream: EventStream,
  textOf: (changes: readonly ToldChange[]) => Promise<string>,
  beatsMax = Number.POSITIVE_INFINITY,
): SseSource {
  let beats = 0;
  // Whoever listens has this id, by an event or by itself: so that it can go on from what it has not missed.
  let sent = stream.position;
  let told = stream.position;
  let greeting = `: Outgate tells of every change here\nretry: ${RETRY_MS}\nid: ${sent}\n\n`;
  return {
    async next() {
      if (greeting !== "") {
        const text = greeting;
        greeting = "";
        return { text, isLive: false };
      }
      const page = await stream.next();
      if (page === null) return null;
      told = page.position;
      const last = page.changes.at(-1);
      if (last !== undefined) sent = positionText(last.seq);
      return { text: await textOf(page.changes), isLive: page.isLive };
    },
    beat() {
      beats += 1;
      if (beats >= beatsMax) stream.end();
      else stream.look();
      if (told === sent) return ":\n\n";
      // What others wrote meanwhile need not be looked at again.
      sent = told;
      return `:\nid: ${told}\n\n`;
    },
    end: () => stream.end(),
  };
}

/** How much of an action a caller sees. */
type Sight = "whole" | Viewer;

type Texts = Map<ToldChange, Promise<string>>;

/** The text of a change is made once for all who see the same of it. */
function createTexts(show: Show) {
  const made = new WeakMap<readonly ToldChange[], Record<Sight, Texts>>();
  const make = (caller: Caller, changes: readonly ToldChange[], texts: Texts) => {
    const missing = changes.filter((change) => !texts.has(change));
    const ready = allReadyFor(
      caller,
      missing.map(({ action }) => action),
    );
    for (const [at, change] of missing.entries()) {
      texts.set(
        change,
        ready.then((actions) => eventText(change, show(caller, actions[at] ?? change.action))),
      );
    }
  };
  return async (caller: Caller, changes: readonly ToldChange[]): Promise<string> => {
    const texts: Record<Sight, Texts> = made.get(changes) ?? {
      whole: new Map(),
      public: new Map(),
      decider: new Map(),
    };
    made.set(changes, texts);
    const whole = new Set(changes.filter(({ action }) => seesWhole(caller, action)));
    const masked = texts[viewerOf(caller.role)];
    make(caller, [...whole], texts.whole);
    make(
      caller,
      changes.filter((change) => !whole.has(change)),
      masked,
    );
    const all = changes.flatMap((change) => (whole.has(change) ? texts.whole : masked).get(change) ?? []);
    return (await Promise.all(all)).join("");
  };
}

/** Line ends in a target's answer are white space of its JSON: in the stream they would end the field. */
function eventText({ seq, at, action }: ToldChange, data: string): string {
  const type = `action.${action.status}`;
  return `id: ${positionText(seq)}\nevent: ${type}\ndata: ${eventJson(type, at, data).replaceAll(/[\r\n]+/g, " ")}\n\n`;
}

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
