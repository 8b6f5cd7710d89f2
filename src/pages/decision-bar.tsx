/** @jsxImportSource hono/jsx */
import { REASON_CHARS_MAX } from "../core/limits.ts";
import type { Decision } from "../core/action.ts";
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
function Unread({ what }: { readonly what: string | null }) {
  // The number of lines is enough here: the page has the one of characters.
  const [short = ""] = what?.split(" (") ?? [];
  return what === null ? null : <span class="decide-rest decide-unread">{`, with ${short} not shown`}</span>;
}

/** In the button that approves: what is closed, which goes away when all of it is opened (base.css). */
function Folded({ count }: { readonly count: number }) {
  return count === 0 ? null : <span class="decide-rest decide-folded">{`, with ${number(count)} folded`}</span>;
}

interface DecisionButtonsProps {
  /** The first, primary button; approve by default. */
  readonly main?: Decision;
  /** What is decided, and how much of it there is to read, as the button continues. */
  readonly what?: string;
  readonly extent?: string;
  /** The question of a confirmation, and the key that rejects; left out: no keys press them. */
  readonly asks?: { readonly question: string; readonly reject: "x" | "r" };
  readonly unread?: string | null;
  readonly folded: number;
  /** Where scripts run, the button says how much is below. */
  readonly isBelow?: boolean;
  readonly waitsFor?: string | undefined;
}

/** Both buttons of every decision. */
export function DecisionButtons(props: DecisionButtonsProps) {
  const { main = "approve", what = "", extent = "", asks, unread = null, folded, isBelow = false, waitsFor } = props;
  const hotkey = (key: "a" | "x" | "r", verb: string) =>
    asks === undefined ? undefined : { key, question: `${verb} ${asks.question}?` };
  const approve = (
    <Button
      name="decision"
      value="approve"
      look={main === "approve" ? "main" : "plain"}
      hotkey={hotkey("a", "Approve")}
      waitsFor={waitsFor}
    >
      <span>
        {`Approve${what}${extent}`}
        <Unread what={unread} />
        {isBelow ? <span class="decide-rest" data-below="" hidden /> : null}
        <Folded count={folded} />
      </span>
    </Button>
  );
  const reject = (
    <Button
      name="decision"
      value="reject"
      look={main === "reject" ? "danger" : "bad"}
      hotkey={hotkey(asks?.reject ?? "x", "Reject")}
    >
      {`Reject${what}`}
    </Button>
  );
  return <>{main === "approve" ? [approve, reject] : [reject, approve]}</>;
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
  return (
    <PostForm user={user} action={path} fields={fields} class="decide">
      <Problem text={problem} />
      <p class="notice notice-wait" data-gone="" hidden>
        Someone has already decided.
      </p>
      <div class="decide-row">
        <DecisionButtons
          what={what === "" ? "" : ` ${what}`}
          extent={extent === undefined ? "" : ` · ${extent}`}
          asks={{ question, reject: "r" }}
          unread={unread}
          folded={folded}
          isBelow={!isAtEnd}
          waitsFor={isAtEnd ? `why-${id}` : undefined}
        />
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
