import type { Decide } from "../core/changes.ts";
import Type, { type Static } from "typebox";
import { type Caller, mayDo, callerView } from "../core/roles.ts";
import { WAIT_SECONDS_DEFAULT, ATTEMPT_BODY_BYTES_MAX, ATTEMPTS_KEPT } from "../core/limits.ts";
import { DecisionFactsJson, maskedFacts } from "../approvals/facts.ts";
import { createStreamEvents, type EventsDeps } from "../events/stream.ts";
import type { RequestContext } from "../http/request.ts";
import { jsonResponse, json } from "../http/response.ts";
import { createApiRoutes, operation, optionalBody, pathParams, uncheckedBody } from "../http/operation.ts";
import { GrantTermsBody } from "../grants/grants.ts";
import { type WaitingDeps, whileWaiting } from "../http/sse.ts";
import { memberText, orderedMemberText } from "../core/json.ts";
import { type ActionSerializer, serializeAttempts, serializeTimeline } from "../receipts/action-json.ts";
import { see, seeAll } from "../receipts/see.ts";
import { type Action, isTerminal } from "../core/action.ts";
import type { ExportActions } from "./export.ts";
import { createCheckCreate, type CreateRules } from "./create-schema.ts";
import { createdIfAway } from "./wait.ts";
import {
  ActionCountsJson,
  ActionPageJson,
  checkFilters,
  checkList,
  EventText,
  ExportParameters,
  FilterParameters,
  ListParameters,
  pageJson,
  serializeCounts,
  TimelineJson,
  TimelineItemJson,
} from "../api/list-schemas.ts";
import {
  ActionJson,
  actionIdSchema,
  CreateActionBody,
  DecisionBody,
  ReadParameters,
  RetryBody,
  WaitParameters,
  responseBody,
  responseCode,
} from "../api/action-schemas.ts";
import type { ActionService } from "./service.ts";
import { dateTime, nullable, plainText, quantity, choice, constant } from "../api/schema-helpers.ts";

const Header = Type.Object(
  {
    name: plainText("Name of the header, in lower case.", "content-type"),
    value: plainText("Its value; •••• where it may be a secret, which is not stored.", "application/json"),
  },
  { title: "ResponseHeader", description: "A header of a target's answer." },
);

const made = TimelineItemJson.properties;

const Attempt = Type.Object(
  {
    run: made.run,
    attempt: Type.Integer({ minimum: 1, description: "Its number in the run.", examples: [1] }),
    at: dateTime("When it ended."),
    outcome: choice(["answered", "not_sent", "unknown"], "What is known of it, as in the timeline.", "answered"),
    response_code: responseCode(503),
    error: nullable(plainText("Why it failed; null: it succeeded.", "The target answered with status 503.")),
    duration_ms: nullable(quantity("How long it took.", 41)),
    location: nullable(
      plainText("Target of a redirect. Redirects are never followed.", "https://api.example.com/moved"),
    ),
    response_headers: Type.Array(Header, {
      description: "The headers of the answer, without values that may be secret.",
    }),
    response_body: responseBody("Service Unavailable"),
    response_truncated: Type.Optional(
      constant(true, `The answer's body was longer than what is kept, ${ATTEMPT_BODY_BYTES_MAX} bytes of it at most.`),
    ),
  },
  { title: "Attempt", description: "An attempt that has ended, and what came back of it." },
);

export const AttemptListJson = Type.Object(
  { data: Type.Array(Attempt, { description: `The newest ${ATTEMPTS_KEPT} attempts, oldest first.` }) },
  { title: "AttemptList", description: "The newest attempts of an action." },
);

/** The action in the path of a route. */
export const ActionParams = pathParams(Type.Object({ id: actionIdSchema }), "There is no such action.");

/** Notes the action's id for the log line, and returns it. */
export function noteActionId(context: RequestContext, { id }: { readonly id: string }): string {
  context.actionId = id;
  return id;
}

