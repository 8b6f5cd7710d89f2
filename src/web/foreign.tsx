/** @jsxImportSource hono/jsx */
import { visibleParts } from "../domain/visible.ts";

export interface ForeignProps {
  readonly text: string;
}

/** One line that somebody else wrote: set apart, in one piece, and with nothing in it that can't be seen (hostile 7). */
export function Foreign({ text }: ForeignProps) {
  return <bdi class="theirs">{partsOf(text, false)}</bdi>;
}

/** More than this stands in a window of its own: all of it is there, and the page can still be passed. */
const LINES_SHOWN_MAX = 120;
const CHARS_SHOWN_MAX = 12_000;

/** The same of many lines. */
export function ForeignBlock({ text, label }: ForeignProps & { readonly label: string }) {
  const isLong = text.length > CHARS_SHOWN_MAX || text.split("\n", LINES_SHOWN_MAX + 1).length > LINES_SHOWN_MAX;
  // A window that scrolls has to be reachable by keys (WCAG 2.1.1).
  return isLong ? (
    <pre class="code long" dir="ltr" tabindex={0} role="region" aria-label={label}>
      {partsOf(text, true)}
    </pre>
  ) : (
    <pre class="code" dir="ltr">
      {partsOf(text, true)}
    </pre>
  );
}

function partsOf(text: string, keepsLines: boolean) {
  return visibleParts(text, { keepsLines }).map((part) =>
    "text" in part ? part.text : <span class="code-point">{part.code}</span>,
  );
}
