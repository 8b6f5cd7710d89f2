/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { KeyView } from "../accounts/schemas.ts";
import { HTTP_METHODS } from "../core/action.ts";
import type { Form } from "../http/request.ts";
import { unitsIn } from "../rules/counting.ts";
import { type RuleDefinition, RULE_EFFECTS, RULED_BODIES, type RuleEffect } from "../rules/rule.ts";
import { CreateRule, LOOP_BRAKE } from "../rules/schemas.ts";
import { type Period, PERIODS, WEEKDAYS, type Weekday } from "../rules/zones.ts";
import { Button, PostForm, Select } from "../ui/form.tsx";
import { LinkButton, Notice, Problem } from "../ui/parts.tsx";
import type { Choice, PageUser } from "../ui/text.ts";
import {
  filled,
  type FormState,
  numberIn,
  problemBeside,
  problemOf,
  schemaForm,
  type SchemaFieldProps,
  StatedChoices,
} from "./forms.tsx";
import { keyLabel } from "./keys.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";

/** What fills the form for a new rule. */
interface Template {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  /** What to fill in before it is saved. */
  readonly todo: string;
  readonly rule: RuleDefinition;
}

export const TEMPLATES: readonly Template[] = [
  {
    name: "payments",
    title: "Hold payments above an amount",
    about: "A person approves large payments; small ones are sent at once.",
    todo: "Set the host and the path of your payment API, the member that has the amount, and the limit. A payment without an amount is held.",
    rule: {
      name: "Payments above 1000",
      effect: "hold",
      methods: ["POST"],
      path: "/payments",
      when: "number(action.body.amount) > 1000",
      message: "A person approves payments above 1000.",
    },
  },
  {
    name: "budget",
    title: "Hold payments beyond a budget",
    about: "What is left of a daily sum is sent at once; a person approves what goes beyond.",
    todo: "Set the host and the path of your payment API, the member that has the amount, the sum and your time zone. A payment without an amount is held.",
    rule: {
      name: "10,000 a day",
      effect: "hold",
      methods: ["POST"],
      path: "/payments",
      sum: { member: "body.amount", per: "day", timezone: "Europe/Berlin", limit: 10_000 },
    },
  },
  {
    name: "loops",
    title: "Hold loops",
    about: "An agent that makes the same write again and again waits for a person.",
    todo: "Keep it before rules that allow: they end the list.",
    rule: LOOP_BRAKE,
  },
  {
    name: "office-hours",
    title: "Hold everything outside office hours",
    about: "At night and on weekends, a person approves every call.",
    todo: "Set your hours and your time zone.",
    rule: {
      name: "Outside office hours",
      effect: "hold",
      when: [
        "now.weekday('Europe/Berlin') in ['sat', 'sun']",
        "|| now.hour('Europe/Berlin') < 8",
        "|| now.hour('Europe/Berlin') >= 18",
      ].join("\n"),
      message: "Outside office hours, a person approves every call.",
    },
  },
  {
    name: "deletes",
    title: "Refuse deletes in production",
    about: "Agents delete nothing there, and are told so.",
    todo: "Name your production hosts. Without hosts, it refuses every delete.",
    rule: {
      name: "Deletes in production",
      effect: "refuse",
      methods: ["DELETE"],
      message: "Nothing is deleted in production. Ask a person to do it.",
    },
  },
  {
    name: "writes",
    title: "Hold all writes",
    about: "A good last rule: a person approves what no rule before it decides.",
    todo: "Keep it behind all other rules: they decide first.",
    rule: {
      name: "All writes",
      effect: "hold",
      methods: HTTP_METHODS.filter((method) => method !== "GET"),
      message: "A person approves every write that no other rule allows.",
    },
  },
];

export function templatePath(name: string): string {
  return `${SETTINGS_PATHS.rules}/new?template=${name}`;
}

export const EFFECT_LABELS: Readonly<Record<RuleEffect, string>> = { allow: "Allow", hold: "Hold", refuse: "Refuse" };

const EFFECT_HINTS: Readonly<Record<RuleEffect, string>> = {
  allow: "No later rule is asked. What its key or the agent itself holds still needs approval.",
  hold: "A person decides before it is sent.",
  refuse: "No action is created. The agent gets the message below.",
};

const EFFECT_CHOICES: readonly Choice[] = RULE_EFFECTS.map((value) => ({
  value,
  label: EFFECT_LABELS[value],
  hint: EFFECT_HINTS[value],
}));

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

const RULE_FORM = schemaForm(CreateRule);

