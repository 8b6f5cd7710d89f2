/** @jsxImportSource hono/jsx */
import type { TimelineEntry } from "../core/timeline.ts";
import { asSent, maskedEntry } from "../receipts/masked-action.ts";
import type { Grant } from "../core/grant.ts";
import { Icon } from "../ui/icons.tsx";
import { actionPath } from "../ui/layout.tsx";
import { LinkButton, Problem, Time, UntrustedText } from "../ui/parts.tsx";
import { counted, duration, lastDecision } from "../ui/text.ts";
import { ListedStatus, Note } from "./action-row.tsx";
import { CallLine } from "./request.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { ActorName } from "./timeline.tsx";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";
import { targetMessage } from "../actions/target-message.ts";

export interface DecidedRequest {
  readonly action: MaskedAction;
  readonly timeline: readonly TimelineEntry[];
  /** The one that came with the approval and is in force; null: there is none. */
  readonly grant: Grant | null;
  readonly receiptUrl: string;
}

/** What a decided request has come to. */
export function Outcome({ action, now }: { readonly action: SeenAction; readonly now: Date }) {
  const ms = action.status === "completed" ? (action.result?.durationMs ?? null) : null;
  return (
    <span class="chips outcome">
      <ListedStatus action={action} />
      <span class="quiet">{ms === null ? <Note action={action} now={now} /> : `in ${duration(ms)}`}</span>
    </span>
  );
}

export function DecidedRow({ decided, now }: { readonly decided: DecidedRequest; readonly now: Date }) {
  const action = asSent(decided.action);
  return (
    <li id={`decided-${action.id}`} class="inbox-decided">
      <a href={actionPath(action.id)}>
        <RequestTitle action={action} />
      </a>
      <p class="small">
        <DecidedBy {...decided} />
      </p>
      <p class="between">
        <Outcome action={action} now={now} />
        <a class="small" href={decided.receiptUrl}>
          View receipt
        </a>
      </p>
    </li>
  );
}

/** "Approved by ann@example.com in the console". */
function DecidedBy({ action: { viewer }, timeline, grant }: Omit<DecidedRequest, "receiptUrl">) {
  const decision = lastDecision(timeline.map((entry) => maskedEntry(entry, viewer)));
  if (decision === null) return null;
  return (
    <>
      {`${DECIDED[decision.type] ?? "Changed"} by `}
      <ActorName actor={decision.actor} />
      {grant === null ? null : (
        <>
          {`, with ${counted(grant.calls, "more call")} like it until `}
          <Time at={grant.expiresAt} /> · <a href={SETTINGS_PATHS.grants}>All grants</a>
        </>
      )}
    </>
  );
}

const DECIDED: Readonly<Record<string, string>> = {
  approved: "Approved",
  rejected: "Rejected",
  cancelled: "Cancelled",
  retried: "Retried",
};

/** How a list names a request: the requester's title, else method and path. The action must be masked. */
export function RequestTitle({ action }: { readonly action: SeenAction }) {
  const { title, method } = action;
  return (
    <span class="request-name">
      {title === null ? <b class="method">{method}</b> : null}
      <UntrustedText text={title ?? shownPath(action)} />
    </span>
  );
}

/** Path and query of a masked action. */
export function shownPath({ url, host }: Pick<SeenAction, "url" | "host">): string {
  const start = url.indexOf("//") + 2;
  return url.startsWith(host, start) ? url.slice(start + host.length) : url;
}

interface DecidedPaneProps {
  readonly decided: DecidedRequest;
  /** Of the next request that waits; null: none does. */
  readonly nextPath: string | null;
  readonly problem: string | undefined;
  readonly now: Date;
}

export function DecidedPane({ decided, nextPath, problem, now }: DecidedPaneProps) {
  const action = asSent(decided.action);
  return (
    <div id={`of-${action.id}`} class="request">
      <div class="request-body decided">
        <Problem text={problem} />
        <h2>
          <RequestTitle action={action} />
        </h2>
        <p class="line">
          <CallLine action={action} />
        </p>
        <p>
          <DecidedBy {...decided} />
        </p>
        <Outcome action={action} now={now} />
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
