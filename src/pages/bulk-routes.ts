import { mayChange, mayDo } from "../core/roles.ts";
import { FilterQuery } from "../api/list-schemas.ts";
import { DomainError } from "../core/domain-error.ts";
import { checkListQuery, compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import { BULK_OPERATIONS, type BulkOperation } from "../core/bulk-job.ts";
import { BulkParams } from "../bulk/routes.ts";
import type { BulkService } from "../bulk/service.ts";
import { LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { INVALID } from "../http/errors.ts";
import { type Form, readQuery, type RequestContext } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type Person, type PersonRouteDeps } from "../http/session.ts";
import { BULK_ID } from "../core/ids.ts";
import { BULK_PATH, bulkJobPage, bulkListPage, bulkPath, type NewBulkProps, newBulkPage } from "./bulk.tsx";
import { ACTIONS_PATH } from "../ui/layout.tsx";
import { reasonInForm } from "./decision-form.tsx";
import { answerForm, type ById } from "./forms.tsx";

interface BulkPageDeps extends PersonRouteDeps {
  readonly bulkService: BulkService;
}

/** The pages of bulk jobs. */
export function bulkPages({ bulkService, personOf, formOf }: BulkPageDeps) {
  const askHtml = async (
    user: Person,
    operation: BulkOperation,
    query: FilterQuery,
    more: Partial<NewBulkProps> = {},
  ) => {
    const found = await bulkService.dryRun(user.caller, { operation, filter: query, reason: null });
    return newBulkPage({ user, operation, query, found, ...more });
  };
  const begin = answerForm(
    formOf,
    async ({ context, person, form }) => {
      const { operation, filter } = jobIn(context, form);
      const job = await bulkService.start(person.caller, { operation, filter, reason: reasonInForm(form) });
      return bulkPath(job.id);
    },
    ({ context, person }, { problem, values }) => {
      const { operation, filter } = jobIn(context, values);
      return askHtml(person, operation, filter, { problem, reason: values.get("reason") });
    },
    new Set([...INVALID, "too_many_jobs"]),
  );
  const stop = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await bulkService.stop(person.caller, id);
    return bulkPath(id);
  });
  const hooks = { params: BulkParams };
  return createPersonRoutes(personOf)
    .get(BULK_PATH, async ({ context, person }) => {
      const cursor = new URLSearchParams(context.search).get("cursor") ?? undefined;
      const { before } = checkListQuery({}, cursor, BULK_ID);
      const found = await bulkService.list(person.caller, before, LIST_LIMIT_DEFAULT);
      const jobs = found.slice(0, LIST_LIMIT_DEFAULT);
      const last = found.length > LIST_LIMIT_DEFAULT ? jobs.at(-1) : undefined;
      const older = last === undefined ? null : `${BULK_PATH}?cursor=${encodeCursor(last.id)}`;
      return page("own", bulkListPage({ user: person, jobs, older }));
    })
    .post(BULK_PATH, begin)
    .get(`${BULK_PATH}/new`, async ({ context, person }) => {
      const operation = operationIn(new URLSearchParams(context.search).get("operation"));
      const query = filterIn(context.search);
      // Nothing was selected: that must not mean everything.
      if (Object.keys(query).length === 0) return seeOther("own", ACTIONS_PATH);
      return page("own", await askHtml(person, operation, query));
    })
    .get(
      `${BULK_PATH}/:id`,
      async ({ person, params: { id } }) => {
        const { caller } = person;
        const job = await bulkService.find(caller, id);
        const asked = { status: "failed", before: null, limit: FAILURES_SHOWN } as const;
        const failures = job.failed === 0 ? [] : await bulkService.results(caller, id, asked);
        const canStop = mayDo(caller.role, job.operation) && mayChange(caller, job);
        return page("own", bulkJobPage({ user: person, job, failures: failures.slice(0, FAILURES_SHOWN), canStop }));
      },
      hooks,
    )
    .post(`${BULK_PATH}/:id/stop`, stop, hooks);
}

/** Failures on the page of a job; the API has all of them. */
const FAILURES_SHOWN = 50;

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

/** What the form of a job asks for. Throws `validation_error` and `invalid_query`. */
function jobIn({ search }: RequestContext, form: Form) {
  const operation = operationIn(form.get("operation"));
  const filter = filterIn(search);
  if (Object.keys(filter).length > 0) return { operation, filter };
  throw new DomainError("validation_error", "Select actions, or filter the list.");
}
