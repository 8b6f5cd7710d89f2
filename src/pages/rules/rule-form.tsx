/** @jsxImportSource hono/jsx */
import type { KeyView } from "../../accounts/key-schemas.ts";
import { NAME_CHARS_MAX } from "../../core/limits.ts";
import type { Form } from "../../http/body.ts";
import {
  CreateRuleBody,
  RULE_EFFECTS,
  RULED_BODIES,
  type RuleDefinition,
  type RuleEffect,
} from "../../rules/schemas.ts";
import { type Period, PERIODS, WEEKDAYS, type Weekday } from "../../core/zones.ts";
import { Button } from "../../ui/form.tsx";
import { LinkButton, Notice } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";
import { type FormState, versionField } from "../frame/forms.ts";
import { keyBoxes } from "../settings/keys.tsx";
import { type FieldSpecs, schemaForm } from "../frame/schema-form.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";

export const EFFECT_LABELS: Readonly<Record<RuleEffect, string>> = { allow: "Allow", hold: "Hold", refuse: "Refuse" };

const EFFECT_HINTS: Readonly<Record<RuleEffect, string>> = {
  allow: "No later rule is asked. What its key or the agent itself holds still needs approval.",
  hold: "A person decides before it is sent.",
  refuse: "No action is created. The agent gets the message below.",
};

const BODY_LABELS: Readonly<Record<(typeof RULED_BODIES)[number], string>> = {
  none: "No body",
  json: "JSON",
  form: "A form",
  text: "Text",
  base64: "Bytes (base64)",
};

export const DAY_LABELS: Readonly<Record<Weekday, string>> = {
  mon: "Mon",
  tue: "Tue",
  wed: "Wed",
  thu: "Thu",
  fri: "Fri",
  sat: "Sat",
  sun: "Sun",
};

/** What an expression may read. */
const NAMES: readonly (readonly [names: string, about: string])[] = [
  ["action.method, action.host, action.path", "texts, as they are sent"],
  ["action.query, action.headers", "by their names: action.query.force, action.headers['x-env']"],
  ["action.body", "members of JSON, or fields of a form: those are texts"],
  ["action.title, action.metadata", "what the agent says of it"],
  ["key.name, key.id, key.role", "the key that asks"],
  ["now", "now.hour('Europe/Berlin'), now.minute(…), now.weekday(…): 'mon' to 'sun'"],
];

export const EXAMPLES: readonly (readonly [expression: string, about: string])[] = [
  ["action.body.amount > 1000", "a number of JSON"],
  ["number(action.body.amount) > 1000", "also of a form"],
  ["has(action.body.discount)", "it has that member"],
  ["action.body.items.exists(x, x.price > 500)", "one of a list"],
  ["!action.body.to.endsWith('@example.com')", "the end of a text"],
  ["like(action.path, '^/users/[0-9]+$')", "a regular expression"],
  ["key.name == 'billing' && now.hour('UTC') < 6", "two conditions"],
];

export const PERIOD_LABELS: Readonly<Record<Period, string>> = { hour: "an hour", day: "a day", month: "a month" };

const ZONE = {
  hint: "Like Europe/Berlin.",
  wrong: "Enter a name of the time zone database, like Europe/Berlin.",
} as const;

/** Has every member: saving a rule leaves out what its form lacks. */
const RULE_FORM = schemaForm(CreateRuleBody, {
  name: {
    hint: "Shown to people and agents.",
    wrong: `Enter a name of 1 to ${NAME_CHARS_MAX} ASCII characters.`,
  },
  effect: {
    label: "What happens to matching requests?",
    choices: RULE_EFFECTS.map((value) => ({ value, label: EFFECT_LABELS[value], hint: EFFECT_HINTS[value] })),
    wrong: "Choose what happens.",
  },
  methods: { isCode: true },
  hosts: { hint: "One a line, like api.example.com or *.example.org." },
  path: {
    hint: "The beginning of the path, in whole segments: /pay matches /pay/1, but not /payments. * matches one segment.",
  },
  credentials: { hint: "Names, one a line. Only calls made with one of these." },
  when: {
    label: "Expression",
    type: "code",
    hint: "In CEL. The rule applies where it is true. A request that lacks what it names is held.",
  },
  keys: { label: "Only calls of these keys", boxes: [] },
  body_kind: {
    label: "What it is",
    none: "Anything",
    options: RULED_BODIES.map((kind) => [kind, BODY_LABELS[kind]]),
  },
  "body_bytes.over": { label: "Larger than", hint: "Bytes." },
  "between.from": { hint: "Like 18:00.", wrong: "Enter a time from 00:00 to 23:59." },
  "between.to": {
    hint: "Like 08:00. If it is before the start, it ends the next day.",
    wrong: "Enter a time from 00:00 to 24:00 that is not the start.",
  },
  "between.days": {
    label: "Days on which it begins",
    boxes: WEEKDAYS.map((day) => [day, DAY_LABELS[day]] as const),
    hint: "None chosen means every day.",
  },
  "between.timezone": { label: "Time zone", ...ZONE },
  "sum.limit": {
    label: "At most",
    hint: "Like 10000. A sum of exactly this still passes.",
    wrong: "Enter a number of at most 16 digits, like 10000 or 10.50.",
  },
  "sum.member": { label: "Of the number in", hint: "Like body.amount or body.items[0].price." },
  "sum.per": { label: "In", options: PERIODS.map((period) => [period, PERIOD_LABELS[period]]) },
  "sum.timezone": { label: "Time zone of the budget", ...ZONE },
  "sum.same": {
    label: "For the same",
    hint: "key, host, or metadata.customer for that value of metadata. Empty: all calls together.",
    wrong: "Enter key, host, or metadata. and a name.",
  },
  "more_than.count": { label: "Calls", hint: "This many pass." },
  "more_than.minutes": { label: "In minutes" },
  "more_than.same": {
    label: "For the same",
    hint: "key, host, request, or metadata.customer for that value of metadata. Empty: all calls together.",
    wrong: "Enter key, host, request, or metadata. and a name.",
  },
  message: {
    type: "lines",
    hint: "Optional. For the agent whose call is held or refused, and for approvers.",
  },
  explain: { label: "Also tell agents the expression" },
  before: {
    label: "Place",
    hint: "The first rule that applies decides.",
    none: "After all others",
    options: [],
  },
} satisfies Required<FieldSpecs<CreateRuleBody>>);

