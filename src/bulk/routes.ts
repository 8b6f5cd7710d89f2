import Type from "typebox";
import { checkListQuery } from "../api/schema-helpers.ts";
import { LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { ACTION_ID, BULK_ID } from "../core/ids.ts";
import { json, jsonOf, noContent } from "../http/response.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import {
  type BulkDryRunJson,
  bulkIdSchema,
  BulkJobJson,
  BulkJobListJson,
  bulkPageJson,
  BulkParameters,
  BulkResultListJson,
  BulkResultParameters,
  serializeJob,
  serializeResult,
  StartBulkBody,
  StartedBulk,
} from "./schemas.ts";
import type { BulkService } from "./service.ts";

export const BulkParams = pathParams(Type.Object({ id: bulkIdSchema }), "There is no such bulk job.");

/** /v1/bulk. */
export function bulkRoutes({ bulkService }: { readonly bulkService: BulkService }) {
  return createApiRoutes()
    .post(
      "/v1/bulk",
      async ({ caller, body: { dry_run: isDry = false, reason = null, ...more } }) => {
        const request = { ...more, reason };
        if (!isDry) return jsonOf(serializeJob(caller, await bulkService.start(caller, request)), 202);
        const { matching, isMore, unknownOutcomes, lateSuccesses, groups } = await bulkService.dryRun(caller, request);
        const dry: BulkDryRunJson = {
          matching,
          is_more: isMore,
          unknown_outcomes: unknownOutcomes,
          late_results: lateSuccesses,
          groups: groups.map(({ host, responseCode, count }) => ({ host, response_code: responseCode, count })),
        };
        return jsonOf(dry);
      },
      START_BULK,
    )
    .get(
      "/v1/bulk",
      async ({ caller, query }) => {
        const limit = query.limit ?? LIST_LIMIT_DEFAULT;
        const { before } = checkListQuery({}, query.cursor, BULK_ID);
        const found = await bulkService.list(caller, before, limit);
        return json(
          bulkPageJson(
            found.map((job) => serializeJob(caller, job)),
            limit,
          ),
        );
      },
      LIST_BULK,
    )
    .get(
      "/v1/bulk/:id",
      async ({ caller, params }) => jsonOf(serializeJob(caller, await bulkService.find(caller, params.id))),
      GET_BULK,
    )
    .delete("/v1/bulk/:id", ({ caller, params }) => noContent(bulkService.stop(caller, params.id)), STOP_BULK)
    .get(
      "/v1/bulk/:id/results",
      async ({ caller, query, params }) => {
        const limit = query.limit ?? LIST_LIMIT_DEFAULT;
        const { before } = checkListQuery({}, query.cursor, ACTION_ID);
        const found = await bulkService.results(caller, params.id, { status: query.status ?? null, before, limit });
        return json(bulkPageJson(found.map(serializeResult), limit));
      },
      LIST_RESULTS,
    );
}

const START_BULK = operation({
  operationId: "startBulk",
  // Of all roles that may retry or cancel; the service checks the operation.
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
    202: { description: "The job, a `BulkJob`.", schema: StartedBulk },
    200: { description: "With `dry_run`: what the job would cover, a `BulkDryRun`.", schema: StartedBulk },
  },
  errors: ["too_many_jobs"],
});

const LIST_BULK = operation({
  operationId: "listBulk",
  permission: "read",
  tag: "Actions",
  summary: "List bulk jobs, newest first",
  description: "Lists the bulk jobs, newest first.",
  notes: ["Jobs are kept for 30 days after their end."],
  query: BulkParameters,
  answers: { 200: { description: "A page of jobs.", schema: BulkJobListJson } },
});

const GET_BULK = operation({
  operationId: "getBulk",
  permission: "read",
  tag: "Actions",
  summary: "Get a bulk job and its progress",
  description: "Returns a bulk job.",
  notes: ["`done` and `failed` count the actions that had their turn."],
  params: BulkParams,
  answers: { 200: { description: "The job.", schema: BulkJobJson } },
});

const LIST_RESULTS = operation({
  operationId: "listBulkResults",
  permission: "read",
  tag: "Actions",
  summary: "List what became of each action of a bulk job",
  description: "Lists what became of each action of the job, the newest actions first.",
  params: BulkParams,
  query: BulkResultParameters,
  answers: { 200: { description: "A page of results.", schema: BulkResultListJson } },
});

const STOP_BULK = operation({
  operationId: "stopBulk",
  permission: "cancel",
  tag: "Actions",
  summary: "Stop a bulk job",
  description: "Begins no further step of the job; what is done stays done.",
  notes: ["The role must allow the job's operation.", "Stopping a job that has ended returns 204 again."],
  params: BulkParams,
  answers: { 204: { description: "The job has ended.", schema: null } },
});
