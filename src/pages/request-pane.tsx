/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { mayDo, viewerOf } from "../accounts/roles.ts";
import { type Action, runAtOf } from "../actions/action.ts";
import { type DecisionHistory, type Fact, maskedFacts } from "../approvals/facts.ts";
import { MASK } from "../receipts/mask-rules.ts";
import { BODY_BEGINNING_CHARS_MAX, BODY_BEGINNING_LINES_MAX } from "../config/limits.ts";
import { pageBody } from "./body-view.tsx";
import { Copied, CopiedText } from "./controls.tsx";
import { callText, factValue, HiddenValues, Risks } from "./decide.tsx";
import { DecisionBar, EndOfRequest } from "./decision-bar.tsx";
import { Icon } from "./icons.tsx";
import { actionPath } from "./layout.tsx";
import { DecidedBy, type DecidedRequest, Outcome, RequestName } from "./outcome.tsx";
import { Ago, LinkButton, TimeInWords, UntrustedText } from "./parts.tsx";
import { maskForDisplay, RequestParts, UntrustedUrl } from "./request.tsx";
import { type PageUser, waitingText } from "./text.ts";

/** A held request in the inbox, as it is stored. */
export interface HeldRequest {
  readonly action: Action;
  readonly history: DecisionHistory;
}

/** The requests that look like the one that is shown, of which the decision is for one. */
export interface LookAlikes {
  /** Its place among them, from 1. */
  readonly place: number;
  readonly count: number;
  /** Where all of them are decided together. */
  readonly path: string;
}

interface RequestPaneProps extends HeldRequest {
  readonly user: PageUser;
  readonly now: Date;
  /** Its own address, where the form is sent and a long body is shown to its end. */
  readonly path: string;
  readonly isWhole: boolean;
  readonly alike?: LookAlikes | null;
  /** What was wrong with the form before. The input is kept. */
  readonly problem?: string | undefined;
  readonly reason?: string | undefined;
}

/** What a page shows of a body that has not been asked for by its address. */
export const BEGINNING = { lines: BODY_BEGINNING_LINES_MAX, chars: BODY_BEGINNING_CHARS_MAX };

/** One held request with everything that its approver has to see, and the decision. */
export function RequestPane({ user, now, path, isWhole, alike = null, problem, reason, ...held }: RequestPaneProps) {
  const action = maskForDisplay(held.action, viewerOf(user.role));
  const mayDecide = mayDo(user.role, "approve");
  const hidden = mayDecide ? placeOfHidden(action) : null;
  // What else there is to say about its state is said above it.
  const isPlain = action.run === 1 && action.callback === null;
  const body = pageBody(action, isWhole ? undefined : BEGINNING);
  return (
    <div id={`of-${action.id}`} class="request" data-shown={`${action.id} ${action.run}`}>
      <div class="request-body">
        <h2 class="visually-hidden">Request</h2>
        {alike === null ? null : (
          <p class="alike">
            {`${alike.place} of ${alike.count} look-alikes`}
            {mayDecide ? <a href={alike.path}>{`Review all ${alike.count}`}</a> : null}
          </p>
        )}
        {isPlain ? null : <p class="quiet small">{waitingText(action)}</p>}
        {hidden === "above" ? <HiddenValues action={action} user={user} /> : null}
        <AskedFor {...held} user={user} now={now}>
          {hidden === "inside" ? <HiddenValues action={action} user={user} /> : null}
          <RequestParts action={action} isAsked={mayDecide} cut={body === null ? undefined : { body, path }} canCopy />
          <EndOfRequest />
        </AskedFor>
        <p class="foot">
          {`${isPlain ? `${waitingText(action)} ` : ""}Secrets are masked as ••••; the request is sent with the real values.`}
        </p>
      </div>
      {mayDecide ? (
        <DecisionBar
          user={user}
          id={action.id}
          path={path}
          fields={[["run", action.run]]}
          what={alike === null ? "" : "this one"}
          question={callText(action)}
          unread={body?.rest ?? null}
          folded={body?.folded ?? 0}
          problem={problem}
          reason={reason}
        />
      ) : (
        <p class="request-body quiet">Your role can’t decide: approvers and owners of the account can.</p>
      )}
    </div>
  );
}

/** Where it is said how many values are hidden: always above the first of them. The action must be masked. */
export function placeOfHidden({ url, title, extras }: Action): "above" | "inside" {
  return [url, title ?? "", JSON.stringify(extras)].some((text) => text.includes(MASK)) ? "above" : "inside";
}

interface AskedForProps extends HeldRequest {
  readonly user: PageUser;
  readonly now: Date;
  readonly children?: Child;
}

