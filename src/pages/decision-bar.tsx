/** @jsxImportSource hono/jsx */
import { REASON_CHARS_MAX } from "../core/limits.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { Problem } from "../ui/parts.tsx";
import { number, type PageUser } from "../ui/text.ts";

interface DecisionBarProps {
  readonly user: PageUser;
  /** Unique on the page. */
  readonly id: string;
  /** Where the form is sent. */
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string | number])[];
  /** What is decided, as in "Approve 6 requests"; empty for one request. */
  readonly what: string;
  /** How much there is to read before an approval, as in "21 values". */
  readonly extent?: string | undefined;
  /** The same in the question of a confirmation. */
  readonly question: string;
  /** What of it is not shown at all; null: all of it is. */
  readonly unread: string | null;
  /** How many items and fields of it are closed at first. */
  readonly folded: number;
  /** Where scripts run, Approve waits until the end was in view and nothing is folded. */
  readonly isAtEnd?: boolean;
  /** What was wrong with the form before. */
  readonly problem?: string | undefined;
  readonly reason?: string | undefined;
}

/** The end of what a person has to see before a decision. */
export function EndOfRequest() {
  return <div id="end-of-request" data-end="" />;
}

/** In the button that approves: what of the body is not on the page, until it was loaded (base.css). */
export function Unread({ what }: { readonly what: string | null }) {
  // The number of lines is enough here: the page has the one of characters.
  const [short = ""] = what?.split(" (") ?? [];
  return what === null ? null : <span class="decide-rest decide-unread">{`, with ${short} not shown`}</span>;
}

/** In the button that approves: what is closed, which goes away when all of it is opened (base.css). */
export function Folded({ count }: { readonly count: number }) {
  return count === 0 ? null : <span class="decide-rest decide-folded">{`, with ${number(count)} folded`}</span>;
}

/**
 * The decision on what stands above it. Where scripts run it stays in view, and until its end (`EndOfRequest`) was in view too,
 * the bar and the button say how much is below; without scripts it comes after the whole request.
 */
export function DecisionBar({
  user,
  id,
  path,
  fields,
  what,
  extent,
  question,
  unread,
  folded,
  isAtEnd = false,
  problem,
  reason = "",
}: DecisionBarProps) {
  const of = what === "" ? "" : ` ${what}`;
  return (
    <PostForm user={user} action={path} fields={fields} class="decide">
      <Problem text={problem} />
      <p class="notice notice-wait" data-gone="" hidden>
        Someone has already decided.
      </p>
      <div class="decide-row">
        <Button
          name="decision"
          value="approve"
          hotkey={{ key: "a", question: `Approve ${question}?` }}
          waitsFor={isAtEnd ? `why-${id}` : undefined}
        >
          <span>
            {`Approve${of}${extent === undefined ? "" : ` · ${extent}`}`}
            <Unread what={unread} />
            {!isAtEnd ? <span class="decide-rest" data-below="" hidden /> : null}
            <Folded count={folded} />
          </span>
        </Button>
        <Button name="decision" value="reject" look="bad" hotkey={{ key: "r", question: `Reject ${question}?` }}>
          {`Reject${of}`}
        </Button>
        <details class="decide-note" open={reason !== "" || problem !== undefined}>
          <summary>
            <span class="on-wide">Add a note</span>
            <span class="on-narrow">Note</span>
          </summary>
          <textarea
            id={`reason-${id}`}
            name="reason"
            rows={2}
            maxlength={REASON_CHARS_MAX}
            aria-label="Note"
            placeholder="Shown to the requester and on the receipt."
          >
            {reason}
          </textarea>
        </details>
      </div>
      <a
        id={isAtEnd ? `why-${id}` : undefined}
        class={isAtEnd ? "decide-why" : "decide-more"}
        href="#end-of-request"
        data-below-link=""
        hidden
      >
        More below
      </a>
    </PostForm>
  );
}
