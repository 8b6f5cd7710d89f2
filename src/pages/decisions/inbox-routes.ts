import { choiceInForm, type RefusedDecision, requestInForm, requestsInForm } from "./decision-form.tsx";
import { forRow } from "../frame/listed-action.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { APPROVE_MORE, refusedDecision, termsInForm } from "../rules/grant-form.tsx";
import type { Grant } from "../../core/grant.ts";
import { mayDo, roleViewer } from "../../core/roles.ts";
import { type Action, DECISIONS } from "../../core/action.ts";
import { isHeldIn } from "../../core/changes.ts";
import { endedAs, isAlreadyDecided } from "../../approvals/decide.ts";
import { NO_HISTORY } from "../../approvals/facts.ts";
import {
  DECIDED_READ_AT_ONCE_MAX,
  DECISIONS_AT_ONCE_MAX,
  REVIEW_BYTES_MAX,
  REVIEW_SELECTED_MAX,
} from "../../core/limits.ts";
import { DomainError } from "../../core/domain-error.ts";
import { ACTION_ID } from "../../core/ids.ts";
import { see, seeAll } from "../../receipts/see.ts";
import { type MaskedAction, storedAction } from "../../receipts/seen-action.ts";
import { pendingRequests } from "../settings/credential-request.tsx";
import type { DecidedRequest } from "./decided.tsx";
import type { HeldRequest } from "./decision.tsx";
import { type InboxPane, inboxPage, nextWaiting, type SeenInbox } from "./inbox.tsx";
import { reviewPath, heldFilter, inboxPath, inboxQueryIn, REVIEW_PATH } from "./inbox-query.ts";
import { type AnswerById, type AnswerPerson, HOME_PATH, type Person } from "../../http/session.ts";
import type { Form } from "../../http/body.ts";
import { seeOther } from "../../http/response.ts";
import { GET_STARTED_PATH } from "../entry/first-steps.tsx";
import { pathNotFound } from "../../http/errors.ts";
import { createPageRoutes } from "../../http/operation.ts";
import { ActionParams, noteActionId } from "../../actions/routes.ts";

export function inboxRoutes(deps: PageDeps) {
  const hooks = { params: ActionParams };
  return createPageRoutes("own")
    .get("/", async ({ context }) => {
      // Elysia treats // as /.
      if (context.path !== "/") throw pathNotFound();
      const person = await deps.findPerson(context);
      if (person === null) return seeOther("own", "/login");
      const steps = await deps.firstSteps.read(person.caller);
      return seeOther("own", steps?.isNew === true ? GET_STARTED_PATH : HOME_PATH);
    })
    .use(
      personPages(deps)
        .get("/approvals", ({ context, person }) => inboxHtml(deps, person, context.search))
        .get(REVIEW_PATH, async ({ context, person }) => {
          const ids = new URLSearchParams(context.search).getAll("id");
          return inboxHtml(deps, person, "", await reviewPane(deps, person, ids));
        })
        .post(REVIEW_PATH, decideOnMany(deps))
        .get(
          "/approvals/:id",
          async ({ context, person, params }) => {
            const pane = await requestPane(deps, person, noteActionId(context, params));
            return inboxHtml(deps, person, context.search, pane);
          },
          hooks,
        )
        .post("/approvals/:id", decideHere(deps), hooks),
    );
}

/** The inbox with its filters. Without a pane, it shows the request to decide next. */
async function inboxHtml(
  deps: PageDeps,
  user: Person,
  search: string,
  pane?: InboxPane,
  refused?: RefusedDecision,
): Promise<string> {
  const params = new URLSearchParams(search);
  const query = inboxQueryIn(params);
  const now = deps.clock.now();
  const [found, decided, requests] = await Promise.all([
    deps.actionService.held(user.caller, query.after, heldFilter(query, now)),
    readDecided(deps, user, validIds((params.get("decided") ?? "").split(" "), DECISIONS_AT_ONCE_MAX)),
    pendingRequests(deps, user),
  ]);
  const inbox = { ...found, actions: await seeAll(found.actions, roleViewer(user.role)) };
  const shown = pane ?? nextPane(deps, inbox, decided);
  return inboxPage({ user, inbox, requests, query, pane: shown, decided, refused, now });
}

/** The request after the last decided one, or the oldest. */
function nextPane(deps: PageDeps, { actions, histories }: SeenInbox, decided: readonly DecidedRequest[]): InboxPane {
  const action = nextWaiting(actions, decided.at(-1)?.action.id ?? "");
  if (action === null) return { kind: "none" };
  return { kind: "request", isChosen: false, held: heldRequest(deps, action, histories.get(action.id)) };
}

function heldRequest({ actionService }: PageDeps, action: MaskedAction, history = NO_HISTORY): HeldRequest {
  return { action, history, digest: actionService.actionDigest(storedAction(action)) };
}

/** Shows a request by its id: held, or its outcome. */
async function requestPane(deps: PageDeps, person: Person, id: string): Promise<InboxPane> {
  const { actionService, receiptPath } = deps;
  const found = await actionService.get(person.caller, id);
  const action = await see(found, roleViewer(person.role));
  if (isHeldIn(found, found.run)) {
    const held = heldRequest(deps, action, await actionService.readHistory(found));
    return { kind: "request", isChosen: true, held };
  }
  const [timeline, grants] = await Promise.all([actionService.timeline(person.caller, id), liveGrants(deps, person)]);
  const grant = grants.find(({ actionId }) => actionId === id) ?? null;
  return { kind: "decided", decided: { action, timeline, grant, receiptUrl: receiptPath(id) } };
}

