import { type ActionSerializer, eventJson } from "../receipts/action-json.ts";
import { seeAll } from "../receipts/see.ts";
import { type Caller, callerView } from "../core/roles.ts";
import { type EventStream, type Feed, positionText } from "./feed.ts";
import { type Log, stackTrace } from "../observability/log.ts";
import { StoreUnavailable, type ActionChange } from "../core/store.ts";
import { dropBodyFirst } from "../http/body.ts";
import type { RequestContext } from "../http/request.ts";
import type { FindWatch } from "../http/session.ts";
import { answerEvents, SSE_HEADERS, type SseDeps, type SseEnd, type SseSource } from "../http/sse.ts";
import { queryCheck } from "../api/check.ts";
import { DomainError } from "../core/domain-error.ts";
import type { Action } from "../core/action.ts";
import type { OwnOrigin } from "../http/own-origin.ts";
import { createRoutes, NO_QUERY } from "../http/operation.ts";

export interface EventsDeps extends Pick<SseDeps, "clock" | "draining"> {
  readonly feed: Pick<Feed, "open">;
  readonly log: Log;
  /** Ends a stream after this many heartbeats; left out: never. */
  readonly beatsMax?: number;
  /** An event about something besides actions. Sent first, and again when it has changed. */
  readonly extraText?: (caller: Caller) => Promise<string>;
}

/**
 * Answers with the changes of the caller's actions as they happen, after the request's `Last-Event-ID` or from now on. The
 * route has authenticated the caller, by key or by session. Calls `left` once when the reader is gone.
 */
type StreamEvents = (context: RequestContext, caller: Caller, left?: () => void) => Promise<Response>;