/** Of the rule that the form shows: another person may have changed it since. */
export const VERSION_FIELD = "version";

/** The button that tries the rule and saves nothing. */
export const TRY_FIELD = "try";

/** Fields that show their problem themselves. */
const SHOWN_FIELDS = [
  ..."name effect hosts path credentials when body_kind over from to timezone message before".split(" "),
  ..."member limit per sum_timezone sum_same count minutes calls_same".split(" "),
];

/** Members of the rule that have the name of another one. */
const FIELDS_OF_MEMBERS: ReadonlyMap<string, string> = new Map([
  ["sum.timezone", "sum_timezone"],
  ["sum.same", "sum_same"],
  ["more_than.same", "calls_same"],
]);

export const PERIOD_LABELS: Readonly<Record<Period, string>> = { hour: "an hour", day: "a day", month: "a month" };

const isChosen = ({ values }: FormState, field: string) => values.get(field) === "yes";

interface RuleFormProps {
  readonly user: PageUser;
  readonly typed: FormState;
  /** What to fill in. */
  readonly todo?: string | undefined;
  /** The keys of the account; those that are revoked only where they are chosen. */
  readonly keys: readonly KeyView[];
  /** Of the rule that is changed; null: it is new. */
  readonly changed: { readonly id: string; readonly version: number } | null;
  /** The others, for the place of a new one. */
  readonly others: readonly (readonly [id: string, name: string])[];
}

