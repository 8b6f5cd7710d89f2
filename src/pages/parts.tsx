/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { ActionStatus } from "../actions/action.ts";
import { agoWords } from "./words.ts";

/** Every status in a colour and in a word, since not everybody sees the colour. */
const CHIPS: Readonly<Record<ActionStatus, { readonly tone: Tone; readonly word: string }>> = {
  pending: { tone: "busy", word: "Pending" },
  active: { tone: "busy", word: "Sending" },
  awaiting_approval: { tone: "wait", word: "Awaiting approval" },
  completed: { tone: "good", word: "Completed" },
  failed: { tone: "bad", word: "Failed" },
  cancelled: { tone: "still", word: "Cancelled" },
};

export type Tone = "good" | "wait" | "bad" | "busy" | "still";

/** Where an action is. */
export function StatusChip({ status }: { readonly status: ActionStatus }) {
  const { tone, word } = CHIPS[status];
  return <Chip tone={tone}>{word}</Chip>;
}

/** The same in a word alone. */
export function statusWord(status: ActionStatus): string {
  return CHIPS[status].word;
}

/** A short word in a colour. */
export function Chip({ tone, children }: { readonly tone: Tone; readonly children?: Child }) {
  return <span class={`chip chip-${tone}`}>{children}</span>;
}

const DATE_AND_TIME = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

const TIME_OF_DAY = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

export interface TimeProps {
  readonly at: Date;
  /** A moment that stands nearby: the day is left out where it is the same. */
  readonly near?: Date | undefined;
}

/** A moment in UTC, since a page without script can't know where its reader is; the exact one is its tooltip. */
export function Time({ at, near }: TimeProps) {
  const iso = at.toISOString();
  const isSameDay = near?.toISOString().slice(0, 10) === iso.slice(0, 10);
  return (
    <time datetime={iso} title={iso}>
      {`${(isSameDay ? TIME_OF_DAY : DATE_AND_TIME).format(at)} UTC`}
    </time>
  );
}

const DATE = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short", year: "numeric" });

/** The day of a moment, in UTC, where the hour would be noise; the exact one is its tooltip. */
export function Day({ at }: { readonly at: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso}>
      {DATE.format(at)}
    </time>
  );
}

/** How long ago a moment was; where scripts run, `live.js` keeps it true. */
export function Ago({ at, now }: { readonly at: Date; readonly now: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso} data-ago>
      {agoWords(now.getTime() - at.getTime())}
    </time>
  );
}

export interface TableProps {
  /** Read out before the table; not seen. */
  readonly caption: string;
  readonly heads: readonly string[];
  /** Its columns need more room than a phone has: it scrolls in itself, and is reached by keys (WCAG 2.1.1). */
  readonly isWide?: boolean;
  /** Rows of `<tr>`. */
  readonly children?: Child;
}

/** A table that scrolls in itself where the screen is small. */
export function Table({ caption, heads, isWide = false, children }: TableProps) {
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
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** What just happened, or what is wrong. */
export function Notice({ tone, children }: { readonly tone: "good" | "wait" | "bad"; readonly children?: Child }) {
  return (
    <p class={`notice notice-${tone}`} role="status">
      {children}
    </p>
  );
}

/** Names and values, one below the other. A value that is null leaves its row out. */
export function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: Child])[] }) {
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
