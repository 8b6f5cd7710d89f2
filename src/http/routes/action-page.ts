import type { ActionService } from "../../actions/desk.ts";
import type { AuditService } from "../../accounts/audit.ts";
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
import { resendPage } from "../../web/again.tsx";
import { actionPath } from "../../web/list-path.ts";
import { revealedPage } from "../../web/revealed.tsx";
import { type AnswerPerson, personPage } from "../person-page.ts";
import { page, seeOther } from "../page.ts";
import type { Route } from "../route.ts";
import type { FormOf, Person, PersonOf } from "../session.ts";
import { actionIdOf } from "./action-id.ts";

export interface ActionPageRouteDeps extends CreateRules {
  readonly actionService: Pick<
    ActionService,
    "get" | "timeline" | "historyOf" | "approve" | "cancel" | "retry" | "create"
  >;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly pauseOf: PauseOf;
  readonly auditService: Pick<AuditService, "record">;
  readonly receiptPath: (actionId: string) => string;
  readonly clock: Clock;
  readonly baseUrl: string;
}

const PATH = "/actions/{id}";

/** One action for people: everything that happened to it, and what can be done with it. */
export function actionPageRoutes(deps: ActionPageRouteDeps): readonly Route[] {
  const { personOf } = deps;
  return [
    personPage(personOf, "GET", PATH, async (context, person, params) => {
      return page("own", await actionHtml(deps, person, actionIdOf(context, params)));
    }),
    personPage(personOf, "POST", PATH, decide(deps)),
    personPage(personOf, "POST", `${PATH}/reveal`, reveal(deps)),
    personPage(personOf, "GET", `${PATH}/again`, askAgain(deps)),
    personPage(personOf, "POST", `${PATH}/again`, sendAgain(deps)),
  ];
}

async function actionHtml(
  { actionService, clock, baseUrl, receiptPath, pauseOf }: ActionPageRouteDeps,
  person: Person,
  id: string,
  more: Pick<ActionProps, "problem" | "reason"> = {},
): Promise<string> {
  const { caller } = person;
  const [found, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
  const action = await maskOneAhead(found, "decider");
  const history = isHeldIn(found, found.run) ? await actionService.historyOf(found) : null;
  const shared = { user: person, role: caller.role, receiptUrl: receiptPath(id), now: clock.now(), baseUrl };
  return actionPage({ action, timeline, history, pause: maskedPause(pauseOf(found), "decider"), ...shared, ...more });
}

/** What is said on the page itself, with what was typed. */
const MENDABLE: ReadonlySet<ErrorCode> = new Set([
  "validation_error",
  "not_approvable",
  "not_cancellable",
  "not_retryable",
]);

function decide(deps: ActionPageRouteDeps): AnswerPerson {
  return async (context, person, params) => {
    const id = actionIdOf(context, params);
    const form = await deps.formOf(context, person);
    try {
      const { decision, reason } = checkActionForm(form);
      await VERBS[decision](deps.actionService, { person, id, reason, run: Number(form.get("run")) });
    } catch (error) {
      if (!(error instanceof DomainError) || !MENDABLE.has(error.code)) throw error;
      context.errorCode = error.code;
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

type Verb = (actionService: ActionPageRouteDeps["actionService"], said: Said) => Promise<unknown>;

const VERBS: Readonly<Record<ActionDecision, Verb>> = {
  approve: (actionService, { person, id, reason, run }) =>
    actionService.approve(person.caller, id, reason, { run, isHeld: true }),
  reject: (actionService, { person, id, reason, run }) =>
    actionService.cancel(person.caller, id, reason, { run, isHeld: true }),
  cancel: (actionService, { person, id, reason, run }) =>
    actionService.cancel(person.caller, id, reason, { run, isHeld: false }),
  retry: (actionService, { person, id, reason }) => actionService.retry(person.caller, id, reason),
  async retry_and_approve(actionService, { person, id, reason }) {
    const action = await actionService.retry(person.caller, id, reason);
    if (isHeldIn(action, action.run))
      await actionService.approve(person.caller, id, reason, { run: action.run, isHeld: true });
  },
};

/** What is secret is shown to whoever asks for it by a form, on a page that nothing keeps. */
function reveal({ actionService, formOf, auditService }: ActionPageRouteDeps): AnswerPerson {
  return async (context, person, params) => {
    const id = actionIdOf(context, params);
    await formOf(context, person);
    if (!mayReveal(person.caller.role)) throw new DomainError("forbidden", "Your role does not see secrets.");
    const action = await actionService.get(person.caller, id);
    // First: what can't be written down is not shown.
    await auditService.record(person.caller, { kind: "revealed", subject: id, detail: { what: "request" } });
    return page("own", revealedPage({ action, user: person }));
  };
}

async function resendOf({ actionService }: ActionPageRouteDeps, { caller }: Person, id: string) {
  authorize(caller, "create");
  const [action, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
  return { action: await maskOneAhead(action, "decider"), isUnknown: hasUnknown(timeline) };
}

function askAgain(deps: ActionPageRouteDeps): AnswerPerson {
  return async (context, person, params) => {
    const again = await resendOf(deps, person, actionIdOf(context, params));
    return page("own", resendPage({ ...again, user: person }));
  };
}

/** A new action by the same checks as every create; one that may have been received already needs a second yes. */
function sendAgain(deps: ActionPageRouteDeps): AnswerPerson {
  const checkCreate = createCheckCreate(deps);
  return async (context, person, params) => {
    const id = actionIdOf(context, params);
    const form = await deps.formOf(context, person);
    const again = await resendOf(deps, person, id);
    const refuse = (problem: string) => page("own", resendPage({ ...again, user: person, problem }), { status: 400 });
    if (again.isUnknown && form.get("sure") !== "yes") return refuse("Say first that you know: tick the box below.");
    if (again.action.isAltered === true) return refuse("What is stored of it was altered. Create it anew.");
    try {
      const { request } = checkCreate(createInputOf(again.action, person.caller.hold));
      // The rules of whoever wrote it go with it: pressing a button allows no callback that its key may not have.
      const { action } = await deps.actionService.create(person.caller, request, { creator: again.action.creator });
      return seeOther("own", actionPath(action.id));
    } catch (error) {
      if (!(error instanceof DomainError) || error.issues.length === 0) throw error;
      context.errorCode = error.code;
      return refuse(error.issues.map(({ field, message }) => `${field}: ${message}`).join(" "));
    }
  };
}
