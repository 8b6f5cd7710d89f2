import Type from "typebox";
import { actionIdSchema } from "../api/action-schemas.ts";
import { FILTERS } from "../api/list-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import { checkListQuery, cutPage } from "../api/cursor.ts";
import { isJsonObject, jsonIn } from "../core/json.ts";
import { toJson } from "../api/serializer.ts";
import { BULK_OPERATIONS, BULK_STATUSES, type BulkJob, type BulkResult } from "../core/bulk-job.ts";
import { ACTION_ID, BULK_ID } from "../core/ids.ts";
import { BULK_ACTIONS_MAX, BULK_GROUPS_SHOWN_MAX, LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { type Caller, callerView } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import type { BulkService } from "./service.ts";

const BulkId = t.idSchema("blk", "Id of a bulk job.", "BulkId");

const Operation = t.choice(BULK_OPERATIONS, "What is done with each action.", "retry");

const Filter = Type.Object(FILTERS, {
  title: "BulkFilter",
  additionalProperties: false,
  minProperties: 1,
  description:
    "Which actions, by the parameters of GET /v1/actions. Without status and id: retry takes failed ones, cancel those that are pending or awaiting approval. No list may be empty.",
  examples: [{ status: ["failed"], host: "api.example.com" }],
});

export const StartBulkBody = t.requestObject(
  "StartBulk",
  "An operation on all actions that match a filter.",
  {
    operation: Operation,
    filter: Filter,
    reason: Type.Optional(t.reason("Why; shown in the timeline of each action.")),
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: "Only tell how many actions match.", examples: [true] }),
    ),
    at_most: Type.Optional(
      t.integer(
        0,
        BULK_ACTIONS_MAX,
        "Refuse the job if more match by now: the `matching` of the dry run that someone saw.",
        17,
      ),
    ),
  },
  { examples: [{ operation: "retry", filter: { status: ["failed"], host: "api.example.com" }, dry_run: true }] },
);

export const BulkDryRunJson = t.answerObject("BulkDryRun", "What a bulk job would do.", {
  matching: t.quantity("How many actions match.", 17),
  is_more: t.yesNo("Whether there are more than one job covers.", false),
  unknown_outcomes: t.quantity(
    "How many of them the target may have carried out already, without having answered.",
    17,
  ),
  late_results: t.quantity(
    "How many of them the target has carried out: it answered 2xx, but too late for their status.",
    17,
  ),
  groups: Type.Array(
    Type.Object(
      {
        host: t.plainText("Where they go.", "api.example.com"),
        response_code: t.nullable(
          Type.Integer({ description: "What the newest attempt was answered; null: nothing.", examples: [503] }),
        ),
        count: t.quantity("How many of those that match.", 17),
      },
      { description: "Actions that go to one host, and were answered alike." },
    ),
    {
      description: `Those that match by host and status, the largest group first, at most ${BULK_GROUPS_SHOWN_MAX}.`,
      examples: [[{ host: "api.example.com", response_code: 503, count: 12 }]],
    },
  ),
});

export const BulkJobJson = t.answerObject("BulkJob", "An operation on many actions, and how far it is.", {
  id: BulkId,
  operation: Operation,
  filter: t.anyObject("Which actions it covers: those that matched when it began.", { status: ["failed"] }),
  reason: t.nullable(t.plainText("Why; null: none was given.", "The target is up again.")),
  status: t.choice(
    BULK_STATUSES,
    "running; finished: every action had its turn; stopped: by someone, or by Outgate.",
    "running",
  ),
  matching: t.quantity("How many actions it covers.", 17),
  done: t.quantity("How many it was done with.", 17),
  failed: t.quantity("How many refused it.", 17),
  created_at: t.dateTime("When it began."),
  created_by: t.plainText("Who began it.", "key:ops"),
  finished_at: t.nullable(t.dateTime("When it ended; null: it runs.")),
  stopped_by: t.nullable(
    t.plainText("Who stopped it; system: whoever started it lost the right to. Null: no one.", "user:ann@example.com"),
  ),
});

/** One schema for both results, since some generated clients have one type for all successes of an operation. */
const StartedBulk = Type.Union([BulkJobJson, BulkDryRunJson], {
  title: "StartedBulk",
  description: "The job; or with dry_run what it would do.",
});

const CURSOR_EXAMPLE = "YmxrXzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