/** The requests with these ids that are still waiting, for a common decision. */
async function reviewPane(deps: PageDeps, { caller, role }: Person, asked: readonly string[]): Promise<InboxPane> {
  const selected = validIds(asked, REVIEW_SELECTED_MAX);
  const ids = selected.slice(0, DECISIONS_AT_ONCE_MAX);
  const { actions, histories } = await deps.actionService.heldAmong(caller, ids);
  const fitting = fittingIn(actions);
  const rest = [...actions.slice(fitting).map(({ id }) => id), ...selected.slice(DECISIONS_AT_ONCE_MAX)];
  const seen = await seeAll(actions.slice(0, fitting), roleViewer(role));
  const requests = seen.map((action) => heldRequest(deps, action, histories.get(action.id)));
  return { kind: "review", review: { requests, rest, goneCount: ids.length - actions.length } };
}

function validIds(asked: readonly string[], limit: number): readonly string[] {
  return [...new Set(asked.filter((id) => ACTION_ID.test(id)))].slice(0, limit);
}

/** How many requests fit on one page of a review; at least one. */
function fittingIn(actions: readonly Action[]): number {
  let bytes = 0;
  const end = actions.findIndex(({ url, body, headers, title }) => {
    for (const text of [url, body ?? "", title ?? "", ...Object.entries(headers ?? {}).flat()]) bytes += text.length;
    return bytes > REVIEW_BYTES_MAX;
  });
  return end === -1 ? actions.length : Math.max(1, end);
}

/** Decides on the request that the page showed. Then the list shows the outcome, also if somebody else decided the same first. */
function decideHere(deps: PageDeps): AnswerById {
  const { actionService, answer } = deps;
  return answer<ById>(
    async ({ context, person, params, form }) => {
      const id = noteActionId(context, params);
      const { decision, reason } = choiceInForm(form, [...DECISIONS, APPROVE_MORE]);
      const shown = { ...requestInForm(form, id), isHeld: true };
      // `approve` fails if somebody else was first, so that the person learns that nothing more is allowed.
      if (decision === APPROVE_MORE) await actionService.approve(person.caller, id, reason, shown, termsInForm(form));
      else {
        const decide = decision === "approve" ? actionService.approve : actionService.cancel;
        await decide(person.caller, id, reason, shown).catch(async (error: unknown) => {
          // A repeated press is no other decision.
          if (!isAlreadyDecided(error) || !endedAs(decision, await actionService.get(person.caller, id))) throw error;
        });
      }
      return decidedPath([id], context.search);
    },
    async ({ context, person, params }, refused) => {
      const pane = await requestPane(deps, person, params.id);
      return inboxHtml(deps, person, context.search, pane, refusedDecision(refused));
    },
  );
}

/** Decides on each request that the review showed. Then the list shows their outcomes. */
function decideOnMany(deps: PageDeps): AnswerPerson {
  const restIn = (form: Form) => validIds((form.get("rest") ?? "").split(" "), REVIEW_SELECTED_MAX);
  return deps.answer(
    async ({ person, form }) => {
      const requests = requestsInForm(form);
      await deps.actionService.decideMany(person.caller, choiceInForm(form, DECISIONS), requests);
      const rest = restIn(form);
      const ids = requests.map(({ id }) => id);
      return rest.length > 0 ? reviewPath(rest, ids.at(-1)) : decidedPath(ids, "");
    },
    async ({ person }, { problem, values }) => {
      const ids = [...requestsInForm(values).map(({ id }) => id), ...restIn(values)];
      const pane = await reviewPane(deps, person, ids);
      return inboxHtml(deps, person, "", pane, { problem, reason: values.get("reason") });
    },
  );
}

/** The path of the inbox with the same filters and these requests' outcomes. */
function decidedPath(ids: readonly string[], search: string): string {
  return inboxPath({ ...inboxQueryIn(new URLSearchParams(search)), after: null }, "/approvals", {
    decided: ids.join(" "),
  });
}

/** The outcomes of requests. Reads only some at a time, because each is read whole. An id may be invented or deleted. */
async function readDecided(deps: PageDeps, person: Person, ids: readonly string[]): Promise<readonly DecidedRequest[]> {
  const found: DecidedRequest[] = [];
  const grants = ids.length === 0 ? [] : await liveGrants(deps, person);
  for (let at = 0; at < ids.length; at += DECIDED_READ_AT_ONCE_MAX) {
    const some = ids.slice(at, at + DECIDED_READ_AT_ONCE_MAX);
    found.push(...(await Promise.all(some.map((id) => decidedRequest(deps, person, id, grants)))).flat());
  }
  return found;
}

/** The grants that can be ended; only for approvers. */
async function liveGrants({ grantService }: PageDeps, { caller, role }: Person): Promise<readonly Grant[]> {
  return mayDo(role, "approve") ? grantService.list(caller) : [];
}

async function decidedRequest(
  { actionService, receiptPath }: PageDeps,
  { caller, role }: Person,
  id: string,
  grants: readonly Grant[],
): Promise<readonly DecidedRequest[]> {
  try {
    const [action, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
    const seen = await see(forRow(action), roleViewer(role));
    const grant = grants.find(({ actionId }) => actionId === id) ?? null;
    return [{ action: seen, timeline, grant, receiptUrl: receiptPath(id) }];
  } catch (error) {
    if (error instanceof DomainError && error.code === "not_found") return [];
    throw error;
  }
}
