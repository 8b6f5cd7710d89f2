/** @jsxImportSource hono/jsx */
import { type Action, type ActionStatus, isTerminal } from "../actions/action.ts";
import { normalTarget } from "../outbound/normal-target.ts";
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

/** The same call as a command or program, and what its target needs to verify it. */
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

/** How the receiver of this very call verifies it (decisions 6). */
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

/** The ranges that Unicode keeps for letters that run from right to left, and such words with spaces between them. */
const R = String.raw`\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}`;

const RIGHT_TO_LEFT = new RegExp(`[${R}](?:[${R} ]*[${R}])?`, "gu");

/** A longer text is set letter by letter from left to right, since each word that stands alone costs time. */
const WORDS_ALONE_CHARS_MAX = 65_536;

/**
 * What agents, targets and strangers wrote. It is escaped and nothing else: no link, no markup, and what could not be
 * seen is shown as its code (hostile 7). Words from right to left stand alone: the figures and marks around them would
 * change places with them. By the engine's own escape, since a body may have a megabyte.
 */
function escaped(text: string, keepsLines: boolean) {
  const html = visibleText(Bun.escapeHTML(text), { keepsLines, mark: (code) => `<i>${code}</i>` });
  return raw(text.length > WORDS_ALONE_CHARS_MAX ? html : html.replace(RIGHT_TO_LEFT, "<bdi>$&</bdi>"));
}

/** One line, in one piece. */
export function UntrustedText({ text }: { readonly text: string }) {
  return <bdi class="theirs">{escaped(text, false)}</bdi>;
}

/** The beginning of something, as much as a line holds. */
export function Glimpse({ text }: { readonly text: string }) {
  return (
    <p class="glimpse">
      <UntrustedText text={text.slice(0, GLIMPSE_CHARS)} />
    </p>
  );
}

/** More than one line of a wide screen; the style cuts it where the line ends. */
const GLIMPSE_CHARS = 240;

/** More than this stands in a window of its own: all of it is there, and the page can still be passed. */
const LINES_OPEN_MAX = 150;

const CHARS_OPEN_MAX = 16_000;

export interface UntrustedBlockProps {
  /** What it is, for whoever hears the page. */
  readonly label: string;
  readonly text: string;
  /** It has no window, however long it is: somebody has to decide on all of it. */
  readonly isOpen?: boolean;
}

/** Many lines. A window that scrolls can be reached by keys (WCAG 2.1.1). */
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

/** What a stretch of time was spent with. */
export type SpanKind = "approval" | "wait" | "running" | "good" | "bad";

/** A stretch in the life of an action. */
export interface Span {
  readonly kind: SpanKind;
  readonly from: Date;
  readonly to: Date;
  /** Of an attempt. */
  readonly attempt: number | null;
}

/** One run, from its beginning to its end, or to now. */
export interface RunSpans {
  readonly run: number;
  readonly from: Date;
  readonly to: Date;
  readonly spans: readonly Span[];
}

/** Takes the timeline of an action, oldest first, apart into runs and what each was spent with. Pure. */
export function runsOf(timeline: readonly TimelineEntry[], now: Date): readonly RunSpans[] {
  const runs = Map.groupBy(timeline.filter(isOfState), ({ run }) => run);
  return [...runs].map(([run, entries]) => {
    const [first] = entries;
    const spans = spansOf(entries, now);
    const from = first?.at ?? now;
    return { run, from, to: spans.at(-1)?.to ?? from, spans };
  });
}

/** Callbacks and mails are told of beside what happens to the action. */
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

/** By the status in between, and for an attempt by how it ended. */
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
