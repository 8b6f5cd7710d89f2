/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { policySource } from "../../core/action-policy.ts";
import type { GrantTerms } from "../../core/grant.ts";
import type { JsonLeaf } from "../../core/json-tree.ts";
import { GRANT_FIELDS_SHOWN_MAX, GRANT_VARY_MAX } from "../../core/limits.ts";
import { requestFields, plainNumber, GrantTermsBody } from "../../grants/grants.ts";
import type { Form } from "../../http/body.ts";
import { MASK } from "../../receipts/mask-rules.ts";
import type { MaskedAction } from "../../receipts/seen-action.ts";
import { visibleText } from "../../receipts/visible-text.ts";
import { Button, Checkbox, Field, FieldGroup } from "../../ui/form.tsx";
import { untrusted } from "../../ui/parts.tsx";
import { filled, type FormState, problemBeside, fieldProblem, type RefusedForm } from "../frame/forms.ts";
import { schemaForm } from "../frame/schema-form.tsx";

/** The choice that approves one request and makes a grant. */
export const APPROVE_MORE = "approve_more";

/** What may differ in the further calls that an approval allows. */
export interface GrantOffer {
  readonly fields: readonly JsonLeaf[];
  /** Whether the body has more fields. */
  readonly isCut: boolean;
}

/**
 * What an approver of a held action can allow besides; null if a grant would lift no hold. Hidden values must stay equal,
 * because nobody sees what they are.
 */
export function grantOffer(action: MaskedAction): GrantOffer | null {
  const { policy, keyId } = action;
  if (keyId === "" || policy === null || !policySource(policy).isLiftedByGrants) return null;
  const fields = (requestFields(action) ?? []).filter(
    ({ path, text }) => path.length <= PATH_CHARS_MAX && !path.includes(MASK) && !text.includes(MASK),
  );
  return { fields: fields.slice(0, GRANT_FIELDS_SHOWN_MAX), isCut: fields.length > GRANT_FIELDS_SHOWN_MAX };
}

/** The schema's bound. */
const PATH_CHARS_MAX = 200;

const DURATIONS = [
  ["15", "15 minutes"],
  ["60", "1 hour"],
  ["480", "8 hours"],
  ["10080", "7 days"],
] as const;

/** The terms, of which a request has its own fields of what may differ. None is required: the same form approves without a grant. */
const TERMS_FORM = schemaForm(GrantTermsBody, {
  minutes: { label: "For how long", options: DURATIONS, required: false, wrong: "Choose for how long." },
  calls: { label: "How many calls", hint: null, required: false },
  vary: { wrong: `Tick at most ${GRANT_VARY_MAX}.` },
  max: { wrong: "Enter a number from 0 with at most 3 decimals." },
});

/** The shortest time is the default. */
const NEW_TERMS = filled({ minutes: DURATIONS[0][0], calls: "20" });

interface GrantFoldProps {
  readonly offer: GrantOffer;
  /** Undefined while nothing was typed and the part is folded. */
  readonly typed: FormState | undefined;
  /** How much of the request is unread, shown in its button. */
  readonly rest: Child;
}

/** Folded until somebody opens it, and never preselected: an approval is for one request. */
export function GrantFold({ offer: { fields, isCut }, typed, rest }: GrantFoldProps) {
  const state = typed ?? NEW_TERMS;
  return (
    <details class="decide-grant" open={typed !== undefined}>
      <summary>Allow more calls like this</summary>
      <div class="grant">
        <p class="small">
          Approves this one, and lets more calls like it through without asking.{" "}
          {fields.length === 0
            ? "Everything must be the same: key, method, target, headers and body."
            : "Everything that is not ticked must be the same: key, method, target, headers and the rest of the body."}
        </p>
        <div class="grant-terms">
          <TERMS_FORM.Fields of={["minutes", "calls"]} state={state} />
        </div>
        {fields.length === 0 ? null : (
          <FieldGroup name="vary" legend="May differ" problem={fieldProblem(state, "vary")} look="grant-vary">
            {fields.map((field, at) => (
              <VaryRow {...field} at={at} state={state} />
            ))}
            {isCut ? <p class="quiet small">{`Only the first ${fields.length} values are listed.`}</p> : null}
          </FieldGroup>
        )}
      </div>
      <div class="buttons">
        <Button name="decision" value={APPROVE_MORE} look="plain">
          <span>Approve and allow more{rest}</span>
        </Button>
      </div>
    </details>
  );
}

function VaryRow({ path, text, at, state }: JsonLeaf & { readonly at: number; readonly state: FormState }) {
  // The request above shows more of a value.
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return (
    <div class="grant-field" role="group" aria-label={visibleText(memberName(path))}>
      <Checkbox
        name={`vary_${at}`}
        value={path}
        isChecked={state.values.get(`vary_${at}`) === path}
        label={
          <>
            {untrusted(memberName(path))} <code class="quiet">{untrusted(shown)}</code>
          </>
        }
      />
      {plainNumber(text) === null ? null : (
        <Field
          name={`most_${at}`}
          label="at most"
          value={state.values.get(`most_${at}`) ?? text}
          problem={fieldProblem(state, `max.${path}`)}
          autocomplete="off"
        />
      )}
    </div>
  );
}

/** A path without the word with which all begin. */
export function memberName(path: string): string {
  return path === "body" ? path : path.replace(/^body\.?/, "");
}

/** The grant that a form asks for. Leaves out values of members that are not ticked. Throws `validation_error`. */
export function termsInForm(form: Form): GrantTerms {
  const vary: string[] = [];
  const max: (readonly [path: string, most: number | string])[] = [];
  for (let at = 0; at < GRANT_FIELDS_SHOWN_MAX; at += 1) {
    const path = form.get(`vary_${at}`);
    if (path === undefined) continue;
    vary.push(path);
    const most = form.get(`most_${at}`)?.trim();
    if (most !== undefined) max.push([path, plainNumber(most) ?? most]);
  }
  return TERMS_FORM.check(form, { vary, max: Object.fromEntries(max) });
}

/** A refused decision. Shows problems of the grant at its fields, and all others above the buttons. */
export function refusedDecision(refused: RefusedForm) {
  const { values, problem, code } = refused;
  const reason = values.get("reason");
  if (values.get("decision") !== APPROVE_MORE) return { problem, reason };
  // The service calls a field `grant.calls`, the form `calls`.
  const issues = refused.issues.map((issue) => ({ ...issue, field: issue.field.replace(/^grant\./, "") }));
  const grant = { ...refused, issues };
  const nothing = code === "validation_error" ? "It was not approved." : "";
  return { problem: [nothing, problemBeside(grant, TERMS_FORM.names)].filter(Boolean).join(" "), reason, grant };
}
