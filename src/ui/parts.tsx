/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { ActionStatus } from "../core/action.ts";
import { describeActor } from "../core/roles.ts";
import { Icon } from "./icons.tsx";
import { visibleText } from "../receipts/visible-text.ts";
import { counted } from "./text.ts";
import { timeAgo, timeUntil, utcFormat } from "../core/clock.ts";
import { TIME_FORMATS } from "./time-formats.ts";

/** Words with elements between them: sentence`revoked the key ${<Name text={name} />}`. */
export function sentence(words: TemplateStringsArray, ...parts: readonly Child[]) {
  return <>{words.map((word, at) => [word, parts[at]])}</>;
}

interface LinkBack {
  readonly href: string;
  readonly name: string;
  /** Whether to show the title only in narrow windows, because wide ones have it in a list beside the page. */
  readonly isOnlyNarrow?: boolean;
}

function BackLink({ href, name, isOnlyNarrow = false }: LinkBack) {
  return (
    <a class={`back on-screen${isOnlyNarrow ? " only-narrow" : ""}`} href={href}>
      <Icon name="back" />
      {name}
    </a>
  );
}

export interface PageHeadProps {
  readonly title: Child;
  readonly back?: LinkBack | undefined;
  readonly intro?: Child;
  readonly actions?: Child;
  readonly children?: Child;
}

export function PageHead({ title, back, intro, actions, children }: PageHeadProps) {
  return (
    <div class="head between">
      <div>
        {back === undefined ? null : <BackLink {...back} />}
        <h1>{title}</h1>
        {intro === undefined ? null : <p class="quiet">{intro}</p>}
        {children}
      </div>
      {actions === undefined ? null : <div class="buttons">{actions}</div>}
    </div>
  );
}

interface CardProps {
  readonly id: string;
  readonly title: Child;
  /** Classes besides the panel's. */
  readonly look?: string;
  /** Shown at the end of the title's line. */
  readonly aside?: Child;
  readonly children?: Child;
}

