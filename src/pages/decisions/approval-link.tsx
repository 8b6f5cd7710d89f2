/** @jsxImportSource hono/jsx */
import { type Decision, DECISIONS } from "../../core/action.ts";
import { limitsOnPage, pageBody } from "../../ui/body-view.tsx";
import { asSent } from "../../receipts/masked-action.ts";
import { endedAs } from "../../approvals/decide.ts";
import { choiceInForm, DecisionForm, type RefusedDecision, requestInForm } from "./decision-form.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { time } from "../../ui/parts.tsx";
import { AskedRequest, type HeldRequest } from "./decision.tsx";
import { waitingText } from "../../ui/text.ts";
import type { OpenedLink } from "../../approvals/links.ts";
import { readForm } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { clientNetwork } from "../../core/addresses.ts";
import { linkNotFound } from "../../http/errors.ts";
import { createPageRoutes, TokenParams } from "../../http/operation.ts";
import { page, seeOther } from "../../http/response.ts";
import { LATE_PARAMETER } from "../../receipts/receipt.ts";
import { see } from "../../receipts/see.ts";
import { bodyPage, callText } from "../../ui/request.tsx";
import { answers } from "../frame/forms.ts";
import type { PageDeps } from "../frame/page-deps.ts";

interface ConfirmProps extends HeldRequest {
  readonly refused?: RefusedDecision | undefined;
  readonly expiresAt: Date;
  /** The link of the mail that was opened. */
  readonly decision: Decision;
  readonly bodyPath: string;
}

/**
 * The page of an approval link: who asks for what, its risks, the masked request, and two buttons, of which the link's is
 * first.
 */
export function confirmPage({
  expiresAt,
  decision,
  bodyPath,
  history,
  digest,
  refused,
  ...props
}: ConfirmProps): string {
  const action = asSent(props.action);
  const body = pageBody(action, limitsOnPage(action));
  const verb = decision === "approve" ? "Approve" : "Reject";
  return render(
    <Layout title={`${verb} ${callText(action)}?`} isStandalone>
      <article class="paper paper-asked">
        <h1>{`${verb} this request?`}</h1>
        <h2 class="visually-hidden">Request</h2>
        <AskedRequest action={action} history={history} body={body} bodyPath={bodyPath} user={null} now={null} />
        <footer class="foot stack">
          <p>{waitingText(action)}</p>
          <p>
            This link expires at {time(expiresAt)}. Secrets are masked as ••••. The request is sent with the real
            values.
          </p>
        </footer>
      </article>
      {/* Stays in view. Both buttons have the same size: the link only decides which comes first. */}
      <section id="decision" class="decision-bar on-screen" aria-label="Your decision">
        <p class="more-below">Read to the end first ↓</p>
        <DecisionForm user={null} asked={[{ action, digest, body }]} main={decision} refused={refused} />
      </section>
    </Layout>,
  );
}

const PATH = "/a/:token";

interface LinkRequest {
  readonly context: RequestContext;
  readonly params: { readonly token: string };
}

/** The links of an approval mail. They need no login. */
export function approvalLinkRoutes({ followLink, approvalLinks, ownOrigin, receiptPath }: PageDeps) {
  const isOneClick = approvalLinks === "one_click";

  const found = (context: RequestContext, opened: OpenedLink | null): OpenedLink => {
    if (opened === null) throw linkNotFound();
    context.actionId = opened.action.id;
    return opened;
  };
  const toReceipt = ({ action }: OpenedLink) => seeOther("approval", receiptPath(action.id));
  /** Leads to the receipt, which says so if another decision counts. A repeated press is no other decision. */
  const toReceiptAfter = (opened: OpenedLink, pressed: Decision) => {
    return endedAs(pressed, opened.action)
      ? toReceipt(opened)
      : seeOther("approval", `${receiptPath(opened.action.id)}?${LATE_PARAMETER}=1`);
  };

  const linkPage = async (token: string, opened: OpenedLink, refused?: RefusedDecision) => {
    const action = await see(opened.action, "decider");
    return confirmPage({ ...opened, action, bodyPath: `/a/${token}/body`, refused });
  };

  const show = async ({ context, params: { token } }: LinkRequest): Promise<Response> => {
    const opened = found(context, await followLink.open(token));
    if (!opened.isLive) return toReceipt(opened);
    if (isOneClick && isOpenedByPerson(context.request)) {
      const decision = { decision: opened.decision, reason: null, shown: null, client: clientNetwork(context.client) };
      return toReceipt(found(context, await followLink.decide(token, decision)));
    }
    return page("approval", await linkPage(token, opened));
  };

  /** The body as a page of its own. If opening the link decides, there is no such page. */
  const body = async ({ context, params: { token } }: LinkRequest): Promise<Response> => {
    const opened = found(context, await followLink.open(token));
    if (!opened.isLive || isOneClick) return toReceipt(opened);
    const action = asSent(await see(opened.action, "decider"));
    const back = { href: `/a/${token}`, name: "Back to the decision" };
    return page("approval", bodyPage({ action, back, user: null }));
  };

  const decideOn = answers(readForm)<{ readonly token: string; readonly opened: OpenedLink }>(
    async ({ context, params: { token, opened }, form }) => {
      const { digest: shown } = requestInForm(form, opened.action.id);
      const decision = { ...choiceInForm(form, DECISIONS), shown, client: clientNetwork(context.client) };
      return toReceiptAfter(found(context, await followLink.decide(token, decision)), decision.decision);
    },
    async ({ context, params: { token }, form }, { problem }) =>
      linkPage(token, found(context, await followLink.open(token)), { problem, reason: form.get("reason") }),
  );

  const decide = async ({ context, params: { token } }: LinkRequest): Promise<Response> => {
    ownOrigin.refuseOtherSitesButNull(context.request.headers);
    const opened = found(context, await followLink.open(token));
    if (opened.isLive) return decideOn({ context, person: null, params: { token, opened } });
    const fields = await readForm(context).catch(() => null);
    const pressed = DECISIONS.find((decision) => decision === fields?.get("decision"));
    return pressed === undefined ? toReceipt(opened) : toReceiptAfter(opened, pressed);
  };

  const hooks = { params: TokenParams };
  return createPageRoutes("approval").get(PATH, show, hooks).get(`${PATH}/body`, body, hooks).post(PATH, decide, hooks);
}

/**
 * Whether a person opened the link. HEAD requests, which also run this route, prefetches, and previews that a browser or an extension
 * of it reads by script must not decide.
 */
function isOpenedByPerson({ method, headers }: Request): boolean {
  const isPrefetch = PREFETCH_HEADERS.some((name) => /\bprefetch\b/i.test(headers.get(name) ?? ""));
  return method === "GET" && !isPrefetch && (headers.get("sec-fetch-dest") ?? "document") === "document";
}

const PREFETCH_HEADERS = ["sec-purpose", "purpose", "x-moz"];