interface ActionRouteDeps extends CreateRules, WaitingDeps, EventsDeps {
  readonly serialize: ActionSerializer;
  readonly actionService: ActionService;
  readonly exportActions: ExportActions;
  /** The public URL of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Serializes an action for an event: as it was, without a pause that is in force now. */
  readonly serializeEvent: ActionSerializer;
}

/** /v1/actions and /v1/events. */
export function actionRoutes(deps: ActionRouteDeps) {
  return [mainRoutes(deps), findRoutes(deps), viewRoutes(deps), decisionRoutes(deps)] as const;
}

async function respond({ serialize }: ActionRouteDeps, caller: Caller, action: Action): Promise<Response> {
  return json(serialize(caller, await see(action, caller)));
}

function mainRoutes(deps: ActionRouteDeps) {
  const { actionService, serialize } = deps;
  const checkCreate = createCheckCreate(deps);
  const waitFor = (context: RequestContext, caller: Caller, id: string, seconds: number) =>
    whileWaiting(context, deps, (stop) => actionService.wait(caller, id, { waitMs: seconds * 1_000, stop }));

  return createApiRoutes()
    .post(
      "/v1/actions",
      async ({ context, caller, query, body }) => {
        const { request, ...options } = checkCreate({
          value: body.value,
          bodyText: (member) => (member === "body" ? memberText : orderedMemberText)(body, member),
          idempotencyKey: context.request.headers.get("idempotency-key"),
          isKeyHeader: true,
          role: caller.role,
          now: deps.clock.now(),
          waitSeconds: query.wait,
        });
        const { action, differs } = await actionService.create(caller, request, options);
        const { sync } = options;
        context.actionId = action.id;
        // A rule has held it, so answer: a connection must not wait for a person.
        const isHeld = differs === undefined && action.status === "awaiting_approval";
        const isWaiting = sync && !isHeld && !isTerminal(action.status);
        const seconds = query.wait ?? WAIT_SECONDS_DEFAULT;
        const waited = () => waitFor(context, caller, action.id, seconds).catch(createdIfAway(action));
        const shown = isWaiting ? await waited() : action;
        const seen = await see(shown, caller);
        if (differs !== undefined) return json(serialize(caller, seen, differs));
        return json(serialize(caller, seen), 201, { location: `/v1/actions/${action.id}` });
      },
      operation({
        operationId: "createAction",
        permission: "create",
        tag: "Actions",
        summary: "Create an action",
        description: "Stores the call durably, then sends it.",
        notes: [
          "An earlier action with the same `Idempotency-Key`, or else the same `dedupe`, is returned with 200. For an agent's key it is masked if another key created it, and `differs` compares the masked values.",
          "A key with a hold creates held actions, whatever `approve` says.",
          "With `sync` the response comes when the action has ended, or shows its current state after `wait` seconds.",
          "Where a person has rejected the same request within 24 hours, an agent's key must give a `reason` (else 400), and may repeat it twice (then 403).",
        ],
        query: WaitParameters,
        headers: ["Idempotency-Key"],
        // Checked together with the header, so that an error lists the issues of both.
        body: uncheckedBody(CreateActionBody),
        answers: {
          201: { description: "The new action.", schema: ActionJson, headers: ["Location"] },
          200: {
            description:
              "The earlier action with the same dedupe or Idempotency-Key, with `deduplicated` and `differs`.",
            schema: ActionJson,
          },
        },
        errors: ["missing_field", "invalid_url", "invalid_sync", "too_many_held"],
      }),
    )
    .get(
      "/v1/actions",
      async ({ caller, query }) => {
        const found = await actionService.list(caller, checkList(query));
        const shown = (await seeAll(found.actions, caller)).map((action) => serialize(caller, action));
        return json(pageJson(shown, found));
      },
      operation({
        operationId: "listActions",
        permission: "read",
        tag: "Actions",
        summary: "List actions, newest first",
        description: "Returns a page of the account's actions that match every parameter, newest first.",
        notes: [
          "Only `id`, `status`, `response_code` and `metadata` may be repeated.",
          "For the next page, pass `next_cursor` as `cursor`, with the same parameters. There is no total.",
          "For what no index serves, a page looks at 10,000 actions at most. Where it stops early it has `searched_until`, and `next_cursor` goes on from there, also if `data` is empty.",
        ],
        query: ListParameters,
        answers: { 200: { description: "A page of actions.", schema: ActionPageJson } },
      }),
    )
    .get(
      "/v1/actions/:id",
      async ({ context, caller, query: { wait }, params }) => {
        const id = noteActionId(context, params);
        const action = await actionService.get(caller, id);
        const isOver = wait === undefined || isTerminal(action.status);
        const shown = isOver ? action : await waitFor(context, caller, id, wait);
        return respond(deps, caller, shown);
      },
      operation({
        operationId: "getAction",
        permission: "read",
        tag: "Actions",
        summary: "Get an action, or wait for its end",
        description: "Returns the current state of the action.",
        notes: [
          "With `wait`, the response comes as soon as the action has ended, or after that many seconds.",
          "People see it at `receipt_url`.",
        ],
        params: ActionParams,
        query: ReadParameters,
        answers: { 200: { description: "The action.", schema: ActionJson } },
      }),
    );
}

