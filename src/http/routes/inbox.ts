import type { ActionService } from "../../actions/desk.ts";
import { checkDecisionForm } from "../../contract/decision.ts";
import type { Action } from "../../domain/action.ts";
import type { Caller } from "../../domain/caller.ts";
import { isHeldIn } from "../../domain/change.ts";
import { DomainError } from "../../domain/errors.ts";
import { ACTION_ID, KEY_ID } from "../../domain/id.ts";
import { maskAhead, maskOneAhead } from "../../masking/ahead.ts";
import type { Clock } from "../../ports/clock.ts";
import { heldPage, type HeldProps } from "../../web/held.tsx";
import { type InboxOutcome, inboxPage, NO_KEY } from "../../web/inbox.tsx";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Form } from "../form.ts";
import { HOME_PATH } from "../next.ts";
import { page, seeOther } from "../page.ts";
import { pageRoute, type Route } from "../route.ts";
import type { FormOf, Person, PersonOf } from "../session.ts";
import { actionIdOf } from "./action-id.ts";

export interface InboxRouteDeps {
  readonly actionService: Pick<ActionService, "held" | "historyOf" | "get" | "timeline" | "approve" | "cancel">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly receiptPath: (actionId: string) => string;
  readonly clock: Clock;
}

/** What waits for a person, and the decision on it; it works without a mail provider and without script (decisions 7). */
export function inboxRoutes(deps: InboxRouteDeps): readonly Route[] {
  const { actionService, personOf, receiptPath, clock } = deps;

  const list: AnswerPerson = async ({ search }, person) => {
    const query = new URLSearchParams(search);
    const by = requesterIn(query);
    const [waiting, outcome] = await Promise.all([
      actionService.held(person.caller, placeIn(query), by ?? undefined),
      outcomeOf(deps, person.caller, idIn(query, "decided")),
    ]);
    const actions = await maskAhead(waiting.actions, "decider");
    return page("own", inboxPage({ ...waiting, actions, by, user: person, outcome, now: clock.now() }));
  };
  const one: AnswerPerson = async (context, person, params) => {
    const id = actionIdOf(context, params);
    const action = await actionService.get(person.caller, id);
    if (!isHeldIn(action, action.run)) return seeOther("own", receiptPath(id));
    return page("own", await heldHtml(deps, person, action));
  };
  return [
    pageRoute("own", "GET", "/", async (context) => {
      return seeOther("own", (await personOf(context)) === null ? "/login" : HOME_PATH);
    }),
    personPage(personOf, "GET", "/approvals", list),
    personPage(personOf, "GET", "/approvals/{id}", one),
    personPage(personOf, "POST", "/approvals/{id}", decideHere(deps)),
  ];
}

/** Decides on the run that the page showed, and tells on the list what came of it, whoever was first. */
function decideHere(deps: InboxRouteDeps): AnswerPerson {
  const { actionService, formOf } = deps;
  return async (context, person, params) => {
    const id = actionIdOf(context, params);
    const form = await formOf(context, person);
    try {
      const { decision, reason } = checkDecisionForm(form);
      const verb = decision === "approve" ? actionService.approve : actionService.cancel;
      await verb(person.caller, id, reason, { run: Number(form.get("run")), isHeld: true });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === "validation_error") return askAgain(deps, { person, id, form, error });
      if (error.code !== "not_approvable" && error.code !== "not_cancellable") throw error;
    }
    return seeOther("own", `/approvals?decided=${id}`);
  };
}

interface Refused {
  readonly person: Person;
  readonly id: string;
  readonly form: Form;
  readonly error: DomainError;
}

/** What was typed is not lost over a reason that is too long. */
async function askAgain(deps: InboxRouteDeps, { person, id, form, error }: Refused): Promise<Response> {
  const action = await deps.actionService.get(person.caller, id);
  const problem = error.issues.map(({ message }) => message).join(" ");
  const html = await heldHtml(deps, person, action, { problem, reason: form.get("reason") ?? "" });
  return page("own", html, { status: 400 });
}

async function heldHtml(
  { actionService }: InboxRouteDeps,
  user: Person,
  action: Action,
  more: Pick<HeldProps, "problem" | "reason"> = {},
): Promise<string> {
  const [history, ready] = await Promise.all([actionService.historyOf(action), maskOneAhead(action, "decider")]);
  return heldPage({ action: ready, user, history, ...more });
}

async function outcomeOf(
  { actionService, receiptPath }: InboxRouteDeps,
  caller: Caller,
  id: string | null,
): Promise<InboxOutcome | null> {
  if (id === null) return null;
  try {
    const [action, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
    return { action, timeline, receiptUrl: receiptPath(id) };
  } catch (error) {
    // Somebody wrote the path by hand, or the action is gone: there is nothing to tell.
    if (error instanceof DomainError && error.code === "not_found") return null;
    throw error;
  }
}

/** Where a page before has ended: an action, and the turn of its key where several ask. */
function placeIn(query: URLSearchParams): string | null {
  const after = query.get("after") ?? "";
  return ACTION_ID.test(after.replace(/^\d{1,9}\./, "")) ? after : null;
}

/** The key whose requests are looked at; null: everybody's. */
function requesterIn(query: URLSearchParams): string | null {
  const by = query.get("by");
  if (by === NO_KEY) return "";
  return by !== null && KEY_ID.test(by) ? by : null;
}

function idIn(query: URLSearchParams, name: string): string | null {
  const id = query.get(name) ?? "";
  return ACTION_ID.test(id) ? id : null;
}