/** The form for a rule, with examples beside its expression. */
export function RuleForm({ user, typed: given, todo, keys, changed, others }: RuleFormProps) {
  const { rules } = SETTINGS_PATHS;
  const issues = given.issues.map(({ field, ...issue }) => ({
    ...issue,
    field: FIELDS_OF_MEMBERS.get(field) ?? field,
  }));
  const typed = { ...given, issues };
  const field = (name: string, label: string, props: Omit<SchemaFieldProps, "name" | "label" | "state"> = {}) => (
    <RULE_FORM.Field state={typed} name={name} label={label} {...props} />
  );
  return (
    <section class="card rule-form" aria-label="The rule">
      {todo === undefined ? null : <Notice tone="wait">{todo}</Notice>}
      <Problem text={problemBeside(typed, SHOWN_FIELDS)} />
      <PostForm
        user={user}
        action={changed === null ? rules : `${rules}/${changed.id}`}
        fields={changed === null ? [] : [[VERSION_FIELD, changed.version]]}
      >
        {field("name", "Name", {
          hint: "People and agents are told it.",
          wrong: "Enter a name of 1 to 100 ASCII characters.",
        })}
        <StatedChoices
          state={typed}
          name="effect"
          legend="What happens to the requests that it applies to?"
          choices={EFFECT_CHOICES}
          wrong="Choose what happens."
        />
        <h2>Which requests</h2>
        <p class="quiet">It applies where all of these are true. Empty fields are not checked.</p>
        <Checks legend="Methods" typed={typed} choices={HTTP_METHODS.map((name) => [`method_${name}`, name])} isCode />
        {field("hosts", "Hosts", { hint: "One a line, like api.example.com or *.example.org." })}
        {field("path", "Path", {
          hint: "Where it begins, in whole segments: /pay is about /pay/1, not about /payments. * stands for one segment.",
        })}
        {field("credentials", "Credentials", {
          hint: "Names, one a line: only calls that are made with one of these.",
        })}
        <div class="rule-when">
          <div class="asked">
            {field("when", "Expression", {
              type: "code",
              hint: "Must be true, in CEL. Where a request lacks what it names, nobody can tell: it is held.",
            })}
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
        <Fold title="Keys" isOpen={chosenIn(typed.values, "key_").length > 0}>
          <Checks legend="Only calls of these keys" typed={typed} choices={keyChoices(keys, typed)} />
        </Fold>
        <Fold title="Body" isOpen={isSet(typed, ["body_kind", "over"])}>
          <Select
            name="body_kind"
            label="What it is"
            none="Anything"
            options={RULED_BODIES.map((kind) => [kind, BODY_LABELS[kind]])}
            chosen={typed.values.get("body_kind")}
            problem={problemOf(typed, "body_kind")}
          />
          {field("over", "Larger than", {
            hint: "Bytes.",
            wrong: "Enter a whole number of bytes, at most 1048576.",
          })}
        </Fold>
        <Fold
          title="Time of day"
          isOpen={isSet(typed, ["from", "to", "timezone"]) || WEEKDAYS.some((day) => isChosen(typed, `day_${day}`))}
        >
          {field("from", "From", { hint: "Like 18:00.", wrong: "Enter a time from 00:00 to 23:59." })}
          {field("to", "To", {
            hint: "Like 08:00. Where it is earlier, on the next day.",
            wrong: "Enter a time from 00:00 to 24:00, another one than it begins.",
          })}
          <Checks
            legend="Days on which it begins"
            typed={typed}
            choices={WEEKDAYS.map((day) => [`day_${day}`, DAY_LABELS[day]])}
            note="None chosen means every day."
          />
          {field("timezone", "Time zone", {
            hint: "Like Europe/Berlin.",
            wrong: "Enter a name of the time zone database, like Europe/Berlin.",
          })}
        </Fold>
        <Fold title="Budget" isOpen={isSet(typed, ["member", "limit", "sum_timezone", "sum_same"])}>
          <p class="quiet small">It applies only to the call with which the sum would be more than this.</p>
          {field("limit", "At most", { hint: "Like 10000. Exactly so much still passes." })}
          {field("member", "Of the number in", { hint: "Like body.amount or body.items[0].price." })}
          <Select
            name="per"
            label="In"
            options={PERIODS.map((period) => [period, PERIOD_LABELS[period]])}
            chosen={typed.values.get("per") ?? "day"}
            problem={problemOf(typed, "per")}
          />
          {field("sum_timezone", "Time zone of the budget", {
            hint: "Like Europe/Berlin.",
            wrong: "Enter a name of the time zone database, like Europe/Berlin.",
          })}
          {field("sum_same", "For the same", {
            hint: "key, host, or metadata.customer for that value of metadata. Empty: all calls together.",
            wrong: "Enter key, host, or metadata. and a name.",
          })}
        </Fold>
        <Fold title="Number of calls" isOpen={isSet(typed, ["count", "minutes", "calls_same"])}>
          <p class="quiet small">It applies only to the call that is one more than these.</p>
          {field("count", "Calls", { hint: "So many pass.", wrong: "Enter a whole number from 1 to 1000000." })}
          {field("minutes", "In minutes", { wrong: "Enter a whole number of minutes, from 1 to 10080." })}
          {field("calls_same", "For the same", {
            hint: "key, host, request, or metadata.customer for that value of metadata. Empty: all calls together.",
            wrong: "Enter key, host, request, or metadata. and a name.",
          })}
        </Fold>
        <h2>What the agent is told</h2>
        {field("message", "Message", {
          type: "lines",
          hint: "Optional. For the agent whose call is held or refused, and for approvers.",
        })}
        <label class="check">
          <input type="checkbox" name="explain" value="yes" checked={isChosen(typed, "explain")} />
          <span>Also tell agents the expression</span>
        </label>
        {changed === null && others.length > 0 ? (
          <Select
            name="before"
            label="Place"
            hint="The first rule that applies decides."
            none="Behind all others"
            options={others.map(([id, name]) => [id, `Before “${name}”`])}
            chosen={typed.values.get("before")}
            problem={problemOf(typed, "before")}
          />
        ) : null}
        <div class="buttons">
          <Button>{changed === null ? "Create rule" : "Save"}</Button>
          <Button look="plain" name={TRY_FIELD} value="yes">
            Try it on past requests
          </Button>
          <LinkButton href={rules}>Cancel</LinkButton>
        </div>
      </PostForm>
    </section>
  );
}

/** Those that work, and every one that the rule names: without the last of them, it would be about all keys. */
export function keyChoices(keys: readonly KeyView[], typed: FormState): ChecksProps["choices"] {
  const shown = keys.filter(({ id, revokedAt }) => revokedAt === null || isChosen(typed, `key_${id}`));
  const unknown = chosenIn(typed.values, "key_").filter((id) => !keys.some((key) => key.id === id));
  return [
    ...shown.map((key) => [`key_${key.id}`, keyLabel(key)] as const),
    ...unknown.map((id) => [`key_${id}`, id] as const),
  ];
}

function isSet(typed: FormState, fields: readonly string[]): boolean {
  return fields.some((name) => (typed.values.get(name) ?? "") !== "" || problemOf(typed, name) !== null);
}

/** Conditions that few rules have. */
function Fold(props: { readonly title: string; readonly isOpen: boolean; readonly children?: Child }) {
  return (
    <details class="uses" open={props.isOpen}>
      <summary>{props.title}</summary>
      <div class="asked">{props.children}</div>
    </details>
  );
}

