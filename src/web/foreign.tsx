/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import { visibleText } from "../domain/visible.ts";
import { counted } from "./words.ts";

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
      {isLong ? (
        <p class="quiet small on-screen">{`${counted(lines, "line")}: scroll in it to see the whole.`}</p>
      ) : null}
    </>
  );
}