/** The button that tries the rule and saves nothing. */
export const TRY_FIELD = "try";

interface RuleFormProps {
  readonly user: PageUser;
  readonly typed: FormState;
  /** What to fill in. */
  readonly todo?: string | undefined;
  /** The account's keys. Includes revoked ones only if they are chosen. */
  readonly keys: readonly KeyView[];
  /** The rule that is changed; null for a new one. */
  readonly changed: { readonly id: string; readonly version: number } | null;
  /** The other rules, to choose the place of a new one. */
  readonly others: readonly (readonly [id: string, name: string])[];
}

export function RuleForm({ user, typed, todo, keys, changed, others }: RuleFormProps) {
  const { rules } = SETTINGS_PATHS;
  const { Form, Field, Fields, Fold } = RULE_FORM;
  return (
    <section class="card rule-form" aria-label="The rule">
      {todo === undefined ? null : <Notice tone="wait">{todo}</Notice>}
      <Form
        user={user}
        state={typed}
        action={changed === null ? rules : `${rules}/${changed.id}`}
        fields={changed === null ? [] : [versionField(typed, changed.version)]}
      >
        <Fields of={["name", "effect"]} state={typed} />
        <h2>Which requests</h2>
        <p class="quiet">The rule applies where all of these are true. Empty fields are not checked.</p>
        <Fields of={["methods", "hosts", "path", "credentials"]} state={typed} />
        <div class="rule-when">
          <div class="asked">
            <Field name="when" state={typed} />
            <details class="rule-help">
              <summary>Names in expressions</summary>
              <CodeList items={NAMES} />
            </details>
          </div>
          <div class="rule-help">
            <h3>Examples</h3>
            <CodeList items={EXAMPLES} />
          </div>
        </div>
        <Fold title="Keys" state={typed} of={["keys"]} specs={{ keys: { boxes: keyBoxes(keys, typed) } }} />
        <Fold title="Body" state={typed} of={["body_kind", "body_bytes.over"]} />
        <Fold
          title="Time of day"
          state={typed}
          of={["between.from", "between.to", "between.days", "between.timezone"]}
        />
        <Fold
          title="Budget"
          note="Applies only to calls that would take the sum over this limit."
          state={typed}
          of={["sum.limit", "sum.member", "sum.per", "sum.timezone", "sum.same"]}
        />
        <Fold
          title="Number of calls"
          note="Applies only to calls beyond this number."
          state={typed}
          of={["more_than.count", "more_than.minutes", "more_than.same"]}
        />
        <h2>What the agent sees</h2>
        <Fields of={["message", "explain"]} state={typed} />
        {changed === null && others.length > 0 ? (
          <Field name="before" state={typed} options={others.map(([id, name]) => [id, `Before “${name}”`])} />
        ) : null}
        <div class="buttons">
          <Button>{changed === null ? "Create rule" : "Save"}</Button>
          <Button look="plain" name={TRY_FIELD} value="yes">
            Try it on past requests
          </Button>
          <LinkButton href={rules}>Cancel</LinkButton>
        </div>
      </Form>
    </section>
  );
}

function CodeList({ items }: { readonly items: readonly (readonly [code: string, about: string])[] }) {
  return (
    <ul>
      {items.map(([code, about]) => (
        <li>
          <code>{code}</code> <span class="quiet">{about}</span>
        </li>
      ))}
    </ul>
  );
}

/** A rule as fields of the form. */
export function ruleFields(rule: Partial<RuleDefinition>): FormState {
  return RULE_FORM.filledWith({ ...rule, sum: rule.sum ?? { per: "day" } });
}

/** The rule in a form, and its place. Throws `validation_error`. */
export function ruleIn(form: Form): { readonly definition: RuleDefinition; readonly before: string | null } {
  const { before = null, ...definition } = RULE_FORM.check(form);
  return { definition, before };
}
