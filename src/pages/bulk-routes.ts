import { type Caller, mayChange, mayDo } from "../core/roles.ts";
import { FilterQuery } from "../api/list-schemas.ts";
import { DomainError } from "../core/domain-error.ts";
import { checkListQuery, compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import { BULK_OPERATIONS, type BulkJob, type BulkOperation } from "../core/bulk-job.ts";
import { BulkParams } from "../bulk/routes.ts";
import type { BulkService } from "../bulk/service.ts";
import { LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { showFormAgain } from "../http/errors.ts";
import { readQuery } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { type AnswerById, type AnswerPerson, createPersonRoutes, type PersonRouteDeps } from "../http/session.ts";
import { BULK_ID } from "../core/ids.ts";
import { BULK_PATH, bulkJobPage, bulkListPage, bulkPath, newBulkPage } from "./bulk.tsx";
import { ACTIONS_PATH } from "../ui/layout.tsx";
import { reasonInForm } from "./decision-form.tsx";

interface BulkPageDeps extends PersonRouteDeps {
  readonly bulkService: BulkService;
}

/** The pages of bulk jobs. */
export function bulkPages(deps: BulkPageDeps) {
  const hooks = { params: BulkParams };
  return createPersonRoutes(deps.personOf)
    .get(BULK_PATH, list(deps))
    .post(BULK_PATH, begin(deps))
    .get(`${BULK_PATH}/new`, ask(deps))
    .get(`${BULK_PATH}/:id`, one(deps), hooks)
    .post(`${BULK_PATH}/:id/stop`, stop(deps), hooks);
}

function list({ bulkService }: BulkPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    const cursor = new URLSearchParams(context.search).get("cursor") ?? undefined;
    const { before } = checkListQuery({}, cursor, BULK_ID);
    const found = await bulkService.list(person.caller, before, LIST_LIMIT_DEFAULT);
    const jobs = found.slice(0, LIST_LIMIT_DEFAULT);
    const last = found.length > LIST_LIMIT_DEFAULT ? jobs.at(-1) : undefined;
    const older = last === undefined ? null : `${BULK_PATH}?cursor=${encodeCursor(last.id)}`;
    return page("own", bulkListPage({ user: person, jobs, older }));
  };
}

const FILTER = compileQuery(FilterQuery);

/** The filter in a query; throws `invalid_query`. */
function filterIn(search: string): FilterQuery {
  const query = new URLSearchParams(search);
  query.delete("operation");
  return readQuery(query.toString(), FILTER);
}

function operationIn(text: string | null | undefined): BulkOperation {
  const operation = BULK_OPERATIONS.find((known) => known === text);
  if (operation !== undefined) return operation;
  throw new DomainError("validation_error", "Choose what to do.", [
    { field: "operation", message: `Must be one of ${BULK_OPERATIONS.join(", ")}.` },
  ]);
}

function ask({ bulkService }: BulkPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    const operation = operationIn(new URLSearchParams(context.search).get("operation"));
    const query = filterIn(context.search);
    // Nothing was selected: that must not mean everything.
    if (Object.keys(query).length === 0) return seeOther("own", ACTIONS_PATH);
    const found = await bulkService.dryRun(person.caller, { operation, filter: query, reason: null });
    return page("own", newBulkPage({ user: person, operation, query, found }));
  };
}

function begin({ bulkService, formOf }: BulkPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    const form = await formOf(context, person);
    const operation = operationIn(form.get("operation"));
    const query = filterIn(context.search);
    if (Object.keys(query).length === 0)
      throw new DomainError("validation_error", "Select actions, or filter the list.");
    try {
      const request = { operation, filter: query, reason: reasonInForm(form) };
      const job = await bulkService.start(person.caller, request);
      return seeOther("own", bulkPath(job.id));
    } catch (error) {
      return showFormAgain(context, error, new Set(["validation_error", "too_many_jobs"]), async (problem) => {
        const found = await bulkService.dryRun(person.caller, { operation, filter: query, reason: null });
        const reason = form.get("reason") ?? "";
        return newBulkPage({ user: person, operation, query, found, problem, reason });
      });
    }
  };
}

/** Failures on the page of a job; the API has all of them. */
const FAILURES_SHOWN = 50;

function one({ bulkService }: BulkPageDeps): AnswerById {
  return async ({ person, params }) => {
    const job = await bulkService.find(person.caller, params.id);
    const asked = { status: "failed", before: null, limit: FAILURES_SHOWN } as const;
    const failures = job.failed === 0 ? [] : await bulkService.results(person.caller, params.id, asked);
    const shown = failures.slice(0, FAILURES_SHOWN);
    return page("own", bulkJobPage({ user: person, job, failures: shown, canStop: mayStop(person.caller, job) }));
  };
}

function mayStop(caller: Caller, job: BulkJob): boolean {
  return mayDo(caller.role, job.operation) && mayChange(caller, job);
}

function stop({ bulkService, formOf }: BulkPageDeps): AnswerById {
  return async ({ context, person, params }) => {
    await formOf(context, person);
    await bulkService.stop(person.caller, params.id);
    return seeOther("own", bulkPath(params.id));
  };
}
