import type { FollowLink, OpenedLink } from "../../actions/follow-link.ts";
import { checkDecisionForm } from "../../contract/decision.ts";
import { DomainError } from "../../domain/errors.ts";
import { maskOneAhead } from "../../masking/ahead.ts";
import { confirmPage } from "../../web/confirm.tsx";
import { clientOf } from "../client.ts";
import { type Form, readForm } from "../form.ts";
import { noSuchLink } from "../no-such-link.ts";
import type { OwnOrigin } from "../own-origin.ts";
import { page, seeOther } from "../page.ts";
import { pageRoute, type Params, type Route } from "../route.ts";
import type { RequestContext } from "../visit.ts";

export interface ApprovalLinkRouteDeps {
  readonly followLink: FollowLink;
  /** `confirm`: a link asks first. `one_click`: opening it decides. */
  readonly approvalLinks: "confirm" | "one_click";
  readonly ownOrigin: OwnOrigin;
  /** Path of an action's receipt page. */
  readonly receiptPath: (actionId: string) => string;
}

const PATH = "/a/{token}";

/** The links of an approval mail: whoever has one was asked (decisions 7). */
export function approvalLinkRoutes(deps: ApprovalLinkRouteDeps): readonly Route[] {
  const { followLink, approvalLinks, ownOrigin, receiptPath } = deps;
  const isOneClick = approvalLinks === "one_click";

  const found = (context: RequestContext, opened: OpenedLink | null): OpenedLink => {
    if (opened === null) throw noSuchLink();
    context.actionId = opened.action.id;
    return opened;
  };
  const toReceipt = ({ action }: OpenedLink) => seeOther("approval", receiptPath(action.id));

  const show = async (context: RequestContext, params: Params): Promise<Response> => {
    const token = params["token"] ?? "";
    const opened = found(context, await followLink.open(token));
    if (!opened.isLive) return toReceipt(opened);
    if (isOneClick && isOpenedByHand(context.request)) {
      return toReceipt(found(context, await followLink.decide(token, opened.decision, null, clientOf(context))));
    }
    return page("approval", confirmPage(await readyToShow(opened)));
  };

  const decide = async (context: RequestContext, params: Params): Promise<Response> => {
    ownOrigin.refuseForeignOrNull(context.request.headers);
    const token = params["token"] ?? "";
    const opened = found(context, await followLink.open(token));
    if (!opened.isLive) return toReceipt(opened);
    const form = await readForm(context);
    try {
      const { decision, reason } = checkDecisionForm(form);
      return toReceipt(found(context, await followLink.decide(token, decision, reason, clientOf(context))));
    } catch (error) {
      return await askAgainByLink(opened, form, error);
    }
  };

  return [pageRoute("approval", "GET", PATH, show), pageRoute("approval", "POST", PATH, decide)];
}

/** What was typed is not lost over a reason that is too long. Throws what no person can mend. */
async function askAgainByLink(opened: OpenedLink, form: Form, error: unknown): Promise<Response> {
  if (!(error instanceof DomainError) || error.code !== "validation_error") throw error;
  const problem = error.issues.map(({ message }) => message).join(" ");
  const ready = await readyToShow(opened);
  return page("approval", confirmPage({ ...ready, problem, reason: form.get("reason") ?? "" }), { status: 400 });
}

async function readyToShow<Opened extends OpenedLink>(opened: Opened): Promise<Opened> {
  return { ...opened, action: await maskOneAhead(opened.action, "decider") };
}

/** HEAD runs this route as GET does, and neither it nor what a browser or scanner fetches ahead may decide anything. */
function isOpenedByHand({ method, headers }: Request): boolean {
  const isAhead = PREFETCH_HEADERS.some((name) => /\bprefetch\b/i.test(headers.get(name) ?? ""));
  return method === "GET" && !isAhead;
}

const PREFETCH_HEADERS = ["sec-purpose", "purpose", "x-moz"];