export function Card({ id, title, look, aside = null, children }: CardProps) {
  const heading = <h2 id={id}>{title}</h2>;
  return (
    <section class={look === undefined ? "card" : `card ${look}`} aria-labelledby={id}>
      {aside === null ? (
        heading
      ) : (
        <div class="between">
          {heading}
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}

export function SubSection({ title, children }: { readonly title: Child; readonly children?: Child }) {
  return (
    <div class="stack">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

interface LinkButtonProps {
  readonly href: string;
  readonly look?: "main" | "plain" | "bad";
  readonly children?: Child;
}

export function LinkButton({ href, look = "plain", children }: LinkButtonProps) {
  return (
    <a class={look === "main" ? "button" : `button button-${look}`} href={href}>
      {children}
    </a>
  );
}

/** The button to a list's next page. Shows nothing if `href` is null. */
export function NextPage({ href, name }: { readonly href: string | null; readonly name: string }) {
  if (href === null) return null;
  return (
    <p>
      <LinkButton href={href}>{name}</LinkButton>
    </p>
  );
}

export type Tone = "good" | "wait" | "bad" | "busy" | "still";

/** Each status has a color and a word, because not everyone can see the color. */
const STATUSES: Readonly<Record<ActionStatus, { readonly tone: Tone; readonly label: string }>> = {
  pending: { tone: "busy", label: "Pending" },
  active: { tone: "busy", label: "Sending" },
  awaiting_approval: { tone: "wait", label: "Awaiting approval" },
  completed: { tone: "good", label: "Completed" },
  failed: { tone: "bad", label: "Failed" },
  cancelled: { tone: "still", label: "Cancelled" },
};

/** A status as a dot with its word and the target's response code. */
export function StatusDot({ status, code = null }: { readonly status: ActionStatus; readonly code?: number | null }) {
  return <Dot tone={STATUSES[status].tone}>{`${statusLabel(status)}${code === null ? "" : ` ${code}`}`}</Dot>;
}

export function statusLabel(status: ActionStatus): string {
  return STATUSES[status].label;
}

export function Dot({ tone, children }: { readonly tone: Tone; readonly children?: Child }) {
  return <span class={`dot dot-${tone}`}>{children}</span>;
}

export function Notice({ tone, children }: { readonly tone: "good" | "wait" | "bad"; readonly children?: Child }) {
  return (
    <p class={`notice notice-${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

export function Problem({ text }: { readonly text: string | null | undefined }) {
  return text === null || text === undefined ? null : <Notice tone="bad">{text}</Notice>;
}

/** The forms of times in UTC, which the script replaces by the reader's time zone. */
const FORMATS = {
  full: utcFormat(TIME_FORMATS.full),
  short: utcFormat(TIME_FORMATS.short),
  day: utcFormat(TIME_FORMATS.day),
  weekday: utcFormat(TIME_FORMATS.weekday),
  date: utcFormat(TIME_FORMATS.date),
  clock: utcFormat(TIME_FORMATS.clock),
  minute: utcFormat(TIME_FORMATS.minute),
};

/** What the script shows instead, in the reader's time zone: how long ago, date and time, only the time, only the date. */
type ExactForm = "ago" | "full" | "minutes" | "clock" | "day" | "until";

/** A time. Without script it is in UTC, because the server doesn't know the reader's zone. The tooltip has the other form. */
function exactTime(at: Date, as: ExactForm, text: Child) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso} data-time={as}>
      {text}
    </time>
  );
}

/** Whether two times are on the same day in UTC. The script divides lists by the reader's days. */
export function isSameDay(one: Date, other: Date | undefined): boolean {
  return one.toISOString().slice(0, 10) === other?.toISOString().slice(0, 10);
}

/** A time; null for none. `near` is a time shown nearby: the date is omitted if it is the same. */
export function time(at: Date | null, near?: Date) {
  if (at === null) return null;
  const as = isSameDay(at, near) ? "clock" : "full";
  return exactTime(at, as, `${FORMATS[as](at)} UTC`);
}

/** A time that the page already shows in UTC. */
export function timeInWords(at: Date, words: string) {
  return exactTime(at, "minutes", words);
}

export function day(at: Date) {
  return exactTime(at, "day", FORMATS.day(at));
}

/** A time in a list or chart, which has many: precise to the second, without a tooltip. */
export function listedTime(at: Date, as: "weekday" | "clock" | "minute" | "date" | "short") {
  return (
    <time datetime={at.toISOString().replace(/\.\d+/, "")} data-time={as}>
      {FORMATS[as](at)}
    </time>
  );
}

/** How long until a future time. The script keeps it current. */
export function until(at: Date, now: Date) {
  return exactTime(at, "until", timeUntil(at.getTime() - now.getTime()));
}

/** How long ago a time was. The script keeps it current. */
export function ago(at: Date, now: Date) {
  return exactTime(at, "ago", timeAgo(now.getTime() - at.getTime()));
}

interface TableProps {
  /** Only for screen readers. */
  readonly caption: string;
  readonly heads: readonly Child[];
  readonly rows: readonly (readonly Child[])[];
  /** Ids of the rows, by which updates find them. */
  readonly ids?: readonly string[];
  /** Whether it is too wide for phones. Then it scrolls, and keyboards can focus it (WCAG 2.1.1). */
  readonly isWide?: boolean;
}

/** A table that scrolls on small screens. */
export function Table({ caption, heads, rows, ids = [], isWide = false }: TableProps) {
  return (
    <div class="table" {...(isWide ? { role: "group", "aria-label": caption, tabindex: 0 } : {})}>
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, at) => (
            <tr id={ids[at]}>
              {cells.map((cell) => (
                <td>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Names and values. Rows with a null value are left out. */
export type FactRows = readonly (readonly [name: string, value: Child])[];

export function Facts({ rows }: { readonly rows: FactRows }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) =>
        value === null ? null : (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

/** Unicode ranges of right-to-left letters. */
const R = String.raw`\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}`;

const RIGHT_TO_LEFT = new RegExp(`[${R}](?:[${R} ]*[${R}])?`, "gu");

/** Longer texts are not isolated word by word, because each `<bdi>` costs rendering time. CSS sets them left to right. */
const ISOLATED_CHARS_MAX = 65_536;

/**
 * Escapes untrusted text, so that it contains no links or markup. Shows invisible characters as their codes. Isolates
 * right-to-left words, which would reorder digits and punctuation around them. Uses `Bun.escapeHTML`, because a body can have
 * a megabyte.
 */
function escaped(text: string, keepsLines: boolean) {
  const html = visibleText(Bun.escapeHTML(text), { keepsLines, mark: (code) => `<i>${code}</i>` });
  return raw(text.length > ISOLATED_CHARS_MAX ? html : html.replace(RIGHT_TO_LEFT, "<bdi>$&</bdi>"));
}

/** Untrusted text on one line; null for none. */
export function untrusted(text: string | null | undefined) {
  return text === null || text === undefined ? null : <bdi class="untrusted">{escaped(text, false)}</bdi>;
}

/** Untrusted text with its line breaks, each marked, so that no line can pass for ours. */
export function untrustedLines(text: string) {
  return (
    <bdi class="untrusted">
      {text.split(/\r?\n/).map((line, at) => (
        <>
          {at === 0 ? null : (
            <>
              <span class="quiet"> ↵</span>
              <br />
            </>
          )}
          {escaped(line, false)}
        </>
      ))}
    </bdi>
  );
}

/**
 * An untrusted path, perhaps with a query. Breaks lines after slashes: browsers don't before a digit, and they break at
 * hyphens, where nobody sees whether the hyphen is part of the address.
 */
export function untrustedPath(text: string) {
  return (
    <bdi class="untrusted">
      {text.split(/(?<=\/)/).map((part, at) => {
        if (part.includes("-") && !part.includes("?")) return <span class="segment">{escaped(part, false)}</span>;
        return (
          <>
            {at === 0 || /^[a-z/]/i.test(part) ? null : <wbr />}
            {escaped(part, false)}
          </>
        );
      })}
    </bdi>
  );
}

/** An untrusted name in the page's font. */
export function Name({ text }: { readonly text: string }) {
  return <b class="name">{untrusted(text)}</b>;
}

/** Who did something, and by which way. */
export function actorName(actor: string) {
  const { name, way } = describeActor(actor);
  return (
    <>
      <Name text={name} /> <span class="quiet">{way}</span>
    </>
  );
}

/** Longer blocks scroll in a box of their own. */
const LINES_OPEN_MAX = 150;

const CHARS_OPEN_MAX = 16_000;

interface UntrustedBlockProps {
  /** Read by screen readers. */
  readonly label: string;
  readonly text: string;
  /** Whether to show it without a scrolling box, so that approvers pass all of it. */
  readonly isOpen?: boolean;
}

/** Untrusted text of several lines. Keyboards can focus a scrolling box (WCAG 2.1.1). */
export function UntrustedBlock({ label, text, isOpen = false }: UntrustedBlockProps) {
  const lines = text.split("\n").length;
  const isLong = !isOpen && (text.length > CHARS_OPEN_MAX || lines > LINES_OPEN_MAX);
  const classes = ["code", ...(isLong ? ["long"] : []), ...(text.length > ISOLATED_CHARS_MAX ? ["in-order"] : [])];
  return (
    <>
      <pre class={classes.join(" ")} dir="ltr" role="group" aria-label={label} tabindex={isLong ? 0 : undefined}>
        {escaped(text, true)}
      </pre>
      {isLong ? <p class="quiet small on-screen">{`${counted(lines, "line")}. Scroll to see all of them.`}</p> : null}
    </>
  );
}
