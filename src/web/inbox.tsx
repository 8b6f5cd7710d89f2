/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import type { Unusual } from "../domain/unusual.ts";
import { type Decided, lastDecision } from "./decided.ts";
import { DecisionForm } from "./confirm.tsx";
import { Foreign } from "./foreign.tsx";
import { By, Who } from "./happening.tsx";
import { EVERYTHING, Layout } from "./layout.tsx";
import { Ago, Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestParts } from "./request.tsx";
import { shown } from "./shown.ts";
import { waitingWords } from "./summary.ts";
import type { Visitor } from "./visitor.ts";
import { UnusualChips } from "./unusual.tsx";

/** What somebody has just decided, or found decided. */
export interface InboxOutcome {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  readonly receiptUrl: string;
}

export interface InboxProps {
  readonly visitor: Visitor;
  /** Oldest first. */
  readonly actions: readonly Action[];
  /** What is unusual about each, by its id. */
  readonly unusual: ReadonlyMap<string, readonly Unusual[]>;
  /** Behind which the next page begins; null when there is none. */
  readonly after: string | null;
  readonly outcome: InboxOutcome | null;
  readonly now: Date;
}

/** What waits for a person: each request whole, with its decision. */
export function inboxPage({ visitor, actions, unusual, after, outcome, now }: InboxProps): string {
  const count = actions.length;
  const title = count === 0 ? "Approvals" : `(${count}${after === null ? "" : "+"}) Approvals`;
  return render(
    <Layout title={title} place="Approvals" visitor={visitor} follows={EVERYTHING} now={now}>
      <div class="head">
        <h1>Approvals</h1>
        <p id="count" class="quiet" role="status" data-live="">
          {countOf(count, after !== null)}
        </p>
      </div>
      {outcome === null ? null : <Outcome outcome={outcome} />}
      <ol id="waiting" class="cards" data-live="items">
        {actions.map((action) => (
          <Held action={action} unusual={unusual.get(action.id) ?? []} visitor={visitor} now={now} />
        ))}
      </ol>
      <div id="empty" data-live="">
        {count === 0 ? <Empty /> : null}
      </div>
      <div id="pager" data-live="">
        {after === null ? null : (
          <a class="button button-plain" href={`/approvals?after=${encodeURIComponent(after)}`}>
            Next page
          </a>
        )}
      </div>
      <p class="foot">Secrets are shown as ••••; the requests are sent with them.</p>
    </Layout>,
  );
}

function countOf(count: number, isMore: boolean): string {
  if (isMore) return `${count} requests on this page, the oldest first; there are more.`;
  if (count === 0) return "Nothing waits for you.";
  return count === 1 ? "1 request waits for you." : `${count} requests wait for you, the oldest first.`;
}

interface HeldProps {
  readonly action: Action;
  readonly unusual: readonly Unusual[];
  readonly visitor: Visitor;
  readonly now: Date;
}

/** One request: who asks for what, since when, what is unusual about it, all of it, and the two buttons. */
function Held({ unusual, visitor, now, ...props }: HeldProps) {
  const action = shown(props.action);
  const path = `/approvals/${action.id}`;
  return (
    <li id={action.id} class="card held">
      <div class="stack">
        <h2>
          <a href={path} data-item="">
            {action.method} <Foreign text={action.host} />
          </a>
        </h2>
        <p class="quiet small">
          <Who actor={action.createdBy} />, <Ago at={action.createdAt} now={now} />
        </p>
        {action.run === 1 ? null : <p class="small">{waitingWords(action)}</p>}
        <UnusualChips unusual={unusual} />
      </div>
      <RequestParts action={action} isLow />
      <p class="notice notice-wait" data-gone="" hidden>
        Somebody has decided on this meanwhile.
      </p>
      <DecisionForm visitor={visitor} run={action.run} path={path} about={action} />
    </li>
  );
}

function Empty() {
  return (
    <section class="card empty">
      <p>
        An agent's request stands here when it was created with <code>"approve": true</code>, or with a key that holds
        what it creates. Nothing of it is sent before you say yes.
      </p>
    </section>
  );
}

/** Tells what was decided, whoever was first. */
function Outcome({ outcome }: { readonly outcome: InboxOutcome }) {
  const { action, timeline, receiptUrl } = outcome;
  const decided = lastDecision(timeline);
  if (decided === null) return null;
  return (
    <Notice tone={decided.type === "approved" ? "good" : "wait"}>
      <b>
        {action.method} {action.host}
      </b>{" "}
      <By verb={VERBS[decided.type]} actor={decided.actor} />. <a href={receiptUrl}>See its receipt</a>
    </Notice>
  );
}

const VERBS: Readonly<Record<Decided["type"], string>> = {
  created: "was asked for",
  approved: "was approved",
  rejected: "was rejected",
  cancelled: "was cancelled",
  retried: "was begun again",
};
