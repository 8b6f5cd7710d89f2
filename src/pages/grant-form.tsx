/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { bodyCheck } from "../api/schema-helpers.ts";
import { invalidFields, type Issue } from "../core/domain-error.ts";
import type { GrantTerms } from "../core/grant.ts";
import type { JsonLeaf } from "../core/json-tree.ts";
import { GRANT_CALLS_MAX, GRANT_FIELDS_SHOWN_MAX, GRANT_VARY_MAX } from "../core/limits.ts";
import { fieldsOf, numberOf } from "../grants/likeness.ts";
import { GrantTermsJson } from "../grants/grants.ts";
import type { Form } from "../http/request.ts";
import { MASK } from "../receipts/mask-rules.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { Button, Check, Field, FieldGroup } from "../ui/form.tsx";
import { untrusted } from "../ui/parts.tsx";
import { number } from "../ui/text.ts";
import { EMPTY_FORM, type FormState, numberIn, type RefusedForm } from "./forms.ts";

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
  if (keyId === "" || (policy?.by !== "key" && policy?.by !== "rule")) return null;
  const fields = (fieldsOf(action) ?? []).filter(
    ({ path, text }) => path.length <= PATH_CHARS_MAX && !path.includes(MASK) && !text.includes(MASK),
  );
  return { fields: fields.slice(0, GRANT_FIELDS_SHOWN_MAX), isCut: fields.length > GRANT_FIELDS_SHOWN_MAX };
}

/** The schema's bound. */
const PATH_CHARS_MAX = 200;

/** The first and shortest is the default. */
const DURATIONS = [
  ["15", "15 minutes"],
  ["60", "1 hour"],
  ["480", "8 hours"],
  ["10080", "7 days"],
] as const;

const CALLS = "20";

interface GrantFoldProps {
  readonly offer: GrantOffer;
  /** Undefined while nothing was typed and the part is folded. */
  readonly typed: FormState | undefined;
  /** How much of the request is unread, shown in its button. */
  readonly rest: Child;
}

/** Folded until somebody opens it, and never preselected: an approval is for one request. */
export function GrantFold({ offer: { fields, isCut }, typed, rest }: GrantFoldProps) {
  const state = typed ?? EMPTY_FORM;
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
          <Field
            name="minutes"
            label="For how long"
            options={DURATIONS}
            value={state.values.get("minutes") ?? DURATIONS[0][0]}
            problem={problemAt(state, "minutes")}
          />
          <Field
            name="calls"
            label="How many calls"
            value={state.values.get("calls") ?? CALLS}
            problem={problemAt(state, "calls")}
            autocomplete="off"
          />
        </div>
        {fields.length === 0 ? null : (
          <FieldGroup name="vary" legend="May differ" problem={problemAt(state, "vary")} look="grant-vary">
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
      <Check
        name={`vary_${at}`}
        value={path}
        isChecked={state.values.get(`vary_${at}`) === path}
        label={
          <>
            {untrusted(memberName(path))} <code class="quiet">{untrusted(shown)}</code>
          </>
        }
      />
      {numberOf(text) === null ? null : (
        <Field
          name={`most_${at}`}
          label="at most"
          value={state.values.get(`most_${at}`) ?? text}
          problem={problemAt(state, `max.${path}`)}
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

const checkTerms = bodyCheck(GrantTermsJson);

/** The grant that a form asks for. Leaves out values of members that are not ticked. Throws `validation_error`. */
export function termsInForm(form: Form): GrantTerms {
  const issues: Issue[] = [];
  const minutes = DURATIONS.find(([value]) => value === form.get("minutes"))?.[0];
  if (minutes === undefined) issues.push({ field: "minutes", message: "Choose for how long." });
  const calls = numberIn((form.get("calls") ?? "").trim());
  if (typeof calls === "string" || !Number.isInteger(calls) || calls < 1 || calls > GRANT_CALLS_MAX) {
    issues.push({ field: "calls", message: `Enter a whole number from 1 to ${number(GRANT_CALLS_MAX)}.` });
  }
  const vary: string[] = [];
  const max: (readonly [path: string, most: number])[] = [];
  for (let at = 0; at < GRANT_FIELDS_SHOWN_MAX; at += 1) {
    const path = form.get(`vary_${at}`);
    if (path === undefined) continue;
    vary.push(path);
    const typed = form.get(`most_${at}`)?.trim();
    if (typed === undefined) continue;
    const most = numberOf(typed);
    if (most !== null) max.push([path, most]);
    else issues.push({ field: `max.${path}`, message: "Enter a number from 0 with at most 3 decimals." });
  }
  if (vary.length > GRANT_VARY_MAX) issues.push({ field: "vary", message: `Tick at most ${GRANT_VARY_MAX}.` });
  if (issues.length > 0) throw invalidFields(issues);
  return checkTerms({ minutes: Number(minutes), calls, vary, max: Object.fromEntries(max) });
}

/** The problem of a field. The service calls a field `grant.calls`, the form `calls`. */
function problemAt({ issues }: FormState, name: string): string | null {
  return issues.find(({ field }) => field === name || field === `grant.${name}`)?.message ?? null;
}

/** A refused decision. Shows problems of the grant at its fields, and all others above the buttons. */
export function refusedDecision({ values, issues, problem, code }: RefusedForm) {
  const reason = values.get("reason");
  if (values.get("decision") !== APPROVE_MORE) return { problem, reason };
  const others = issues.filter(({ field }) => !/^(grant\.)?(minutes$|calls$|vary$|max\.)/.test(field));
  const said = issues.length === 0 ? problem : others.map(({ message }) => message).join(" ");
  const nothing = code === "validation_error" ? "It was not approved." : "";
  return { problem: [nothing, said].filter(Boolean).join(" "), reason, grant: { values, issues, problem } };
}