interface ChecksProps {
  readonly legend: string;
  readonly note?: string;
  readonly typed: FormState;
  readonly choices: readonly (readonly [field: string, label: string])[];
  readonly isCode?: boolean;
}

export function Checks({ legend, note, typed, choices, isCode = false }: ChecksProps) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {note === undefined ? null : <p class="quiet small">{note}</p>}
      <div class="chips">
        {choices.map(([name, label]) => (
          <label class="check">
            <input type="checkbox" name={name} value="yes" checked={isChosen(typed, name)} />
            {isCode ? <code>{label}</code> : <span>{label}</span>}
          </label>
        ))}
      </div>
    </fieldset>
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

/** A rule as the form has it. */
export function ruleFields(rule: RuleDefinition): FormState {
  const {
    name,
    effect,
    hosts = [],
    credentials = [],
    path = "",
    when = "",
    message = "",
    explain = false,
    between,
  } = rule;
  const { sum, more_than: calls } = rule;
  const yes = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, "yes"]));
  return filled({
    name,
    effect,
    hosts: hosts.join("\n"),
    credentials: credentials.join("\n"),
    path,
    when,
    message,
    body_kind: rule.body_kind ?? "",
    over: rule.body_bytes === undefined ? "" : String(rule.body_bytes.over),
    from: between?.from ?? "",
    to: between?.to ?? "",
    timezone: between?.timezone ?? "",
    limit: sum === undefined ? "" : String(sum.limit),
    member: sum?.member ?? "",
    per: sum?.per ?? "day",
    sum_timezone: sum?.timezone ?? "",
    sum_same: sum?.same ?? "",
    count: calls === undefined ? "" : String(calls.count),
    minutes: calls === undefined ? "" : String(calls.minutes),
    calls_same: calls?.same ?? "",
    ...yes((between?.days ?? []).map((day) => `day_${day}`)),
    ...yes((rule.methods ?? []).map((method) => `method_${method}`)),
    ...yes((rule.keys ?? []).map((id) => `key_${id}`)),
    ...(explain && yes(["explain"])),
  });
}

/** What the checked boxes of this prefix are about. */
export function chosenIn(form: Form, prefix: string): readonly string[] {
  return [...form].flatMap(([name, value]) =>
    name.startsWith(prefix) && value === "yes" ? [name.slice(prefix.length)] : [],
  );
}

/** The rule that a form says, and its place. Throws `validation_error`. */
export function ruleIn(form: Form): { readonly definition: RuleDefinition; readonly before: string | null } {
  const [methods = [], keys = [], days = []] = ["method_", "key_", "day_"].map((prefix) => chosenIn(form, prefix));
  const text = (name: string) => (form.get(name) ?? "").trim();
  const [over, from, to] = [text("over"), text("from"), text("to")];
  const sum = { member: text("member"), timezone: text("sum_timezone") };
  const [limit, sumSame, callsSame] = [text("limit"), text("sum_same"), text("calls_same")];
  const [count, minutes] = [text("count"), text("minutes")];
  // Browsers send line breaks as CRLF. An expression keeps its first lines: errors name a line.
  const [when = "", message = ""] = ["when", "message"].map((name) =>
    (form.get(name) ?? "").replaceAll("\r\n", "\n").trimEnd(),
  );
  const { before = null, ...definition } = RULE_FORM.check(form, {
    ...(methods.length > 0 && { methods }),
    ...(keys.length > 0 && { keys }),
    ...(over !== "" && { body_bytes: { over: numberIn(over) } }),
    ...((from !== "" || to !== "" || days.length > 0) && {
      between: { from, to, timezone: text("timezone"), ...(days.length > 0 && { days }) },
    }),
    ...((limit !== "" || sum.member !== "" || sum.timezone !== "" || sumSame !== "") && {
      sum: { ...sum, per: text("per"), limit: amountIn(limit), ...(sumSame !== "" && { same: sumSame }) },
    }),
    ...((count !== "" || minutes !== "" || callsSame !== "") && {
      more_than: { count: numberIn(count), minutes: numberIn(minutes), ...(callsSame !== "" && { same: callsSame }) },
    }),
    ...(when !== "" && { when }),
    ...(message !== "" && { message }),
  });
  return { definition, before };
}

/** What is no number that is read exactly stays text, which the check refuses. */
function amountIn(text: string): number | string {
  const amount = Number(text);
  return /^\d{1,16}(\.\d{1,9})?$/.test(text) && unitsIn(text) === unitsIn(String(amount)) ? amount : text;
}
