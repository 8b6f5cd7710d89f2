import Type, { type Static } from "typebox";
import { type Caller, viewOf } from "../core/roles.ts";
import { FILTERS } from "../api/list-schemas.ts";
import { ActionId } from "../api/action-schemas.ts";
import {
  anyObject,
  dateTime,
  encodeCursor,
  isJsonObject,
  nullable,
  plainText,
  reason,
  run,
  choice,
  yesNo,
  quantity,
  idSchema,
  pageLimit,
  requestObject,
  answerObject,
  closedObject,
} from "../api/schema-helpers.ts";
import { BULK_GROUPS_SHOWN_MAX } from "../core/limits.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { BULK_OPERATIONS, BULK_STATUSES, type BulkJob, type BulkResult } from "../core/bulk-job.ts";

export const bulkIdSchema = idSchema("blk", "Id of a bulk job.", "BulkId");

const Operation = choice(BULK_OPERATIONS, "What is done with each action.", "retry");

const Filter = Type.Object(FILTERS, {
  title: "BulkFilter",
  additionalProperties: false,
  minProperties: 1,
  description:
    "Which actions, by the parameters of GET /v1/actions. Without status and id: retry takes failed ones, cancel those that are pending or awaiting approval.",
  examples: [{ status: ["failed"], host: "api.example.com" }],
});

/** The body of `POST /v1/bulk`. */
export const StartBulkBody = requestObject(
  "StartBulk",
  "An operation on all actions that match a filter.",
  {
    operation: Operation,
    filter: Filter,
    reason: Type.Optional(reason("Why; shown in the timeline of each action.")),
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: "Only tell how many actions match.", examples: [true] }),
    ),
  },
  { examples: [{ operation: "retry", filter: { status: ["failed"], host: "api.example.com" }, dry_run: true }] },
);

export const BulkDryRunJson = answerObject("BulkDryRun", "What a bulk job would do.", {
  matching: quantity("How many actions match.", 17),
  is_more: yesNo("Whether there are more than one job covers.", false),
  unknown_outcomes: quantity("How many of them the target may have carried out already, without having answered.", 17),
  late_results: quantity(
    "How many of them the target has carried out: it answered 2xx, but too late for their status.",
    17,
  ),
  groups: Type.Array(
    Type.Object(
      {
        host: plainText("Where they go.", "api.example.com"),
        response_code: nullable(
          Type.Integer({ description: "What the newest attempt was answered; null: nothing.", examples: [503] }),
        ),
        count: quantity("How many of those that match.", 17),
      },
      { description: "Actions that go to one host, and were answered alike." },
    ),
    {
      description: `Those that match by host and status, the largest group first, at most ${BULK_GROUPS_SHOWN_MAX}.`,
      examples: [[{ host: "api.example.com", response_code: 503, count: 12 }]],
    },
  ),
});

export type BulkDryRunJson = Static<typeof BulkDryRunJson>;

export const BulkJobJson = answerObject("BulkJob", "An operation on many actions, and how far it is.", {
  id: bulkIdSchema,
  operation: Operation,
  filter: anyObject("Which actions it covers: those that matched when it began.", { status: ["failed"] }),
  reason: nullable(plainText("Why; null: none was given.", "The target is up again.")),
  status: choice(
    BULK_STATUSES,
    "running; finished: every action had its turn; stopped: by somebody, or by Outgate.",
    "running",
  ),
  matching: quantity("How many actions it covers.", 17),
  done: quantity("How many it was done with.", 17),
  failed: quantity("How many refused it.", 17),
  created_at: dateTime("When it began."),
  created_by: plainText("Who began it.", "key:ops"),
  finished_at: nullable(dateTime("When it ended; null: it runs.")),
  stopped_by: nullable(
    plainText("Who stopped it; system: whoever began it may not act any more. Null: nobody.", "user:ann@example.com"),
  ),
});

export type BulkJobJson = Static<typeof BulkJobJson>;

/** One schema for both: some generated clients read every success of an operation as the same type. */
export const StartedBulk = Type.Union([BulkJobJson, BulkDryRunJson], {
  title: "StartedBulk",
  description: "The job; or with dry_run what it would do.",
});

const CURSOR_EXAMPLE = "YmxrXzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

export const BulkJobListJson = answerObject("BulkJobList", "One page of the bulk jobs.", {
  data: Type.Array(BulkJobJson, { description: "The jobs, newest first." }),
  next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

const ResultStatus = choice(
  ["waiting", "done", "failed"],
  "Whether it was done with this action; failed: the action refused it.",
  "done",
);

const BulkResultJson = answerObject("BulkResult", "What became of one action of a bulk job.", {
  id: ActionId,
  run: run("The run that the action was in when the job began."),
  status: ResultStatus,
  action_status: nullable(plainText("The status of the action after it was done; null: it was not.", "pending")),
  error: nullable(
    Type.Object(
      {
        code: plainText("Error code of the single operation.", "not_retryable"),
        message: plainText("Why it was refused.", "Action act_1 is completed and cannot be retried."),
      },
      { description: "Null unless it failed." },
    ),
  ),
});

export const BulkResultListJson = answerObject("BulkResultList", "One page of the results of a bulk job.", {
  data: Type.Array(BulkResultJson, { description: "The results, the newest actions first." }),
  next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

/** A page of jobs or of results. */
export const BulkParameters = closedObject({
  limit: Type.Optional(pageLimit("Most entries of a page.")),
  cursor: Type.Optional(plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
});

/** A page of results. */
export const BulkResultParameters = closedObject({ status: Type.Optional(ResultStatus), ...BulkParameters.properties });

/** A job as a caller may see it: filter and reason are texts of whoever began it. */
export function serializeJob(caller: Caller, job: BulkJob): BulkJobJson {
  const view = viewOf(caller, job);
  const masked = (text: string) => (view === "whole" ? text : maskText(text, view));
  const actor = (name: BulkJob["createdBy"]) => (view === "whole" ? name : maskedActor(name, view));
  return {
    id: job.id,
    operation: job.operation,
    filter: jobFilter(job, masked),
    reason: job.reason === null ? null : masked(job.reason),
    status: job.status,
    matching: job.matching,
    done: job.done,
    failed: job.failed,
    created_at: job.createdAt.toISOString(),
    created_by: actor(job.createdBy),
    finished_at: job.finishedAt?.toISOString() ?? null,
    stopped_by: job.stoppedBy === null ? null : actor(job.stoppedBy),
  };
}

/** The filter of a job; empty if its row was altered. */
export function jobFilter({ filter }: BulkJob, masked: (text: string) => string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(filter, (_name, member: unknown) => {
      return typeof member === "string" ? masked(member) : member;
    });
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

export function serializeResult({ id, run: inRun, status, actionStatus, code, message }: BulkResult) {
  return {
    id,
    run: inRun,
    status,
    action_status: actionStatus,
    error: code === null ? null : { code, message: message ?? "" },
  };
}

/** A page as JSON text, from one more than fits. */
export function bulkPageJson(found: readonly { readonly id: string }[], limit: number): string {
  const data = found.slice(0, limit);
  const last = data.at(-1);
  return JSON.stringify({
    data,
    next_cursor: found.length > limit && last !== undefined ? encodeCursor(last.id) : null,
  });
}
