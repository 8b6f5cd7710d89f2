/** @jsxImportSource hono/jsx */
import { DecisionBody } from "../../api/action-schemas.ts";
import type { ShownRequest } from "../../approvals/decide.ts";
import type { Decision } from "../../core/action.ts";
import { DomainError } from "../../core/domain-error.ts";
import { ACTION_ID } from "../../core/ids.ts";
import { DECISIONS_AT_ONCE_MAX, DIGEST_CHARS_MAX, REASON_CHARS_MAX } from "../../core/limits.ts";
import type { Form } from "../../http/body.ts";
import { Button, PostForm } from "../../ui/form.tsx";
import { Problem } from "../../ui/parts.tsx";
import { counted, number, type PageUser } from "../../ui/text.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";
import type { PageBody } from "../../ui/body-view.tsx";
import { callText } from "../../ui/request.tsx";
import type { FormState } from "../frame/forms.ts";
import { GrantFold, type GrantOffer } from "../rules/grant-form.tsx";
import { schemaForm } from "../frame/schema-form.tsx";

/** A decision that could not be taken: what was wrong, and what was typed. */
export interface RefusedDecision {
  readonly problem: string;
  readonly reason: string | undefined;
  /** The fields for allowing more calls, and what is wrong with them; left out if it was another decision. */
  readonly grant?: FormState;
}

interface AskedOn {
  readonly action: Pick<SeenAction, "id" | "run" | "method" | "host">;
  readonly digest: string;
  /** How much of its body the page leaves out or shows folded; null if there is no body. */
  readonly body: Pick<PageBody, "rest" | "folded"> | null;
}

interface DecisionFormProps {
  /** Null for whoever has an approval link. That page has no scripts. */
  readonly user: PageUser | null;
  /** Where the form is sent; by default to the same page. */
  readonly path?: string;
  /** The requests that it decides on, as the page shows them. */
  readonly asked: readonly AskedOn[];
  readonly fields?: readonly (readonly [name: string, value: string])[];
  readonly main?: Decision;
  /** The words after "Approve", as in "Approve 6"; left out for one request. */
  readonly what?: string;
  /** How much there is to read first, as in "21 values". */
  readonly extent?: string | undefined;
  /** Whether scripts disable Approve until the end was in view and nothing is folded. */
  readonly isAtEnd?: boolean;
  /** What an approval can also allow; null for nothing. */
  readonly offer?: GrantOffer | null;
  /** The form that was sent before; left out if none was. */
  readonly refused?: RefusedDecision | undefined;
}

/**
 * The decision on the request above it. Without scripts it comes after the whole request. With scripts it stays in view, and
 * says how much is below until the end of the request (`EndOfRequest`) was in view.
 */
export function DecisionForm(props: DecisionFormProps) {
  const { user, path, asked, fields = [], main = "approve", what, extent } = props;
  const { isAtEnd = false, offer = null, refused } = props;
  const shown = shownField(asked.map(({ action: { id: of, run }, digest }) => ({ id: of, run, digest })));
  const kept = user?.keptNote?.requests === shown[1] ? user.keptNote.reason : "";
  const reason = refused?.reason ?? kept;
  const [first, ...others] = asked;
  const id = first?.action.id ?? "";
  const subject = first === undefined || others.length > 0 ? counted(asked.length, "request") : callText(first.action);
  const hotkey = (key: "a" | "r", verb: string) =>
    user === null ? undefined : { key, question: `${verb} ${subject}?` };
  const unread = unreadText(asked);
  const folded = asked.reduce((sum, { body }) => sum + (body?.folded ?? 0), 0);
  /* What is missing on the page or folded. Each text disappears once that is loaded or opened (`json-view.css`). */
  const rest = (
    <>
      {unread === null ? null : <span class="decide-rest decide-unread">{`, with ${unread} not shown`}</span>}
      {user === null || isAtEnd ? null : <span class="decide-rest" data-below="" hidden />}
      {folded === 0 ? null : <span class="decide-rest decide-folded">{`, with ${number(folded)} folded`}</span>}
    </>
  );
  const approve = (
    <Button
      name="decision"
      value="approve"
      look={main === "approve" ? "main" : "plain"}
      hotkey={hotkey("a", "Approve")}
      waitsFor={isAtEnd ? `why-${id}` : undefined}
    >
      <span>
        {`Approve${what === undefined ? "" : ` ${what}`}${extent === undefined ? "" : ` · ${extent}`}`}
        {rest}
      </span>
    </Button>
  );
  const reject = (
    <Button name="decision" value="reject" look={main === "reject" ? "danger" : "bad"} hotkey={hotkey("r", "Reject")}>
      {`Reject${what === undefined ? "" : ` ${what}`}`}
    </Button>
  );
  return (
    <PostForm
      user={user}
      action={path}
      fields={[shown, ...(user === null ? [] : [["person", user.email] as const]), ...fields]}
      class="decide"
    >
      <Problem text={refused?.problem} />
      {user === null ? null : (
        <p class="notice notice-wait" role="status" data-gone="" hidden>
          Someone has already decided.
        </p>
      )}
      <div class="buttons decide-row">
        {/* First in the form, because Enter in a field presses the first button. */}
        {offer === null ? null : <GrantFold offer={offer} typed={refused?.grant} rest={rest} />}
        {main === "approve" ? [approve, reject] : [reject, approve]}
        <details class="decide-note" open={reason !== "" || (refused !== undefined && refused.grant === undefined)}>
          <summary>Add note</summary>
          <textarea
            id={`reason-${id}`}
            name="reason"
            rows={2}
            maxlength={REASON_CHARS_MAX}
            aria-label="Note"
            placeholder="Shown to the requester and on the receipt."
            data-person={user?.email}
          >
            {reason}
          </textarea>
        </details>
      </div>
      {user === null ? null : (
        <a
          id={isAtEnd ? `why-${id}` : undefined}
          class={isAtEnd ? "decide-why" : "decide-more"}
          href="#end-of-request"
          data-below-link=""
          hidden
        >
          More below
        </a>
      )}
    </PostForm>
  );
}

