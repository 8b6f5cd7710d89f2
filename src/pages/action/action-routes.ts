import { DECISIONS } from "../../core/action.ts";
import { wholeAttempt, isHeldIn } from "../../core/changes.ts";
import { choiceInForm, type RefusedDecision, requestInForm } from "../decisions/decision-form.tsx";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { APPROVE_MORE, refusedDecision, termsInForm } from "../rules/grant-form.tsx";
import { asSent, maskedPause } from "../../receipts/masked-action.ts";
import { see, seeHistory, seeWhole } from "../../receipts/see.ts";
import { mayDo, roleViewer } from "../../core/roles.ts";
import { DomainError } from "../../core/domain-error.ts";
import { actionPage, revealedPage } from "./action.tsx";
import { chosenAttempt } from "./attempts.tsx";
import { bodyPage } from "../../ui/request.tsx";
import { actionPath } from "../../ui/layout.tsx";
import type { AnswerById, Person } from "../../http/session.ts";
import { noteActionId, ActionParams } from "../../actions/routes.ts";
import { sentUrl } from "../../core/target.ts";

const PATH = "/actions/:id";

export function actionPageRoutes(deps: PageDeps) {
  const hooks = { params: ActionParams };
  return personPages(deps)
    .get(
      PATH,
      ({ context, person, params }) => actionHtml(deps, person, noteActionId(context, params), context.search),
      hooks,
    )
    .get(
      `${PATH}/body`,
      async ({ context, person, params }) => {
        const id = noteActionId(context, params);
        const found = await deps.actionService.get(person.caller, id);
        const action = asSent(await see(found, roleViewer(person.caller.role)));
        const back = isHeldIn(found, found.run)
          ? { href: `/approvals/${id}`, name: "Back to the decision" }
          : { href: actionPath(id), name: "Back to the action" };
        return bodyPage({ action, back, user: person });
      },
      hooks,
    )
    .post(PATH, decide(deps), hooks)
    .post(`${PATH}/reveal`, reveal(deps), hooks);
}

/** `search` may choose an attempt. */
async function actionHtml(
  deps: PageDeps,
  person: Person,
  id: string,
  search: string,
  refused?: RefusedDecision,
): Promise<string> {
  const { actionService, clock, baseUrl, receiptPath, findPause } = deps;
  const { caller } = person;
  const { action: found, timeline, attempts } = await actionService.history(caller, id);
  const viewer = roleViewer(caller.role);
  const history = isHeldIn(found, found.run) ? await actionService.readHistory(found) : null;
  const asked = chosenAttempt(found, attempts, search);
  const seen = await seeHistory(found, asked === null ? [] : [wholeAttempt(found, asked)], viewer);
  const {
    action,
    attempts: [chosen = null],
  } = seen;
  const shared = { user: person, receiptUrl: receiptPath(id), now: clock.now(), baseUrl };
  const pause = maskedPause(findPause(found), viewer);
  const digest = actionService.actionDigest(found);
  return actionPage({ action, timeline, attempts, chosen, history, digest, pause, refused, ...shared });
}

/** The choices on the page. `retry_and_approve` starts a new run and approves it at once. */
const CHOICES = [...DECISIONS, APPROVE_MORE, "cancel", "send_now", "retry", "retry_and_approve"] as const;

function decide(deps: PageDeps): AnswerById {
  const { approve, cancel, retry, sendNow } = deps.actionService;
  return deps.answer<ById>(
    async ({ context, person: { caller }, params, form }) => {
      const id = noteActionId(context, params);
      const { decision, reason } = choiceInForm(form, CHOICES);
      const { run, digest } = requestInForm(form, id);
      const asHeld = { run, isHeld: true, digest };
      const asShown = { run, isHeld: false, digest };
      if (decision === "approve") await approve(caller, id, reason, asHeld);
      else if (decision === APPROVE_MORE) await approve(caller, id, reason, asHeld, termsInForm(form));
      else if (decision === "reject") await cancel(caller, id, reason, asHeld);
      else if (decision === "cancel") await cancel(caller, id, reason, asShown);
      else if (decision === "send_now") await sendNow(caller, id, reason, asShown);
      else {
        // Checked against what the page showed: a later run may have been rejected or have an unknown outcome.
        const action = await retry(caller, id, reason, asShown);
        if (decision === "retry_and_approve" && isHeldIn(action, action.run))
          await approve(caller, id, reason, { ...asHeld, run: action.run });
      }
      return actionPath(id);
    },
    ({ person, params }, refused) => actionHtml(deps, person, params.id, "", refusedDecision(refused)),
  );
}

/** Shows secrets only in the response to a form, which is not cached and has no address. */
function reveal({ actionService, answer, auditService, pageFor }: PageDeps): AnswerById {
  return answer<ById>(async ({ context, person, params }) => {
    const id = noteActionId(context, params);
    if (!mayDo(person.caller.role, "approve")) throw new DomainError("forbidden", "Your role can't view secrets.");
    const action = await actionService.get(person.caller, id);
    // Recorded first, so that secrets are never shown without an audit entry.
    await auditService.record(person.caller, { kind: "revealed", subject: id, detail: { what: "request" } });
    const whole = seeWhole({ ...action, url: sentUrl(action.url) });
    const digest = actionService.actionDigest(action);
    return pageFor(person, (user) => revealedPage(whole, digest, user));
  });
}
