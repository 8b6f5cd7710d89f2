import type { ActionDesk } from "../../actions/desk.ts";
import type { AuditDesk } from "../../accounts/audit.ts";
import { createInputOf } from "../../contract/again.ts";
import { createCheckCreate, type CreateRules } from "../../contract/create.ts";
import { type ActionDecision, checkActionForm } from "../../contract/decision.ts";
import { HTTP_STATUS } from "../../contract/error.ts";
import { maskedPause } from "../../contract/masked.ts";
import { authorize } from "../../domain/caller.ts";
import { isHeldIn } from "../../domain/change.ts";
import { DomainError, type ErrorCode } from "../../domain/errors.ts";
import type { PauseOf } from "../../domain/pause.ts";
import { mayReveal } from "../../domain/roles.ts";
import { maskOneAhead } from "../../masking/ahead.ts";
import type { Clock } from "../../ports/clock.ts";
import { actionPage, type ActionProps, hasUnknown } from "../../web/action.tsx";
import { againPage } from "../../web/again.tsx";
import { actionPath } from "../../web/list-path.ts";
import { revealedPage } from "../../web/revealed.tsx";
import { type AnswerPerson, personPage } from "../person-page.ts";
import { page, seeOther } from "../page.ts";
import type { Route } from "../route.ts";
import type { FormOf, Person, PersonOf } from "../session.ts";
import { actionIdOf } from "./action-id.ts";

export interface ActionPageRouteDeps extends CreateRules {
  readonly desk: Pick<ActionDesk, "get" | "timeline" | "contextOf" | "approve" | "cancel" | "retry" | "create">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly pauseOf: PauseOf;
  readonly auditDesk: Pick<AuditDesk, "record">;
  readonly receiptPath: (actionId: string) => string;
  readonly clock: Clock;
  readonly baseUrl: string;
}

const PATH = "/actions/{id}";

/** One action for people: everything that happened to it, and what can be done with it. */
export function actionPageRoutes(deps: ActionPageRouteDeps): readonly Route[] {
  const { personOf } = deps;
  return [
    personPage(personOf, "GET", PATH, async (visit, person, params) => {
      return page("own", await actionHtml(deps, person, actionIdOf(visit, params)));
    }),
    personPage(personOf, "POST", PATH, decide(deps)),
    personPage(personOf, "POST", `${PATH}/reveal`, reveal(deps)),
    personPage(personOf, "GET", `${PATH}/again`, askAgain(deps)),
    personPage(personOf, "POST", `${PATH}/again`, sendAgain(deps)),
  ];
}

async function actionHtml(
  { desk, clock, baseUrl, receiptPath, pauseOf }: ActionPageRouteDeps,
  person: Person,
  id: string,
  more: Pick<ActionProps, "problem" | "reason"> = {},
): Promise<string> {
  const { caller } = person;
  const [found, timeline] = await Promise.all([desk.get(caller, id), desk.timeline(caller, id)]);
  const action = await maskOneAhead(found, "decider");
  const context = isHeldIn(found, found.run) ? await desk.contextOf(found) : null;
  const shared = { visitor: person, role: caller.role, receiptUrl: receiptPath(id), now: clock.now(), baseUrl };
  return actionPage({ action, timeline, context, pause: maskedPause(pauseOf(found), "decider"), ...shared, ...more });
}

/** What is said on the page itself, with what was typed. */
const MENDABLE: ReadonlySet<ErrorCode> = new Set([
  "validation_error",
  "not_approvable",
  "not_cancellable",
  "not_retryable",
]);

