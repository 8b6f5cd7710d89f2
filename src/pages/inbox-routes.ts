import type { ActionService } from "../actions/service.ts";
import { checkDecisionForm } from "./decision-form.ts";
import type { Action } from "../actions/action.ts";
import { type Caller, mayDo, viewerOf } from "../accounts/roles.ts";
import { actionPath } from "./layout.tsx";
import { isHeldIn } from "../actions/changes.ts";
import { isAlreadyDecided } from "../approvals/decide.ts";
import { DomainError } from "../api/domain-error.ts";
import { ACTION_ID, KEY_ID } from "../runtime/ids.ts";
import { premaskAll, premask } from "../receipts/masked-action.ts";
import type { Clock } from "../runtime/clock.ts";
import { heldPage, type HeldProps } from "./decide.tsx";
import { type InboxOutcome, inboxPage, NO_KEY } from "./inbox.tsx";
import {
  type AnswerPerson,
  createPersonRoutes,
  type Person,
  HOME_PATH,
  type AnswerById,
  type PersonRouteDeps,
} from "../http/session.ts";
import { page, seeOther } from "../http/response.ts";
import { INVALID, pathNotFound, showFormAgain } from "../http/errors.ts";
import { createPageRoutes } from "../http/operation.ts";
import { ActionParams, actionIdOf } from "../actions/routes.ts";

export interface InboxRouteDeps extends PersonRouteDeps {
  readonly actionService: Pick<ActionService, "held" | "historyOf" | "get" | "timeline" | "approve" | "cancel">;
  readonly receiptPath: (actionId: string) => string;
  readonly clock: Clock;
}

/** The inbox: held requests and the decisions on them. */
export function inboxRoutes(deps: InboxRouteDeps) {
  const { actionService, personOf, receiptPath, clock } = deps;

  const list: AnswerPerson = async ({ context: { search }, person }) => {
    const query = new URLSearchParams(search);
    const by = requesterIn(query);
    const [waiting, outcome] = await Promise.all([
      actionService.held(person.caller, placeIn(query), { keyId: by, host: null, before: null }),
      outcomeOf(deps, person.caller, idIn(query, "decided")),
    ]);
    const actions = await premaskAll(waiting.actions, viewerOf(person.role));
    return page("own", inboxPage({ ...waiting, actions, by, user: person, outcome, now: clock.now() }));
  };
  const one: AnswerById = async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    const action = await actionService.get(person.caller, id);
    if (!isHeldIn(action, action.run)) return seeOther("own", receiptPath(id));
    if (!mayDo(person.role, "approve")) return seeOther("own", actionPath(id));
    return page("own", await heldHtml(deps, person, action));
  };
  const hooks = { params: ActionParams };
  return createPageRoutes("own")
    .get("/", async ({ context }) => {
      // Elysia takes // for /.
      if (context.path !== "/") throw pathNotFound();
      return seeOther("own", (await personOf(context)) === null ? "/login" : HOME_PATH);
    })
    .use(
      createPersonRoutes(personOf)
        .get("/approvals", list)
        .get("/approvals/:id", one, hooks)
        .post("/approvals/:id", decideHere(deps), hooks),
    );
}

/** Decides on the run that the page showed. The list then shows the result, even if somebody else was first. */
function decideHere(deps: InboxRouteDeps): AnswerById {
  const { actionService, formOf } = deps;
  return async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    const form = await formOf(context, person);
    try {
      const { decision, reason } = checkDecisionForm(form);
      const verb = decision === "approve" ? actionService.approve : actionService.cancel;
      await verb(person.caller, id, reason, { run: Number(form.get("run")), isHeld: true });
    } catch (error) {
      if (!isAlreadyDecided(error)) {
        return showFormAgain(context, error, INVALID, async (problem) => {
          const action = await actionService.get(person.caller, id);
          return heldHtml(deps, person, action, { problem, reason: form.get("reason") ?? "" });
        });
      }
    }
    return seeOther("own", `/approvals?decided=${id}`);
  };
}

async function heldHtml(
  { actionService }: InboxRouteDeps,
  user: Person,
  action: Action,
  more: Pick<HeldProps, "problem" | "reason"> = {},
): Promise<string> {
  const [history, ready] = await Promise.all([actionService.historyOf(action), premask(action, "decider")]);
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
    // The ID may be made up, or the action deleted.
    if (error instanceof DomainError && error.code === "not_found") return null;
    throw error;
  }
}

/** The cursor of the page: an action ID, with a round number if several keys have requests. */
function placeIn(query: URLSearchParams): string | null {
  const after = query.get("after") ?? "";
  return ACTION_ID.test(after.replace(/^\d{1,9}\./, "")) ? after : null;
}

/** The key to filter by; null: all keys. */
function requesterIn(query: URLSearchParams): string | null {
  const by = query.get("by");
  if (by === NO_KEY) return "";
  return by !== null && KEY_ID.test(by) ? by : null;
}

function idIn(query: URLSearchParams, name: string): string | null {
  const id = query.get(name) ?? "";
  return ACTION_ID.test(id) ? id : null;
}
