import type { KeyService } from "../../accounts/keys.ts";
import type { ActionService } from "../../actions/desk.ts";
import { checkReasonField } from "../../contract/decision.ts";
import { cursorOf } from "../../contract/page.ts";
import type { PauseOf } from "../../domain/pause.ts";
import { ACTION_ID } from "../../domain/id.ts";
import { normalHost, normalTarget } from "../../domain/normal-target.ts";
import type { Clock } from "../../ports/clock.ts";
import { actionsPage } from "../../web/actions.tsx";
import { type BulkStepProps, bulkStepPage } from "../../web/bulk-retry.tsx";
import { actionPath, ACTIONS_PATH, listPath } from "../../web/list-path.ts";
import { plainSearch, readFilters, tryFilters, typedIn } from "../filters.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import { type Flash, FlashTooLarge } from "../flash.ts";
import type { Form } from "../form.ts";
import { page, seeOther } from "../page.ts";
import type { Route } from "../route.ts";
import type { FormOf, PersonOf } from "../session.ts";

export interface ActionListRouteDeps {
  readonly actionService: Pick<ActionService, "list" | "countRetryable" | "retryMany">;
  readonly keyService: Pick<KeyService, "list">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly pauseOf: PauseOf;
  readonly flash: Flash;
  readonly clock: Clock;
  readonly baseUrl: string;
}

const NOTHING = { count: 0, isMore: false } as const;

/** The list of actions for people, the search that leads into it, and the retry of all that it shows. */
export function actionListRoutes(deps: ActionListRouteDeps): readonly Route[] {
  const { personOf } = deps;
  return [
    personPage(personOf, "GET", ACTIONS_PATH, list(deps)),
    personPage(personOf, "POST", ACTIONS_PATH, retryNext(deps)),
    personPage(personOf, "GET", STEP_PATH, showStep(deps)),
    personPage(personOf, "GET", "/search", ({ search }) => seeOther("own", foundBy(search))),
  ];
}

function list({ actionService, keyService, clock, baseUrl, pauseOf }: ActionListRouteDeps): AnswerPerson {
  return async ({ search }, person) => {
    const plain = plainSearch(search);
    if (plain !== null) return seeOther("own", plain === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${plain}`);
    const keys = await keyService.list(person.caller);
    const shared = { user: person, typed: typedIn(search), keys, now: clock.now(), baseUrl, pauseOf };
    const filters = tryFilters(search);
    if ("problems" in filters) {
      const empty = { query: {}, actions: [], cursor: null, retryable: NOTHING };
      return page("own", actionsPage({ ...shared, ...empty, problems: filters.problems }), { status: 400 });
    }
    const { query, asked } = filters;
    const [{ actions, before }, retryable] = await Promise.all([
      actionService.list(person.caller, asked),
      actionService.countRetryable(person.caller, { ...asked, before: null }),
    ]);
    const cursor = before === null ? null : cursorOf(before);
    return page("own", actionsPage({ ...shared, query, problems: [], actions, cursor, retryable }));
  };
}

/** One step of a bulk retry; the page that follows has the button of the next: each request is short, whatever there is to do. */
function retryNext({ actionService, formOf, flash }: ActionListRouteDeps): AnswerPerson {
  return async (context, person) => {
    const form = await formOf(context, person);
    const { query, asked } = readFilters(context.search);
    const reason = checkReasonField(form);
    const { retried, held, refused, before, left } = await actionService.retryMany(person.caller, asked, reason);
    const progress = {
      retried: numberIn(form, "retried") + retried,
      held: numberIn(form, "held") + held,
      refused: numberIn(form, "refused") + refused.length,
    };
    const cursor = before === null ? null : cursorOf(before);
    const told: Step = { query, reason: reason ?? "", progress, refused, left, cursor };
    try {
      return flash.redirect(person, STEP_PATH, told);
    } catch (error) {
      if (!(error instanceof FlashTooLarge)) throw error;
      // They are counted all the same, and stand in the list.
      return flash.redirect(person, STEP_PATH, { ...told, refused: [] });
    }
  };
}

/** Where a step is told of, so that loading that again begins nothing again. */
const STEP_PATH = `${ACTIONS_PATH}/retried`;
type Step = Omit<BulkStepProps, "user">;

function showStep({ flash }: ActionListRouteDeps): AnswerPerson {
  return (context, person) => {
    // Safe: told by `retryNext`, at this path alone.
    const told = flash.read(context, person) as Step | null;
    return told === null ? seeOther("own", ACTIONS_PATH) : page("own", bulkStepPage({ user: person, ...told }));
  };
}

/** What the steps before have counted; only the page shows it. */
function numberIn(form: Form, name: string): number {
  const text = form.get(name) ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** An id wherever it stands in what was pasted, or a host, of which a whole URL may have been pasted too. */
function foundBy(search: string): string {
  const text = (new URLSearchParams(search).get("q") ?? "").trim();
  const id = text.split(/[^A-Za-z0-9_-]/).find((word) => ACTION_ID.test(word));
  if (id !== undefined) return actionPath(id);
  if (text === "") return ACTIONS_PATH;
  const url = text.includes("://") ? text : `http://${text}`;
  return listPath({ host: normalHost(text) ?? normalTarget(url)?.host ?? text });
}