/** Counts and exports, by the filters of the list. */
function findRoutes({ actionService, exportActions }: ActionRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/actions/counts",
      async ({ caller, query }) =>
        jsonResponse(serializeCounts(await actionService.counts(caller, checkFilters(query)))),
      operation({
        operationId: "countActions",
        permission: "read",
        tag: "Actions",
        summary: "Count actions by status",
        description: "Counts the actions that match every parameter, by status, up to 1,000 each.",
        notes: ["It looks at the newest 10,000 actions at most; `counted_until` says where it stopped."],
        query: FilterParameters,
        answers: { 200: { description: "The counts.", schema: ActionCountsJson } },
      }),
    )
    .get(
      "/v1/actions/export",
      ({ context, caller, query: { format = "ndjson", ...filter } }) =>
        exportActions(context, caller, { format, filter: checkFilters(filter) }),
      operation({
        operationId: "exportActions",
        permission: "read",
        tag: "Actions",
        summary: "Export actions",
        description: "Streams every action that matches, newest first, as far as it existed at the start.",
        notes: [
          "A cell of CSV that a spreadsheet would take for a formula begins with an apostrophe.",
          "An export that breaks off ends without the end of the chunked body.",
          "An account may have 10 open; further ones get 429.",
        ],
        query: ExportParameters,
        answers: {
          200: {
            description: "The actions.",
            schema: Type.String({ description: "Actions as JSON, one a line.", examples: [NDJSON_EXAMPLE] }),
            mediaType: "application/x-ndjson",
            onRequestAs: {
              mediaType: "text/csv",
              schema: Type.String({ description: "Actions as CSV, with a header.", examples: [CSV_EXAMPLE] }),
            },
            headers: ["Cache-Control", "Content-Disposition"],
          },
        },
      }),
    );
}