export const BulkJobListJson = t.answerObject("BulkJobList", "One page of the bulk jobs.", {
  data: Type.Array(BulkJobJson, { description: "The jobs, newest first." }),
  next_cursor: t.nullable(t.plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

const ResultStatus = t.choice(
  ["waiting", "done", "failed"],
  "Whether it was done with this action; failed: the action refused it.",
  "done",
);

const BulkResultJson = t.answerObject("BulkResult", "What became of one action of a bulk job.", {
  id: actionIdSchema,
  run: t.run("The run that the action was in when the job began."),
  status: ResultStatus,
  action_status: t.nullable(t.plainText("The status of the action after it was done; null: it was not.", "pending")),
  error: t.nullable(
    Type.Object(
      {
        code: t.plainText("Error code of the single operation.", "not_retryable"),
        message: t.plainText("Why it was refused.", "Action act_1 is completed and cannot be retried."),
      },
      { description: "Null unless it failed." },
    ),
  ),
});

export const BulkParameters = t.closedObject(t.pageParameters(CURSOR_EXAMPLE));

export const BulkResultParameters = t.closedObject({
  status: Type.Optional(ResultStatus),
  ...t.pageParameters(CURSOR_EXAMPLE),
});

export const BulkResultListJson = t.answerObject("BulkResultList", "One page of the results of a bulk job.", {
  data: Type.Array(BulkResultJson, { description: "The results, the newest actions first." }),
  next_cursor: t.nullable(t.plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

/** A job as a caller may see it: another key's filter and reason are masked. */
function serializeJob(caller: Caller, job: BulkJob) {
  const view = callerView(caller, job);
  if (view === "whole") return toJson(BulkJobJson, { ...job, filter: jobFilter(job, (text) => text) });
  const masked = (text: string) => maskText(text, view);
  return toJson(BulkJobJson, {
    ...job,
    filter: jobFilter(job, masked),
    reason: job.reason === null ? null : masked(job.reason),
    createdBy: maskedActor(job.createdBy, view),
    stoppedBy: job.stoppedBy === null ? null : maskedActor(job.stoppedBy, view),
  });
}

/** The filter of a job, or an empty one if its row was altered. */
export function jobFilter({ filter }: BulkJob, masked: (text: string) => string): Readonly<Record<string, unknown>> {
  const value = jsonIn(filter, (_name, member) => (typeof member === "string" ? masked(member) : member));
  return isJsonObject(value) ? value : {};
}

const serializeResult = ({ code, message, ...result }: BulkResult) =>
  toJson(BulkResultJson, { ...result, error: code === null ? null : { code, message: message ?? "" } });

export const BulkParams = pathParams(Type.Object({ id: BulkId }), "There is no such bulk job.");

export function bulkRoutes({ bulkService }: { readonly bulkService: BulkService }) {
  return createApiRoutes()
    .post(
      "/v1/bulk",
      async ({ caller, body: { dry_run: isDry = false, at_most: atMost, reason = null, ...more } }) => {
        const request = { ...more, reason };
        if (!isDry) return jsonResponse(serializeJob(caller, await bulkService.start(caller, request, atMost)), 202);
        const { lateSuccesses: lateResults, ...found } = await bulkService.dryRun(caller, request);
        return jsonResponse(toJson(BulkDryRunJson, { ...found, lateResults }));
      },
      operation({
        operationId: "startBulk",
        // Allows either operation; the service checks the right one.
        permission: "cancel",
        tag: "Actions",
        summary: "Retry or cancel all actions that match a filter",
        description: "Begins a job on the actions that match now, 10,000 at most, and returns at once.",
        notes: [
          "With `dry_run` it only tells how many match.",
          "The role must allow the operation. Each action is handled under the rules of the single operation.",
          "An agent's key covers only actions that it created, unless its scope is `account`.",
          "An account may have 10 jobs running.",
        ],
        body: jsonBody(StartBulkBody),
        answers: {
          202: { description: "The job, a `BulkJob`.", schema: StartedBulk, only: BulkJobJson },
          200: {
            description: "With `dry_run`: what the job would cover, a `BulkDryRun`.",
            schema: StartedBulk,
            only: BulkDryRunJson,
          },
        },
        errors: ["too_many_jobs"],
      }),
    )
    .get(
      "/v1/bulk",
      async ({ caller, query }) => {
        const limit = query.limit ?? LIST_LIMIT_DEFAULT;
        const { before } = checkListQuery({}, query.cursor, BULK_ID);
        const found = await bulkService.list(caller, before, limit);
        const jobs = found.map((job) => serializeJob(caller, job));
        return jsonResponse(cutPage(jobs, limit));
      },
      operation({
        operationId: "listBulk",
        permission: "read",
        tag: "Actions",
        summary: "List bulk jobs, newest first",
        description: "Jobs are kept for 30 days after their end.",
        query: BulkParameters,
        answers: { 200: { description: "A page of jobs.", schema: BulkJobListJson } },
      }),
    )
    .get(
      "/v1/bulk/:id",
      async ({ caller, params }) => jsonResponse(serializeJob(caller, await bulkService.find(caller, params.id))),
      operation({
        operationId: "getBulk",
        permission: "read",
        tag: "Actions",
        summary: "Get a bulk job and its progress",
        description: "`done` and `failed` count the actions that had their turn.",
        params: BulkParams,
        answers: { 200: { description: "The job.", schema: BulkJobJson } },
      }),
    )
    .delete(
      "/v1/bulk/:id",
      ({ caller, params }) => noContent(bulkService.stop(caller, params.id)),
      operation({
        operationId: "stopBulk",
        permission: "cancel",
        tag: "Actions",
        summary: "Stop a bulk job",
        description: "Begins no further step of the job; what is done stays done.",
        notes: ["The role must allow the job's operation.", "Stopping a job that has ended returns 204 again."],
        params: BulkParams,
        answers: { 204: { description: "The job has ended.", schema: null } },
      }),
    )
    .get(
      "/v1/bulk/:id/results",
      async ({ caller, query, params }) => {
        const limit = query.limit ?? LIST_LIMIT_DEFAULT;
        const { before } = checkListQuery({}, query.cursor, ACTION_ID);
        const found = await bulkService.results(caller, params.id, { status: query.status ?? null, before, limit });
        return jsonResponse(cutPage(found.map(serializeResult), limit));
      },
      operation({
        operationId: "listBulkResults",
        permission: "read",
        tag: "Actions",
        summary: "List what became of each action of a bulk job",
        description: "Lists what became of each action of the job, the newest actions first.",
        params: BulkParams,
        query: BulkResultParameters,
        answers: { 200: { description: "A page of results.", schema: BulkResultListJson } },
      }),
    );
}
