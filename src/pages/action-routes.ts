import type { AuditService } from "../audit/service.ts";
import type { ActionService } from "../actions/service.ts";
import { DECISIONS } from "../core/action.ts";
import { wholeAttempt } from "../core/attempts.ts";
import { choiceInForm, NOT_DECIDED, requestInForm } from "./decision-form.tsx";
import { answerForm, type ById } from "./forms.tsx";
import { asSent, maskedPause } from "../receipts/masked-action.ts";
import { maskedAttempts, see, seeAll } from "../receipts/see.ts";
import { mayDo, viewerOf } from "../core/roles.ts";
import { isHeldIn } from "../core/changes.ts";
import { DomainError, type ErrorCode, type Issue } from "../core/domain-error.ts";
import type { PauseOf } from "../core/pause.ts";
import type { Clock } from "../core/clock.ts";
import { actionPage, type ActionProps, revealedPage } from "./action.tsx";
import { chosenAttempt } from "./attempts.tsx";
import { bodyPage } from "./body-page.tsx";
import { actionPath, ACTIONS_PATH, EXPORT_PATH, listPath } from "../ui/layout.tsx";
import {
  type AnswerPerson,
  createPersonRoutes,
  type Person,
  type AnswerById,
  type PersonRouteDeps,
} from "../http/session.ts";
import { page, seeOther } from "../http/response.ts";
import { readQuery } from "../http/request.ts";
import { ActionParams, actionIdOf } from "../actions/routes.ts";
import { pathOf } from "../core/search.ts";
import { ACTIONS_SHOWN_MAX, SEARCH_CHARS_MAX } from "../core/limits.ts";
import type { ExportActions } from "../actions/export.ts";
import { checkFilters, checkList, ExportQuery, ListQuery } from "../api/list-schemas.ts";
import { compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import { ACTION_ID } from "../core/ids.ts";
import { normalTarget, sentUrl } from "../core/target.ts";
import { seeWhole } from "../receipts/seen-action.ts";
import { forRow } from "./action-row.ts";
import { actionsPage } from "./actions.tsx";

interface ActionPageRouteDeps extends PersonRouteDeps {
  readonly actionService: Pick<
    ActionService,
    "get" | "history" | "historyOf" | "digestOf" | "approve" | "cancel" | "retry" | "sendNow"
  >;
  readonly pauseOf: PauseOf;
  readonly auditService: Pick<AuditService, "record">;
  readonly receiptPath: (actionId: string) => string;
  readonly clock: Clock;
  readonly baseUrl: string;
}

const PATH = "/actions/:id";

/** The page of one action, and the forms on it. */
export function actionPageRoutes(deps: ActionPageRouteDeps) {
  const hooks = { params: ActionParams };
  return createPersonRoutes(deps.personOf)
    .get(
      PATH,
      async ({ context, person, params }) =>
        page("own", await actionHtml(deps, person, actionIdOf(context, params), { search: context.search })),
      hooks,
    )
    .get(`${PATH}/body`, body(deps), hooks)
    .post(PATH, decide(deps), hooks)
    .post(`${PATH}/reveal`, reveal(deps), hooks);
}

interface ActionView extends Pick<ActionProps, "problem" | "reason"> {
  /** Which attempt it shows. */
  readonly search?: string;
}

async function actionHtml(
  { actionService, clock, baseUrl, receiptPath, pauseOf }: ActionPageRouteDeps,
  person: Person,
  id: string,
  { search = "", ...more }: ActionView = {},
): Promise<string> {
  const { caller } = person;
  const { action: found, timeline, attempts } = await actionService.history(caller, id);
  const viewer = viewerOf(caller.role);
  const action = await see(found, viewer);
  const history = isHeldIn(found, found.run) ? await actionService.historyOf(found) : null;
  const asked = chosenAttempt(found, attempts, search);
  const [chosen = null] = asked === null ? [] : await maskedAttempts(found, [wholeAttempt(found, asked)], viewer);
  const shared = { user: person, role: caller.role, receiptUrl: receiptPath(id), now: clock.now(), baseUrl };
  const pause = maskedPause(pauseOf(found), viewer);
  const digest = actionService.digestOf(found);
  return actionPage({ action, timeline, attempts, chosen, history, digest, pause, ...shared, ...more });
}

/** The body by itself: whole, or the end of one of its lists. */
function body({ actionService }: ActionPageRouteDeps): AnswerById {
  return async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    const viewer = viewerOf(person.caller.role);
    const found = await actionService.get(person.caller, id);
    const action = asSent(await see(found, viewer));
    const isHeld = isHeldIn(found, found.run);
    const back = isHeld
      ? { href: `/approvals/${id}`, name: "Back to the decision" }
      : { href: actionPath(id), name: "Back to the action" };
    return page("own", bodyPage({ action, search: context.search, back, user: person }));
  };
}