/** Risks and facts of a held request, its headers and its body. Who may not decide sees no facts. */
export function AskedFor({ action, history, user, now, children }: AskedForProps) {
  if (!mayDo(user.role, "approve")) {
    return (
      <div class="asked">
        <p>
          <RequestName action={maskForDisplay(action, viewerOf(user.role))} />
        </p>
        {children}
      </div>
    );
  }
  return (
    <AskedFacts action={action} history={history} now={now}>
      {children}
    </AskedFacts>
  );
}

interface AskedFactsProps extends HeldRequest {
  /** Null: times are not told relative to it. */
  readonly now: Date | null;
  readonly children?: Child;
}

/** Risks and facts of a held request for whoever may decide, and what stands between them. */
export function AskedFacts({ action, history, now, children }: AskedFactsProps) {
  const { facts, risks } = maskedFacts(action, history, "");
  const visible = facts.filter(({ name }) => name !== "hidden");
  const begin = visible.findIndex(({ name }) => name === "requester");
  // Its id says nothing about the request.
  const end = visible.findIndex(({ name }) => name === "action");
  return (
    <div class="asked" data-asked="">
      <FactList facts={visible.slice(0, begin)} look="asked-head" action={action} now={now} />
      <Risks risks={risks} />
      <FactList facts={visible.slice(begin, end)} look="asked-facts" action={action} now={now} />
      {children}
      <FactList facts={visible.slice(end)} look="asked-facts" action={action} now={now} />
    </div>
  );
}

interface FactListProps {
  readonly facts: readonly Fact[];
  readonly look: "asked-head" | "asked-facts";
  readonly action: Action;
  readonly now: Date | null;
}

/** Facts that say something else than usual, or in the requester's own words, have a line of their own. */
const WIDE: ReadonlySet<string> = new Set(["title", "url", "reason", "metadata", "rejected", "asked_again", "extras"]);

/** Facts of a request, each with its label. */
export function FactList({ facts, look, action, now }: FactListProps) {
  return (
    <dl class={look}>
      {facts.map((fact) => (
        <div class={`fact-${fact.name}${WIDE.has(fact.name) || isLong(fact) ? " fact-wide" : ""}`}>
          <dt>{fact.label}</dt>
          <dd>
            <FactValue fact={fact} action={action} />
            {fact.name === "requested_at" && now !== null ? (
              <span class="quiet">
                {" · "}
                <Ago at={action.createdAt} now={now} />
              </span>
            ) : null}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function FactValue({ fact, action }: { readonly fact: Fact; readonly action: Action }) {
  const { name, value } = fact;
  if (name === "title") return <Quoted text={value} />;
  const at = timeOf(name, action);
  if (at !== null) return <TimeInWords at={at}>{value}</TimeInWords>;
  if (name === "url") return <CopiedText what="the URL">{factValue(fact)}</CopiedText>;
  return name === "action" ? (
    <Copied text={action.id} what="the action's ID">
      {factValue(fact)}
    </Copied>
  ) : (
    <>{factValue(fact)}</>
  );
}

/** The time of a fact that is one. */
function timeOf(name: string, action: Action): Date | null {
  if (name === "requested_at") return action.createdAt;
  if (name === "run_at") return runAtOf(action);
  return name === "expires_at" ? action.expiresAt : null;
}

function isLong({ name, value }: Fact): boolean {
  return name !== "action" && value.length > 40;
}

function Quoted({ text }: { readonly text: string }) {
  return (
    <>
      “<UntrustedText text={text} />”
    </>
  );
}

/** What became of a request that is decided, where it was shown before. */
export function DecidedPane({
  decided,
  user,
  nextPath,
}: {
  readonly decided: DecidedRequest;
  readonly user: PageUser;
  /** Of the next request that waits; null: none does. */
  readonly nextPath: string | null;
}) {
  const viewer = viewerOf(user.role);
  const action = maskForDisplay(decided.action, viewer);
  return (
    <div id={`of-${action.id}`} class="request">
      <div class="request-body decided">
        <h2>
          <RequestName action={action} />
        </h2>
        <p class="line">
          <b class="method">{action.method}</b>
          <UntrustedUrl url={action.url} host={action.host} />
        </p>
        <p>
          <DecidedBy {...decided} viewer={viewer} />
        </p>
        <Outcome action={action} />
        <div class="buttons">
          {nextPath === null ? null : (
            <LinkButton href={nextPath} look="main">
              Next request
              <Icon name="right" />
            </LinkButton>
          )}
          <LinkButton href={actionPath(action.id)}>View action</LinkButton>
          <LinkButton href={decided.receiptUrl}>View receipt</LinkButton>
        </div>
      </div>
    </div>
  );
}
