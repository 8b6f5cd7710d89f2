/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { awaitsRunAt, isTerminal } from "../core/action.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { asSent, maskedEntry } from "../receipts/masked-action.ts";
import type { Grant } from "../core/grant.ts";
import { Icon } from "../ui/icons.tsx";
import { actionPath } from "../ui/layout.tsx";
import { Dot, LinkButton, Problem, sentence, statusLabel, Time, type Tone, UntrustedText } from "../ui/parts.tsx";
import { counted, duration, lastDecision, lateText } from "../ui/text.ts";
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

/** The state of a decided request: "Sent · 200 in 180 ms". The action must be masked. */
export function OutcomeCard({ action }: { readonly action: SeenAction }) {
  const [tone, text, more = null] = outcomeOf(action);
  return (
    <span class="chips outcome">
      <Dot tone={tone}>{text}</Dot>
      {more === null ? null : <span class="quiet">{more}</span>}
    </span>
  );
}

/** `more`: what the target answered, or when the next attempt is. */
function outcomeOf(action: SeenAction): readonly [tone: Tone, text: string, more?: Child] {
  const { status, attempts, result, dueAt } = action;
  const late = lateText(action);
  const code = result?.responseCode ?? null;
  const took = result?.durationMs ?? null;
  const failed = code === null ? "Failed" : `Sent · ${code}`;
  if (late !== null && isTerminal(status)) return ["wait", statusLabel(status), late];
  if (status === "completed")
    return ["good", `Sent · ${code ?? "done"}${took === null ? "" : ` in ${duration(took)}`}`];
  if (status === "failed") return ["bad", failed, <Said result={result} />];
  if (status === "cancelled") return ["still", "Not sent"];
  if (status === "awaiting_approval") return ["wait", statusLabel(status)];
  if (status === "active") return ["busy", "Sending"];
  if (dueAt === null || (attempts === 0 && !awaitsRunAt(action))) return ["busy", "About to be sent"];
  const next = sentence`next attempt at ${<Time at={dueAt} />}`;
  return attempts === 0 ? ["busy", "Scheduled", next] : ["wait", failed, next];
}

/** Why it failed: the message in the answer, else our own sentence. */
function Said({ result }: Pick<SeenAction, "result">) {
  const said = result?.responseCode === null ? null : targetMessage(result?.responseBody ?? null);
  if (said !== null) return <UntrustedText text={said} />;
  return <>{result?.lastError ?? ""}</>;
}

export function DecidedRow({ decided }: { readonly decided: DecidedRequest }) {
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
        <OutcomeCard action={action} />
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
}

export function DecidedPane({ decided, nextPath, problem }: DecidedPaneProps) {
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
        <OutcomeCard action={action} />
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
