/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { type Decided, lastDecision } from "./decided.ts";
import { Foreign } from "./foreign.tsx";
import { By, Who } from "./happening.tsx";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { shown } from "./shown.ts";
import type { Visitor } from "./visitor.ts";
import { agoWords } from "./words.ts";

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
  /** Behind which the next page begins; null when there is none. */
  readonly after: string | null;
  readonly outcome: InboxOutcome | null;
  readonly now: Date;
}

/** What waits for a person; each leads to a page of its own, where it is read and decided. */
export function inboxPage({ visitor, actions, after, outcome, now }: InboxProps): string {
  return render(
    <Layout title="Approvals" place="Approvals" visitor={visitor}>
      <div class="head">
        <h1>Approvals</h1>
        <p class="quiet">{countOf(actions.length, after !== null)}</p>
      </div>
      {outcome === null ? null : <Outcome outcome={outcome} />}
      {actions.length === 0 ? <Empty /> : <Waiting actions={actions} now={now} />}
      {after === null ? null : (
        <p>
          <a class="button button-plain" href={`/approvals?after=${encodeURIComponent(after)}`}>
            Next page
          </a>
        </p>
      )}
    </Layout>,
  );
}

function countOf(count: number, isMore: boolean): string {
  if (isMore) return `${count} requests on this page, the oldest first; there are more.`;
  if (count === 0) return "Nothing waits for you.";
  return count === 1 ? "1 request waits for you." : `${count} requests wait for you, the oldest first.`;
}

function Waiting({ actions, now }: Pick<InboxProps, "actions" | "now">) {
  return (
    <ul class="rows card">
      {actions.map(shown).map((action) => (
        <li class="row">
          <a class="row-link" href={`/approvals/${action.id}`}>
            {action.method} <Foreign text={action.host} />
          </a>
          <Glimpse text={action.url.slice(action.url.indexOf("//") + 2 + action.host.length)} />
          {action.body === null ? null : <Glimpse text={action.body} />}
          <p class="quiet small">
            <Who actor={action.createdBy} />, {waitOf(action.createdAt, now)}
          </p>
        </li>
      ))}
    </ul>
  );
}

/** The beginning of something, as much as a line holds. */
function Glimpse({ text }: { readonly text: string }) {
  return (
    <p class="glimpse">
      <Foreign text={text.slice(0, GLIMPSE_CHARS)} />
    </p>
  );
}

/** More than one line of a wide screen; the style cuts it where the line ends. */
const GLIMPSE_CHARS = 240;

function waitOf(since: Date, now: Date) {
  const iso = since.toISOString();
  return (
    <time datetime={iso} title={iso}>
      {agoWords(now.getTime() - since.getTime())}
    </time>
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