/** Facts, timeline and attempts of one action, and every change as it happens. */
function viewRoutes(deps: ActionRouteDeps) {
  const { actionService, baseUrl } = deps;
  const streamEvents = createStreamEvents(deps, deps.serializeEvent);
  return createApiRoutes()
    .get(
      "/v1/actions/:id/facts",
      async ({ context, caller, params }) => {
        const action = await actionService.get(caller, noteActionId(context, params));
        const view = callerView(caller, action);
        const viewer = view === "whole" ? "decider" : view;
        const [history, seen] = await Promise.all([actionService.readHistory(action), see(action, viewer)]);
        const digest = mayDo(caller.role, "approve") ? { digest: actionService.actionDigest(action) } : {};
        return jsonResponse({ ...maskedFacts(seen, history, baseUrl), run: action.run, ...digest });
      },
      operation({
        operationId: "getDecisionFacts",
        permission: "read",
        tag: "Actions",
        summary: "Get what a person is shown before deciding on an action",
        description: "Returns the facts and risks that a person sees before a decision, masked and in order.",
        notes: [
          "For programs that ask a person themselves: the approval mail, the pages, MCP clients and the command line show the same.",
        ],
        params: ActionParams,
        answers: { 200: { description: "Facts and risks.", schema: DecisionFactsJson } },
      }),
    )
    .get(
      "/v1/actions/:id/timeline",
      async ({ context, caller, params }) => {
        const id = noteActionId(context, params);
        const [action, entries] = await Promise.all([
          actionService.get(caller, id),
          actionService.timeline(caller, id),
        ]);
        return json(serializeTimeline(caller, action, entries));
      },
      operation({
        operationId: "getTimeline",
        permission: "read",
        tag: "Actions",
        summary: "Get the timeline of an action",
        description: "Returns every change of status, attempt and notification of all runs, oldest first.",
        notes: ["Beyond 2,000 entries the oldest are left out."],
        params: ActionParams,
        answers: { 200: { description: "Its timeline.", schema: TimelineJson } },
      }),
    )
    .get(
      "/v1/actions/:id/attempts",
      async ({ context, caller, params }) => {
        const { action, attempts } = await actionService.history(caller, noteActionId(context, params));
        return json(await serializeAttempts(caller, action, attempts));
      },
      operation({
        operationId: "getAttempts",
        permission: "read",
        tag: "Actions",
        summary: "Get what came back of the newest attempts of an action",
        description: "Returns the newest 5 attempts that have ended, of all runs, oldest first.",
        notes: [
          "Each has the status, headers and body of its own answer. Of a body 16 KiB are kept.",
          "Values of headers that may be secret are never stored.",
        ],
        params: ActionParams,
        answers: { 200: { description: "Its attempts.", schema: AttemptListJson } },
      }),
    )
    .get(
      "/v1/events",
      ({ context, caller }) => streamEvents(context, caller),
      operation({
        operationId: "streamEvents",
        permission: "read",
        tag: "Actions",
        summary: "Stream every change of status as server-sent events",
        description: "Stays open and sends every change of status of the account's actions as it happens.",
        notes: [
          "`Last-Event-ID` continues after an event that was received.",
          "An account may have 100 open streams; further ones get 429.",
        ],
        headers: ["Last-Event-ID"],
        answers: {
          200: {
            description: "The events, until the client disconnects.",
            schema: EventText,
            mediaType: "text/event-stream",
            headers: ["Cache-Control", "X-Accel-Buffering"],
          },
        },
      }),
    );
}

interface DecisionCall {
  readonly context: RequestContext;
  readonly caller: Caller;
  readonly params: { readonly id: string };
  readonly body: Static<typeof ApprovalBody>;
}

/** The optional body of approve. */
export const ApprovalBody = Type.Object(
  { ...DecisionBody.properties, grant: Type.Optional(GrantTermsBody) },
  { title: "Approval", additionalProperties: false, description: "Optional details of an approval." },
);