function decide(deps: ActionPageRouteDeps): AnswerPerson {
  return async (visit, person, params) => {
    const id = actionIdOf(visit, params);
    const form = await deps.formOf(visit, person);
    try {
      const { decision, reason } = checkActionForm(form);
      await VERBS[decision](deps.desk, { person, id, reason, run: Number(form.get("run")) });
    } catch (error) {
      if (!(error instanceof DomainError) || !MENDABLE.has(error.code)) throw error;
      visit.errorCode = error.code;
      const problem = error.issues.map(({ message }) => message).join(" ") || error.message;
      const html = await actionHtml(deps, person, id, { problem, reason: form.get("reason") ?? "" });
      return page("own", html, { status: HTTP_STATUS[error.code] });
    }
    return seeOther("own", actionPath(id));
  };
}

interface Said {
  readonly person: Person;
  readonly id: string;
  readonly reason: string | null;
  /** The run that the page showed. */
  readonly run: number;
}

type Verb = (desk: ActionPageRouteDeps["desk"], said: Said) => Promise<unknown>;

const VERBS: Readonly<Record<ActionDecision, Verb>> = {
  approve: (desk, { person, id, reason, run }) => desk.approve(person.caller, id, reason, { run, isHeld: true }),
  reject: (desk, { person, id, reason, run }) => desk.cancel(person.caller, id, reason, { run, isHeld: true }),
  cancel: (desk, { person, id, reason, run }) => desk.cancel(person.caller, id, reason, { run, isHeld: false }),
  retry: (desk, { person, id, reason }) => desk.retry(person.caller, id, reason),
  async retry_and_approve(desk, { person, id, reason }) {
    const action = await desk.retry(person.caller, id, reason);
    if (isHeldIn(action, action.run)) await desk.approve(person.caller, id, reason, { run: action.run, isHeld: true });
  },
};

/** What is secret is shown to whoever asks for it by a form, on a page that nothing keeps. */
function reveal({ desk, formOf, auditDesk }: ActionPageRouteDeps): AnswerPerson {
  return async (visit, person, params) => {
    const id = actionIdOf(visit, params);
    await formOf(visit, person);
    if (!mayReveal(person.caller.role)) throw new DomainError("forbidden", "Your role does not see secrets.");
    const action = await desk.get(person.caller, id);
    // First: what can't be written down is not shown.
    await auditDesk.record(person.caller, { kind: "revealed", subject: id, detail: { what: "request" } });
    return page("own", revealedPage({ action, visitor: person }));
  };
}

async function againOf({ desk }: ActionPageRouteDeps, { caller }: Person, id: string) {
  authorize(caller, "create");
  const [action, timeline] = await Promise.all([desk.get(caller, id), desk.timeline(caller, id)]);
  return { action: await maskOneAhead(action, "decider"), isUnknown: hasUnknown(timeline) };
}

function askAgain(deps: ActionPageRouteDeps): AnswerPerson {
  return async (visit, person, params) => {
    const again = await againOf(deps, person, actionIdOf(visit, params));
    return page("own", againPage({ ...again, visitor: person }));
  };
}

/** A new action by the same checks as every create; one that may have been received already needs a second yes. */
function sendAgain(deps: ActionPageRouteDeps): AnswerPerson {
  const checkCreate = createCheckCreate(deps);
  return async (visit, person, params) => {
    const id = actionIdOf(visit, params);
    const form = await deps.formOf(visit, person);
    const again = await againOf(deps, person, id);
    const refuse = (problem: string) => page("own", againPage({ ...again, visitor: person, problem }), { status: 400 });
    if (again.isUnknown && form.get("sure") !== "yes") return refuse("Say first that you know: tick the box below.");
    if (again.action.isAltered === true) return refuse("What is stored of it was altered. Create it anew.");
    try {
      const { request } = checkCreate(createInputOf(again.action, person.caller.hold));
      // The rules of whoever wrote it go with it: pressing a button allows no callback that its key may not have.
      const { action } = await deps.desk.create(person.caller, request, { creator: again.action.creator });
      return seeOther("own", actionPath(action.id));
    } catch (error) {
      if (!(error instanceof DomainError) || error.issues.length === 0) throw error;
      visit.errorCode = error.code;
      return refuse(error.issues.map(({ field, message }) => `${field}: ${message}`).join(" "));
    }
  };
}
