/** @jsxImportSource hono/jsx */
import { type Action, type ActionStatus, isTerminal } from "../actions/action.ts";
import { normalTarget } from "../outbound/target.ts";
import { keyHeader, counted } from "./words.ts";
import { createSnippets } from "./snippets.tsx";
import { raw } from "hono/html";
import { visibleText } from "../receipts/visible-text.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";

export interface CodeProps {
  readonly action: Action;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** The call as curl, TypeScript, Python and MCP, and how its target verifies it. */
export function Code({ action, baseUrl }: CodeProps) {
  const snippets = createSnippets(action, baseUrl);
  const target = normalTarget(action.url);
  return (
    <section class="card" aria-labelledby="code">
      <div>
        <h2 id="code">As code</h2>
        <p class="quiet small">
          Code that creates the same request again. Replace the placeholders with your key and secrets.
        </p>
      </div>
      {snippets === null ? (
        <p class="quiet">This request is too long to show as code. Read it from the API and send it from a file.</p>
      ) : null}
      <div class="folds">
        {(snippets ?? []).map(({ name, text }) => (
          <details name="code">
            <summary>{name}</summary>
            <div data-copy="">
              <UntrustedBlock label={name} text={text} />
            </div>
          </details>
        ))}
        {target === null ? null : <Verification origin={target.origin} baseUrl={baseUrl} />}
      </div>
    </section>
  );
}

function Verification({ origin, baseUrl }: { readonly origin: string; readonly baseUrl: string }) {
  const secret = `curl -s '${baseUrl}/v1/signing-secret?origin=${origin}' ${keyHeader("OWNER_KEY")}`;
  const verify = `import { Webhook } from "standardwebhooks"; // npm install standardwebhooks

// Throws unless the call came from this Outgate, unchanged, within the last five minutes.
new Webhook(process.env.OUTGATE_SIGNING_SECRET).verify(rawBody, headers);`;
  return (
    <details name="code">
      <summary>Verify its signature</summary>
      <div class="stack">
        <p>
          Calls are signed according to Standard Webhooks, with a separate secret for <b class="theirs">{origin}</b>.
          Read it with an owner key:
        </p>
        <div data-copy="">
          <UntrustedBlock label="Read the secret" text={secret} />
        </div>
        <p>Verify the raw bytes of each call with it:</p>
        <div data-copy="">
          <UntrustedBlock label="Verify a call" text={verify} />
        </div>
      </div>
    </details>
  );
}

/** Unicode ranges of right-to-left letters. */
const R = String.raw`\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}`;

const RIGHT_TO_LEFT = new RegExp(`[${R}](?:[${R} ]*[${R}])?`, "gu");

/** Longer texts are not isolated word by word, because each `<bdi>` costs rendering time; CSS sets them left to right. */
const WORDS_ALONE_CHARS_MAX = 65_536;

/**
 * Escapes untrusted text. It never contains links or markup, and invisible characters are shown as their codes. Words from
 * right to left are isolated, because they would reorder the digits and punctuation around them. Uses `Bun.escapeHTML`,
 * because a body can have a megabyte.
 */
function escaped(text: string, keepsLines: boolean) {
  const html = visibleText(Bun.escapeHTML(text), { keepsLines, mark: (code) => `<i>${code}</i>` });
  return raw(text.length > WORDS_ALONE_CHARS_MAX ? html : html.replace(RIGHT_TO_LEFT, "<bdi>$&</bdi>"));
}

/** Untrusted text on one line. */
export function UntrustedText({ text }: { readonly text: string }) {
  return <bdi class="theirs">{escaped(text, false)}</bdi>;
}

/** The beginning of a text, on one line. */
export function Glimpse({ text }: { readonly text: string }) {
  return (
    <p class="glimpse">
      <UntrustedText text={text.slice(0, GLIMPSE_CHARS)} />
    </p>
  );
}

/** More than a wide screen shows; CSS cuts the rest. */
const GLIMPSE_CHARS = 240;

/** Longer blocks scroll in a box of their own. */
const LINES_OPEN_MAX = 150;

const CHARS_OPEN_MAX = 16_000;

export interface UntrustedBlockProps {
  /** Read by screen readers. */
  readonly label: string;
  readonly text: string;
  /** Never scrolls in a box: an approver must come past all of it. */
  readonly isOpen?: boolean;
}

/** Untrusted text of several lines. A box that scrolls can be focused by keyboard (WCAG 2.1.1). */
export function UntrustedBlock({ label, text, isOpen = false }: UntrustedBlockProps) {
  const lines = text.split("\n").length;
  const isLong = !isOpen && (text.length > CHARS_OPEN_MAX || lines > LINES_OPEN_MAX);
  const classes = ["code", isLong ? "long" : "", text.length > WORDS_ALONE_CHARS_MAX ? "in-order" : ""];
  return (
    <>
      <pre
        class={classes.filter((name) => name !== "").join(" ")}
        dir="ltr"
        role="group"
        aria-label={label}
        tabindex={isLong ? 0 : undefined}
      >
        {escaped(text, true)}
      </pre>
      {isLong ? <p class="quiet small on-screen">{`${counted(lines, "line")}. Scroll to see all of them.`}</p> : null}
    </>
  );
}

export type SpanKind = "approval" | "wait" | "running" | "good" | "bad";

/** A period in the life of an action. */
export interface Span {
  readonly kind: SpanKind;
  readonly from: Date;
  readonly to: Date;
  /** The number of the attempt; null for other periods. */
  readonly attempt: number | null;
}

/** One run, from its beginning to its end, or to now. */
export interface RunSpans {
  readonly run: number;
  readonly from: Date;
  readonly to: Date;
  readonly spans: readonly Span[];
}

/** Splits a timeline, oldest first, into runs and their periods. */
export function runsOf(timeline: readonly TimelineEntry[], now: Date): readonly RunSpans[] {
  const runs = Map.groupBy(timeline.filter(isOfState), ({ run }) => run);
  return [...runs].map(([run, entries]) => {
    const [first] = entries;
    const spans = spansOf(entries, now);
    const from = first?.at ?? now;
    return { run, from, to: spans.at(-1)?.to ?? from, spans };
  });
}

/** Callbacks and mails don't change the state. */
function isOfState({ event }: TimelineEntry): boolean {
  return event.type !== "callback" && event.type !== "mail";
}

function spansOf(entries: readonly TimelineEntry[], now: Date): readonly Span[] {
  const spans: Span[] = [];
  for (const [index, entry] of entries.entries()) {
    if (isTerminal(entry.status)) break;
    const next = entries[index + 1];
    const { kind, attempt } = kindOf(entry.status, next?.event);
    const to = next?.at ?? now;
    const last = spans.at(-1);
    if (last !== undefined && last.kind === kind && attempt === null) spans[spans.length - 1] = { ...last, to };
    else spans.push({ kind, from: entry.at, to, attempt });
  }
  return spans.filter(({ from, to, attempt }) => attempt !== null || to > from);
}

function kindOf(status: ActionStatus, end: TimelineEvent | undefined): Pick<Span, "kind" | "attempt"> {
  if (end?.type === "attempt") return { kind: end.error === null ? "good" : "bad", attempt: end.attempt };
  return { kind: KINDS[status], attempt: null };
}

const KINDS: Readonly<Record<ActionStatus, SpanKind>> = {
  awaiting_approval: "approval",
  pending: "wait",
  active: "running",
  completed: "wait",
  failed: "wait",
  cancelled: "wait",
};