/** These errors are shown on the page, with the input kept. */
const SHOWN_ON_PAGE: ReadonlySet<ErrorCode> = new Set([...NOT_DECIDED, "not_retryable"]);

/** What the page offers. `retry_and_approve` starts a new run and approves it at once. */
const CHOICES = [...DECISIONS, "cancel", "send_now", "retry", "retry_and_approve"] as const;

function decide(deps: ActionPageRouteDeps): AnswerById {
  const { approve, cancel, retry, sendNow } = deps.actionService;
  return answerForm<ById>(
    deps.formOf,
    async ({ context, person: { caller }, params, form }) => {
      const id = actionIdOf(context, params);
      const { decision, reason } = choiceInForm(form, CHOICES);
      const { run, digest } = requestInForm(form, id);
      const asHeld = { run, isHeld: true, digest };
      const asShown = { run, isHeld: false, digest };
      if (decision === "approve") await approve(caller, id, reason, asHeld);
      else if (decision === "reject") await cancel(caller, id, reason, asHeld);
      else if (decision === "cancel") await cancel(caller, id, reason, asShown);
      else if (decision === "send_now") await sendNow(caller, id, reason, asShown);
      else {
        // In a later run it may have been rejected, or its outcome may be unknown, which the page did not show.
        const action = await retry(caller, id, reason, asShown);
        if (decision === "retry_and_approve" && isHeldIn(action, action.run))
          await approve(caller, id, reason, { ...asHeld, run: action.run });
      }
      return actionPath(id);
    },
    ({ person, params }, { problem, values }) =>
      actionHtml(deps, person, params.id, { problem, reason: values.get("reason") }),
    SHOWN_ON_PAGE,
  );
}

/** Shows secrets in the response to a form, which is not cached and has no address. */
function reveal({ actionService, formOf, auditService }: ActionPageRouteDeps): AnswerById {
  return answerForm<ById>(formOf, async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    if (!mayDo(person.caller.role, "approve")) throw new DomainError("forbidden", "Your role can't view secrets.");
    const action = await actionService.get(person.caller, id);
    // Recorded first, so that nothing is shown without an audit entry.
    await auditService.record(person.caller, { kind: "revealed", subject: id, detail: { what: "request" } });
    const whole = seeWhole({ ...action, url: sentUrl(action.url) });
    return page("own", revealedPage({ action: whole, digest: actionService.digestOf(action), user: person }));
  });
}

interface ActionListRouteDeps extends PersonRouteDeps {
  readonly actionService: Pick<ActionService, "list" | "counts" | "filterValues">;
  readonly exportActions: ExportActions;
  readonly pauseOf: PauseOf;
  readonly clock: Clock;
  readonly baseUrl: string;
}

export function actionListRoutes(deps: ActionListRouteDeps) {
  return createPersonRoutes(deps.personOf)
    .get(ACTIONS_PATH, list(deps))
    .get(EXPORT_PATH, exportList(deps))
    .get("/search", ({ context }) => seeOther("own", searchPath(context.search)));
}

