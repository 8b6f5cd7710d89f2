/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { ActionStatus } from "../actions/action.ts";
import { agoWords } from "./words.ts";

/** Each status has a color and a word, because not everyone can see the color. */
const CHIPS: Readonly<Record<ActionStatus, { readonly tone: Tone; readonly word: string }>> = {
  pending: { tone: "busy", word: "Pending" },
  active: { tone: "busy", word: "Sending" },
  awaiting_approval: { tone: "wait", word: "Awaiting approval" },
  completed: { tone: "good", word: "Completed" },
  failed: { tone: "bad", word: "Failed" },
  cancelled: { tone: "still", word: "Cancelled" },
};

export type Tone = "good" | "wait" | "bad" | "busy" | "still";

export function StatusChip({ status }: { readonly status: ActionStatus }) {
  const { tone, word } = CHIPS[status];
  return <Chip tone={tone}>{word}</Chip>;
}

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
  /** A time shown nearby: the date is omitted if it is the same. */
  readonly near?: Date | undefined;
}

/** A time in UTC, because the server doesn't know the reader's time zone. The tooltip has the exact time. */
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

/** A date in UTC. The tooltip has the exact time. */
export function Day({ at }: { readonly at: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso}>
      {DATE.format(at)}
    </time>
  );
}

/** How long ago a time was. `live.js` updates it. */
export function Ago({ at, now }: { readonly at: Date; readonly now: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso} data-ago>
      {agoWords(now.getTime() - at.getTime())}
    </time>
  );
}

export interface TableProps {
  /** For screen readers only. */
  readonly caption: string;
  readonly heads: readonly string[];
  /** Too wide for a phone: it scrolls, and can be focused by keyboard (WCAG 2.1.1). */
  readonly isWide?: boolean;
  /** Rows of `<tr>`. */
  readonly children?: Child;
}

/** A table that scrolls on small screens. */
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

/** A status message. */
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