/** What the page doesn't show, in few words; null if it shows all. The number of characters is beside each body. */
function unreadText(asked: readonly AskedOn[]): string | null {
  const cut = asked.flatMap(({ body }) => body?.rest ?? []);
  if (asked.length > 1) return cut.length === 0 ? null : `parts of ${cut.length}`;
  return cut[0]?.split(" (")[0] ?? null;
}

/** Marks the end of what people must see before they decide. */
export function EndOfRequest() {
  return <div id="end-of-request" data-end="" />;
}

const REQUESTS_FIELD = "requests";

/** The field that binds a form to what its page shows: "id,run,digest" of each request, separated by spaces. */
export function shownField(requests: readonly ShownRequest[]): readonly [name: string, value: string] {
  return [REQUESTS_FIELD, requests.map(({ id, run, digest }) => `${id},${run},${digest}`).join(" ")];
}

/** The requests that a form decides on. Throws `validation_error`. */
export function requestsInForm(fields: Form): readonly ShownRequest[] {
  const named = (fields.get(REQUESTS_FIELD) ?? "").split(" ").map((text): ShownRequest | null => {
    const [id = "", run = "", digest = "", ...more] = text.split(",");
    const isOurs = ACTION_ID.test(id) && /^\d{1,9}$/.test(run) && digest !== "" && digest.length <= DIGEST_CHARS_MAX;
    return isOurs && more.length === 0 ? { id, run: Number(run), digest } : null;
  });
  const requests = named.filter((request) => request !== null);
  if (requests.length === named.length && requests.length <= DECISIONS_AT_ONCE_MAX) return requests;
  throw new DomainError("validation_error", `Select 1 to ${DECISIONS_AT_ONCE_MAX} requests in the list.`);
}

/** The single request that a form decides on. Forms of earlier versions don't say what was shown. Throws `validation_error`. */
export function requestInForm(fields: Form, id: string): ShownRequest {
  const [request, ...others] = fields.has(REQUESTS_FIELD) ? requestsInForm(fields) : [];
  if (request?.id === id && others.length === 0) return request;
  throw new DomainError(
    "validation_error",
    "This form doesn't say what its page showed, which may be from before an update. Read the action again before you decide.",
  );
}

/** The choice and the reason in a form. Throws `validation_error`. */
export function choiceInForm<Choice extends string>(fields: Form, choices: readonly Choice[]) {
  const decision = choices.find((choice) => choice === fields.get("decision"));
  if (decision !== undefined) return { decision, reason: reasonInForm(fields) };
  throw new DomainError("validation_error", "Choose what to do.", [
    { field: "decision", message: `Must be ${choices.join(" or ")}.` },
  ]);
}

const REASON_FORM = schemaForm(DecisionBody, { reason: {} });

/** The reason in a form; null if empty. Throws `validation_error`. */
export function reasonInForm(fields: Form): string | null {
  return REASON_FORM.check(fields).reason ?? null;
}