function decisionRoutes(deps: ActionRouteDeps) {
  const { actionService } = deps;
  const decide = async (verb: Decide, { context, caller, params, body }: DecisionCall) => {
    const { reason = null, run, grant } = body;
    const ofRun = run === undefined ? undefined : { run, isHeld: false };
    return respond(deps, caller, await verb(caller, noteActionId(context, params), reason, ofRun, grant));
  };
  return createApiRoutes()
    .post(
      "/v1/actions/:id/approve",
      ({ context, caller, params, body }) => decide(actionService.approve, { context, caller, params, body }),
      operation({
        operationId: "approveAction",
        permission: "approve",
        tag: "Actions",
        summary: "Approve a held action",
        description: "Approves one run of an action that is `awaiting_approval`, which becomes `pending`.",
        notes: [
          "Of several decisions the first wins; the others get 409.",
          "A request for another run than the current one gets 409 too.",
        ],
        params: ActionParams,
        body: optionalBody(ApprovalBody),
        answers: { 200: { description: "The action, approved.", schema: ActionJson } },
        errors: ["not_approvable"],
      }),
    )
    .post(
      "/v1/actions/:id/cancel",
      ({ context, caller, params, body }) => decide(actionService.cancel, { context, caller, params, body }),
      operation({
        operationId: "cancelAction",
        permission: "cancel",
        tag: "Actions",
        summary: "Cancel an action, or reject it",
        description: "Cancels an action that is `pending`, or rejects one that is `awaiting_approval`.",
        notes: [
          "An action that is `active` or has ended gets 409, and so does a request for another run than the current one.",
          "An agent's key cancels only actions that it created (else 403), unless its scope is `account`.",
        ],
        params: ActionParams,
        body: optionalBody(DecisionBody),
        answers: { 200: { description: "The action, cancelled.", schema: ActionJson } },
        errors: ["not_cancellable"],
      }),
    )
    .post(
      "/v1/actions/:id/send-now",
      ({ context, caller, params, body }) => decide(actionService.sendNow, { context, caller, params, body }),
      operation({
        operationId: "sendActionNow",
        permission: "retry",
        tag: "Actions",
        summary: "Send a waiting action now",
        description: "Makes a `pending` action due now that waits for its `run_at` or for its next attempt.",
        notes: [
          "It ignores a `Retry-After` of the target, and counts as one of the attempts of the run.",
          "An agent's key gets 409 before the `run_at` of an approved action or of one that a budget counts in a later period, and before a `Retry-After` of the target.",
          "Any other action gets 409.",
          "An agent's key brings forward only actions that it created (else 403), unless its scope is `account`.",
        ],
        params: ActionParams,
        body: optionalBody(RetryBody),
        answers: { 200: { description: "The action, due now.", schema: ActionJson } },
        errors: ["not_retryable"],
      }),
    )
    .post(
      "/v1/actions/:id/retry",
      ({ context, caller, params, body }) => decide(actionService.retry, { context, caller, params, body }),
      operation({
        operationId: "retryAction",
        permission: "retry",
        tag: "Actions",
        summary: "Send a failed or cancelled action again",
        description: "Begins a new run of an action that is `failed` or `cancelled`.",
        notes: [
          "Attempts are counted from 0, and the target sees the same `Idempotency-Key`.",
          "If it needed approval, it needs it again.",
          "With `run` it can be repeated after a lost answer: it gets 409 once that run has been sent again.",
          "It gets 409 also where another action has its `dedupe` key by now, and for an agent's key before a `Retry-After` of the target.",
          "An agent's key retries only actions that it created (else 403), unless its scope is `account`.",
          "It counts as a create against the daily limit of the key that calls it (then 403), in a bulk job too.",
          "Where a person has rejected the request within 24 hours, an agent's key must give a `reason` (else 400), and may repeat it twice (then 409).",
        ],
        params: ActionParams,
        body: optionalBody(RetryBody),
        answers: { 200: { description: "The action, pending or awaiting approval again.", schema: ActionJson } },
        errors: ["not_retryable"],
      }),
    );
}

/** Shows only the beginnings of lines, since a whole action is long. */
const NDJSON_EXAMPLE = `{"id":"act_01kjwa5v00e7v8c9x2m4n6p8qr","status":"completed","method":"POST", …}
{"id":"act_01kjwa5tz0b3d5f7h9k1m3p5r7","status":"failed","method":"PUT", …}
`;

const CSV_EXAMPLE = `id,status,title,method,host, …
act_01kjwa5v00e7v8c9x2m4n6p8qr,completed,Refund 12.00 EUR,POST,api.example.com, …
`;