export function createStreamEvents(deps: EventsDeps, serialize: ActionSerializer): StreamEvents {
  const { feed, log, clock, draining, beatsMax, extraText = async () => "" } = deps;
  const changesText = createTexts(serialize);
  const begin = async (context: RequestContext, caller: Caller, left: () => void) => {
    const { request, name } = context;
    // A stream has no time limit, so a body that arrives slowly would keep the request open for ever.
    if (context.isBodyUnread) await dropBodyFirst(context, clock);
    const stream = await feed.open(caller, request.headers.get("last-event-id") || null);
    if (request.method === "HEAD") {
      stream.end();
      left();
      return new Response(null, { headers: SSE_HEADERS });
    }
    const openedMs = clock.monotonicMs();
    const logFault = (error: unknown) => {
      // No bug: the store is away, which its writers log.
      if (error instanceof StoreUnavailable) return;
      log.error("http.failed", { request_id: name.logId, route: context.route, error: stackTrace(error) });
    };
    const ended = (why: SseEnd | Error) => {
      left();
      if (why instanceof Error) logFault(why);
      log[why instanceof Error ? "warn" : "info"]("events.ended", {
        request_id: name.logId,
        account_id: caller.accountId,
        why: why instanceof Error ? why.name : why,
        duration_ms: Math.round(clock.monotonicMs() - openedMs),
      });
    };
    const source = eventSource(stream, changesText.bind(null, caller), extraText.bind(null, caller), beatsMax);
    return answerEvents(context, source, { clock, draining, revoked: caller.revoked, ended, failedLate: logFault });
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

/** How long a browser waits before it reconnects. By default it waits three seconds or more. */
const RETRY_MS = 1_000;

function eventSource(
  stream: EventStream,
  changesText: (changes: readonly ActionChange[]) => Promise<string>,
  extraText: () => Promise<string>,
  beatsMax = Number.POSITIVE_INFINITY,
): SseSource {
  let beats = 0;
  let lastExtra = "";
  const newExtra = async (): Promise<string> => {
    const text = await extraText();
    if (text === lastExtra) return "";
    lastExtra = text;
    return text;
  };
  // The last id that the reader got, after which it can continue.
  let sentTo = stream.position;
  let readTo = stream.position;
  let greeting = `: Changes of actions follow\nretry: ${RETRY_MS}\nid: ${sentTo}\n\n`;
  return {
    async next() {
      if (greeting !== "") {
        const text = greeting;
        greeting = "";
        return { text: text + (await newExtra()), isLive: false };
      }
      const page = await stream.next();
      if (page === null) return null;
      readTo = page.position;
      const last = page.changes.at(-1);
      if (last !== undefined) sentTo = positionText(last.seq);
      const news = page.isAsked ? await newExtra() : "";
      return { text: (await changesText(page.changes)) + news, isLive: page.isLive };
    },
    beat() {
      beats += 1;
      if (beats >= beatsMax) stream.end();
      else stream.ask();
      if (readTo === sentTo) return ":\n\n";
      // When it reconnects, the reader need not skip other accounts' changes again.
      sentTo = readTo;
      return `:\nid: ${readTo}\n\n`;
    },
    end: () => stream.end(),
  };
}

/** Builds the text of a change once for all readers with the same view. */
function createTexts(serialize: ActionSerializer) {
  const made: Readonly<Record<ReturnType<typeof callerView>, WeakMap<ActionChange, Promise<string>>>> = {
    whole: new WeakMap(),
    public: new WeakMap(),
    decider: new WeakMap(),
  };
  return async (caller: Caller, changes: readonly ActionChange[]): Promise<string> => {
    const textsFor = ({ action }: ActionChange) => made[callerView(caller, action)];
    const missing = changes.filter((change) => !textsFor(change).has(change));
    const seen = seeAll(
      missing.map(({ action }) => action),
      caller,
    );
    const textAt = async (at: number, change: ActionChange) => {
      const action = (await seen)[at];
      return action === undefined ? "" : eventText(change, serialize(caller, action));
    };
    for (const [at, change] of missing.entries()) textsFor(change).set(change, textAt(at, change));
    return (await Promise.all(changes.flatMap((change) => textsFor(change).get(change) ?? []))).join("");
  };
}

/** Builds an event. Removes line breaks of the JSON, which would end the event's field. */
function eventText({ seq, at, action, isLateResult }: ActionChange, data: string): string {
  const type = isLateResult === true ? "action.late_result" : `action.${action.status}`;
  return `id: ${positionText(seq)}\nevent: ${type}\ndata: ${eventJson(type, at, data).replaceAll(/[\r\n]+/g, " ")}\n\n`;
}

const refuseQuery = queryCheck(NO_QUERY);

/** What our pages get of a change: enough to know whether they show the action, but nothing secret. */
export function pageEvents(_caller: Caller, { id, status }: Action): string {
  return JSON.stringify({ id, status });
}

/**
 * Whose page it is, and the waiting requests for credentials. Pages compare it with the last one, so they miss nothing: a stream
 * that is opened again may be of another session or role. Other nodes' changes come with a heartbeat.
 */
export const pageStateEvent =
  (requests: { pending(caller: Caller): Promise<readonly { readonly id: string }[]> }) =>
  async (caller: Caller): Promise<string> => {
    const credential_requests = (await requests.pending(caller)).map(({ id }) => id);
    const { accountId: account, personId: person, role } = caller;
    const state = { account, person, role, credential_requests };
    return `event: state\ndata: ${JSON.stringify(state)}\n\n`;
  };

/** The stream of `GET /v1/events` for our own pages. The session authenticates it and ends it. */
export function pageEventRoutes(findWatch: FindWatch, ownOrigin: OwnOrigin, stream: StreamEvents) {
  return createRoutes().get("/events", async ({ context }) => {
    ownOrigin.refuseOtherSites(context.request.headers);
    refuseQuery(context.search);
    const watched = await findWatch(context);
    if (watched === null) throw new DomainError("forbidden", "Log in first: these events are for our own pages.");
    return stream(context, watched.caller, watched.release);
  });
}