function list({ actionService, clock, baseUrl, pauseOf }: ActionListRouteDeps): AnswerPerson {
  return async ({ context: { search }, person }) => {
    const plain = plainSearch(search);
    if (plain !== null) return seeOther("own", plain === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${plain}`);
    const values = await actionService.filterValues(person.caller);
    const shared = { user: person, typed: typedIn(search), values, now: clock.now(), baseUrl, pauseOf };
    const filters = tryFilters(search);
    if ("problems" in filters) {
      const empty = { query: {}, actions: [], cursor: null, searchedUntil: null, counts: [] };
      return page("own", actionsPage({ ...shared, ...empty, problems: filters.problems }), { status: 400 });
    }
    const { query, asked } = filters;
    const [{ actions, before, searchedUntil }, { counts }] = await Promise.all([
      actionService.list(person.caller, { ...asked, limit: query.limit ?? ACTIONS_SHOWN_MAX }),
      actionService.counts(person.caller, { ...asked, statuses: [] }),
    ]);
    // A whole id is looked for to see that action.
    const named = actions.find(({ id }) => id === query.q);
    if (named !== undefined) return seeOther("own", actionPath(named.id));
    const cursor = before === null ? null : encodeCursor(before);
    const rows = await seeAll(actions.map(forRow), viewerOf(person.role));
    return page("own", actionsPage({ ...shared, query, problems: [], actions: rows, cursor, searchedUntil, counts }));
  };
}

/** Finds an action ID anywhere in the text; otherwise host and path of a URL. Any other text is searched for as it is. */
function searchPath(search: string): string {
  const text = (new URLSearchParams(search).get("q") ?? "").trim();
  const id = text.split(/[^A-Za-z0-9_-]/).find((word) => ACTION_ID.test(word));
  if (id !== undefined) return actionPath(id);
  if (text === "") return ACTIONS_PATH;
  // Only with a scheme: a number alone is a host too, as URLs have it, and a word may be one.
  const target = /^https?:\/\//i.test(text) ? normalTarget(text) : null;
  if (target === null) return listPath({ q: text.slice(0, SEARCH_CHARS_MAX) });
  const [path = ""] = pathOf(text).split(/[?#]/);
  return listPath({ host: target.host, ...(path !== "/" && { path: path.slice(0, SEARCH_CHARS_MAX) }) });
}

const EXPORT = compileQuery(ExportQuery);

function exportList({ exportActions }: ActionListRouteDeps): AnswerPerson {
  return ({ context, person }) => {
    const { format = "ndjson", ...filter } = readQuery(context.search, EXPORT);
    return exportActions(context, person.caller, { format, filter: checkFilters(filter) });
  };
}

const LIST = compileQuery(ListQuery);

/** The filters of a list page: as the API has them, and as the service takes them (`asked`). */
interface Filters {
  readonly query: ListQuery;
  readonly asked: ReturnType<typeof checkList>;
}

/** Reads the parameters of `GET /v1/actions`. Throws `invalid_query`. */
function readFilters(search: string): Filters {
  const query = readQuery(search, LIST);
  return { query, asked: checkList(query) };
}

/** The same, but returns the issues, for a page that shows them beside the filters. */
function tryFilters(search: string): Filters | { readonly problems: readonly Issue[] } {
  try {
    return readFilters(search);
  } catch (error) {
    if (error instanceof DomainError && error.code === "invalid_query") return { problems: error.issues };
    throw error;
  }
}

/** The parameters as a person typed them; some may repeat. */
function typedIn(search: string): ReadonlyMap<string, readonly string[]> {
  const given = Map.groupBy(new URLSearchParams(search), ([name]) => name);
  return new Map([...given].map(([name, pairs]) => [name, pairs.map(([, text]) => text)]));
}

/** Date and time as a browser's form sends them, without a time zone. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/;

/**
 * The query of a form in the API's terms: without empty fields, which forms send too, and with times in UTC. A list has
 * one address that way. Null where nothing has to change.
 */
function plainSearch(search: string): string | null {
  const given = [...new URLSearchParams(search)];
  const plain = given
    .filter(([, text]) => text !== "")
    .map(([name, text]): [string, string] => [name, zoned(name, text)]);
  const isPlain = plain.length === given.length && plain.every(([, text], at) => text === given[at]?.[1]);
  return isPlain ? null : new URLSearchParams(plain).toString();
}

function zoned(name: string, text: string): string {
  const [, seconds] = LOCAL_TIME.exec(name.startsWith("created_") ? text : "") ?? [null, null];
  if (seconds === null) return text;
  return seconds === undefined ? `${text}:00Z` : `${text}Z`;
}
