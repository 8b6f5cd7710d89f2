import type { ActionDesk } from "../../actions/desk.ts";
import { checkDecisionForm } from "../../contract/decision.ts";
import type { Caller } from "../../domain/caller.ts";
import { isHeldIn } from "../../domain/change.ts";
import { DomainError } from "../../domain/errors.ts";
import { ACTION_ID } from "../../domain/id.ts";
import type { Clock } from "../../ports/clock.ts";
import { heldPage } from "../../web/held.tsx";
import { type InboxOutcome, inboxPage } from "../../web/inbox.tsx";
import type { Form } from "../form.ts";
import { HOME_PATH } from "../next.ts";
import { page, seeOther } from "../page.ts";
import { pageRoute, type Route } from "../route.ts";
import { type FormOf, logInPath, type Person, type PersonOf } from "../session.ts";
import type { Visit } from "../visit.ts";
import { actionIdOf } from "./action-id.ts";

export interface InboxRouteDeps {
  readonly desk: Pick<ActionDesk, "held" | "get" | "timeline" | "approve" | "cancel">;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
  readonly receiptUrl: (actionId: string) => string;
  readonly clock: Clock;
}

type Show = (visit: Visit, person: Person, id: string) => Promise<Response>;

/** What waits for a person, and the decision on it; it works without a mail provider and without script (decisions 7). */
export function inboxRoutes(deps: InboxRouteDeps): readonly Route[] {
  const { desk, personOf, receiptUrl, clock } = deps;
  const forPerson =
    (show: Show): Route["answer"] =>
    async (visit, params) => {
      const person = await personOf(visit);
      if (person === null)
        return seeOther("own", logInPath(visit.path + (visit.search === "" ? "" : `?${visit.search}`)));
      return show(visit, person, params["id"] === undefined ? "" : actionIdOf(visit, params));
    };

  const list: Show = async ({ search }, person) => {
    const query = new URLSearchParams(search);
    const [waiting, outcome] = await Promise.all([
      desk.held(person.caller, idIn(query, "after")),
      outcomeOf(deps, person.caller, idIn(query, "decided")),
    ]);
    return page("own", inboxPage({ ...waiting, visitor: person, outcome, now: clock.now() }));
  };
  const one: Show = async (_visit, person, id) => {
    const action = await desk.get(person.caller, id);
    if (!isHeldIn(action, action.run)) return seeOther("own", receiptUrl(id));
    return page("own", heldPage({ action, visitor: person }));
  };
  return [
    pageRoute("own", "GET", "/", async (visit) => {
      return seeOther("own", (await personOf(visit)) === null ? "/login" : HOME_PATH);
    }),
    pageRoute("own", "GET", "/approvals", forPerson(list)),
    pageRoute("own", "GET", "/approvals/{id}", forPerson(one)),
    pageRoute("own", "POST", "/approvals/{id}", forPerson(decide(deps))),
  ];
}

/** Decides on the run that the page showed, and tells on the list what came of it, whoever was first. */
function decide({ desk, formOf }: InboxRouteDeps): Show {
  return async (visit, person, id) => {
    const form = await formOf(visit, person);
    try {
      const { decision, reason } = checkDecisionForm(form);
      const verb = decision === "approve" ? desk.approve : desk.cancel;
      await verb(person.caller, id, reason, Number(form.get("run")));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === "validation_error") return askAgain(await desk.get(person.caller, id), person, form, error);
      if (error.code !== "not_approvable" && error.code !== "not_cancellable") throw error;
    }
    return seeOther("own", `/approvals?decided=${id}`);
  };
}

/** What was typed is not lost over a reason that is too long. */
function askAgain(
  action: Awaited<ReturnType<ActionDesk["get"]>>,
  visitor: Person,
  form: Form,
  { issues }: DomainError,
): Response {
  const problem = issues.map(({ message }) => message).join(" ");
  return page("own", heldPage({ action, visitor, problem, reason: form.get("reason") ?? "" }), { status: 400 });
}

async function outcomeOf(
  { desk, receiptUrl }: InboxRouteDeps,
  caller: Caller,
  id: string | null,
): Promise<InboxOutcome | null> {
  if (id === null) return null;
  try {
    const [action, timeline] = await Promise.all([desk.get(caller, id), desk.timeline(caller, id)]);
    return { action, timeline, receiptUrl: receiptUrl(id) };
  } catch (error) {
    // Somebody wrote the path by hand, or the action is gone: there is nothing to tell.
    if (error instanceof DomainError && error.code === "not_found") return null;
    throw error;
  }
}

function idIn(query: URLSearchParams, name: string): string | null {
  const id = query.get(name) ?? "";
  return ACTION_ID.test(id) ? id : null;
}
