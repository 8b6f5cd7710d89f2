import Type, { type Static, type TProperties } from "typebox";
import { credentialNameSchema } from "../api/action-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import type { RuleRow } from "../core/account-rules.ts";
import { isJsonObject, isStorableText, jsonIn } from "../core/json.ts";
import {
  BUDGET_COUNT_MAX,
  BUDGET_MEMBER_CHARS_MAX,
  BUDGET_MINUTES_MAX,
  DRY_RUN_ACTIONS_DEFAULT,
  DRY_RUN_ACTIONS_MAX,
  DRY_RUN_SHOWN_MAX,
  REQUEST_BODY_BYTES_MAX,
  RULE_EXPRESSION_BYTES_MAX,
  RULE_LIST_MAX,
  RULE_MESSAGE_CHARS_MAX,
  RULE_PATH_CHARS_MAX,
  RULES_MAX,
} from "../core/limits.ts";
import { mayDo, type Role } from "../core/roles.ts";
import { PERIODS, WEEKDAYS } from "../core/zones.ts";
import { HTTP_METHODS } from "../core/target.ts";

export const ruleIdSchema = t.idSchema("rul", "Id of a rule.", "RuleId");

export const RULE_EFFECTS = ["allow", "hold", "refuse"] as const;

export type RuleEffect = (typeof RULE_EFFECTS)[number];

/** The kinds of bodies that a rule can name. `json` includes bodies given as `body`. */
export const RULED_BODIES = ["none", "json", "form", "text", "base64"] as const;

/** A condition with several members. */
const condition = <Members extends TProperties>(description: string, example: object, members: Members) =>
  Type.Object(members, { additionalProperties: false, description, examples: [example] });

const time = (description: string, example: string) =>
  Type.String({ pattern: t.TIME_OF_DAY, description, examples: [example] });

const zone = t.shortText(64, "Name in the time zone database.", "Europe/Berlin");

const same = (words: string, example: string, more = "") =>
  Type.Optional(
    Type.String({
      pattern: `^(${words}|metadata\\..{1,${BUDGET_MEMBER_CHARS_MAX}})$`,
      description: `What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together.${more}`,
      examples: [example, "metadata.customer"],
    }),
  );

/** What a rule may ask of a request. `CONDITIONS` (`rule.ts`) says what each means. */
const conditions = Type.Partial(
  Type.Object({
    when: t.shortText(
      RULE_EXPRESSION_BYTES_MAX,
      "A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now.",
      "action.body.amount > 5000",
    ),
    keys: Type.Array(t.keyIdSchema, {
      minItems: 1,
      maxItems: RULE_LIST_MAX,
      description: "Keys whose calls it is about.",
    }),
    methods: t.shortList(
      Type.Enum([...HTTP_METHODS]),
      HTTP_METHODS.length,
      "Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them.",
      ["POST", "DELETE"],
    ),
    hosts: t.shortList(
      Type.String({ minLength: 1, maxLength: 260 }),
      RULE_LIST_MAX,
      "Hosts, or *.example.com for all that end so. Without a port: at each.",
      ["api.example.com", "*.example.org"],
    ),
    path: t.shortText(
      RULE_PATH_CHARS_MAX,
      "Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment.",
      "/v1/users/*/keys",
    ),
    credentials: t.shortList(
      Type.String({ ...credentialNameSchema, title: "RuleCredential" }),
      RULE_LIST_MAX,
      "Names of credentials that the call is made with.",
      ["stripe-live"],
    ),
    body_kind: t.choice(RULED_BODIES, "What the body is.", "json"),
    body_bytes: condition(
      "Size of the body.",
      { over: 10_000 },
      {
        over: t.integer(0, REQUEST_BODY_BYTES_MAX, "The body has more bytes.", 10_000),
      },
    ),
    between: condition(
      "Time of day.",
      { from: "18:00", to: "08:00", timezone: "Europe/Berlin" },
      {
        from: time("Begins, by the clocks of the zone.", "18:00"),
        to: time("Ends. Where it is before `from`, on the next day.", "08:00"),
        days: Type.Optional(
          t.shortList(Type.Enum([...WEEKDAYS]), WEEKDAYS.length, "Days on which it begins; without it each.", [
            "mon",
            "tue",
          ]),
        ),
        timezone: zone,
      },
    ),
    more_than: condition(
      "The rule applies only to the call that is one more than these. Each create and retry counts, when it is due, unless a rule holds it for being one more.",
      { count: 20, minutes: 5, same: "request" },
      {
        count: t.integer(1, BUDGET_COUNT_MAX, "So many calls pass.", 20),
        minutes: t.integer(1, BUDGET_MINUTES_MAX, "Within so many minutes.", 5),
        same: same(
          "key|host|request",
          "request",
          " request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ.",
        ),
      },
    ),
    sum: condition(
      "A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added.",
      { member: "body.amount", per: "day", timezone: "Europe/Berlin", limit: 10_000 },
      {
        member: Type.String({
          minLength: 1,
          maxLength: BUDGET_MEMBER_CHARS_MAX,
          description:
            "The number in the body that is added up, by its path. A call where it is missing, negative or no number is held.",
          examples: ["body.amount", "body.items[0].price"],
        }),
        per: t.choice(PERIODS, "From when to when, by the calendar and the clocks of the zone.", "day"),
        timezone: zone,
        limit: Type.Number({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "The most that passes, with at most 9 decimals.",
          examples: [10_000],
        }),
        same: same("key|host", "key"),
      },
    ),
  }),
).properties;

export type ConditionName = keyof typeof conditions;

const told = Type.Partial(
  Type.Object({
    message: Type.Refine(
      t.shortText(
        RULE_MESSAGE_CHARS_MAX,
        "Shown to the agent whose call is held or refused.",
        "Ask the finance team first.",
      ),
      isStorableText,
      () => "Must be well-formed Unicode without NUL.",
    ),
    explain: t.yesNo("Agents see why, with what the rule compares.", false),
  }),
).properties;

const optional = { ...conditions, ...told };

/** The definition of a rule, in the API and in its row. */
export const RuleDefinition = t.requestObject(
  "RuleDefinition",
  "A rule. It applies where all of its conditions hold; without a condition always.",
  {
    name: t.nameSchema("What people and agents know the rule by."),
    effect: t.choice(
      RULE_EFFECTS,
      "allow: no later rule is asked; hold: a person decides; refuse: nothing is created.",
      "hold",
    ),
    ...optional,
  },
  { examples: [{ name: "Big payments", effect: "hold", path: "/payments", when: "action.body.amount > 5000" }] },
);

export type RuleDefinition = Static<typeof RuleDefinition>;

const { properties } = RuleDefinition;

export const CreateRuleBody = t.requestObject("CreateRule", "A rule of the account.", {
  ...properties,
  before: Type.Optional(t.idSchema("rul", "The rule that it is put before. Default: behind all others.")),
});

export type CreateRuleBody = Static<typeof CreateRuleBody>;

// Safe: these are its members.
const UNSET = Object.keys(optional) as (keyof typeof optional)[];

export const ChangeRuleBody = Type.Partial(
  Type.Object({
    ...properties,
    unset: t.shortList(Type.Enum(UNSET), UNSET.length, "Conditions that the rule has no longer.", ["path"]),
  }),
  {
    title: "ChangeRule",
    additionalProperties: false,
    minProperties: 1,
    description: "What to change. What is not given stays; `unset` takes conditions away.",
    examples: [{ effect: "hold", when: "action.body.amount > 1000" }],
  },
);

export type ChangeRuleBody = Static<typeof ChangeRuleBody>;

const rulesMember = (description: string) =>
  Type.Array(RuleDefinition, { maxItems: RULES_MAX, description, examples: [[{ name: "All", effect: "hold" }]] });

export const ReplaceRulesBody = t.requestObject("ReplaceRules", "The rules that are in force from then on.", {
  rules: rulesMember("All rules of the account, in the order in which they are asked."),
});

export const ReorderRulesBody = t.requestObject("ReorderRules", "Another order of the same rules.", {
  ids: Type.Array(ruleIdSchema, { maxItems: RULES_MAX, description: "The ids of all rules in their new order." }),
});

export const RuleJson = t.answerObject(
  "Rule",
  "A rule of the account. Agents and readers see its name, effect and message.",
  {
    id: ruleIdSchema,
    position: t.quantity("Its place among the rules, from 0.", 0),
    version: t.positive("One more with each change.", 1),
    ...properties,
    created_at: Type.Optional(t.dateTime("When it was created.")),
    created_by: Type.Optional(t.plainText("Who created it.", "key:owner")),
    changed_at: Type.Optional(t.dateTime("When it was last changed.")),
    changed_by: Type.Optional(t.plainText("Who changed it last.", "user:ann@example.com")),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        examples: [['Never applies: "All" before it decides on all calls that it is about.']],
        description:
          "What is probably wrong with it: an earlier rule keeps it from applying, or it can't be decided on requests of the past, on which it is tried when it is saved.",
      }),
    ),
  },
);

export type RuleJson = Static<typeof RuleJson>;

export const RuleListJson = t.answerObject("RuleList", "The rules of the account.", {
  data: Type.Array(RuleJson, { description: "In the order in which they are asked." }),
});

export const DryRunRulesBody = t.requestObject("DryRunRules", "Rules to try, and what on.", {
  rules: Type.Optional(rulesMember("The rules to try. Default: those in force.")),
  last: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DRY_RUN_ACTIONS_MAX,
      default: DRY_RUN_ACTIONS_DEFAULT,
      description: "How many actions to try them on, the newest first.",
      examples: [1000],
    }),
  ),
  since: Type.Optional(t.dateTime("Only actions created at this time or later.")),
});

const Effect = (description: string) => t.choice(RULE_EFFECTS, description, "hold");

export const DifferingJson = t.answerObject("DryRunDifference", "A request whose fate would be another one.", {
  id: t.plainText("Id of the action.", "act_01kjwa5v00e7v8c9x2m4n6p8qr"),
  method: t.plainText("Its method.", "POST"),
  url: t.plainText("Its target, masked.", "https://api.example.com/pay"),
  title: Type.Optional(t.plainText("What the call does, in the requester's words.", "Refund 12.00 EUR")),
  status: t.plainText("Its status.", "completed"),
  created_at: t.dateTime("When it was created."),
  created_by: t.plainText("Who created it.", "key:agent"),
  in_force: Effect("What the rules in force say of it."),
  tried: Effect("What these rules say."),
  rule: t.nullable(t.plainText("The name of the rule that applies; null: none.", "Payments above 1,000")),
  reason: t.nullable(t.plainText("Why, where the rule says so or can't be decided.", "Ask the finance team first.")),
});

export type DryRunDifference = Static<typeof DifferingJson>;

export const DryRunJson = t.answerObject("DryRun", "What rules would have done with what was requested.", {
  looked_at: t.quantity("Actions that the rules were tried on.", 4031),
  from: t.nullable(t.dateTime("When the oldest of them was created.")),
  allowed: t.quantity("They would be sent without a person.", 4016),
  held: t.quantity("They would be held, by a rule or as they were by their key or caller.", 12),
  refused: t.quantity("They would be refused.", 3),
  held_approved: t.quantity("Of those that would be held: a person approved them.", 9),
  held_rejected: t.quantity("A person rejected them.", 2),
  held_undecided: t.quantity("No person has decided on them.", 1),
  undecidable: t.quantity("They would be held because a rule can't be decided.", 0),
  unknown: t.quantity("Refused by a rule in that time: nothing is stored that rules could be tried on.", 0),
  uncertain: t.quantity(
    "Budgets and counts may say otherwise of them: older calls than those looked at, retries and failed calls may count too.",
    0,
  ),
  differing: t.quantity("The rules in force say something else of them.", 15),
  differences: Type.Array(DifferingJson, { description: `The newest ${DRY_RUN_SHOWN_MAX} of these.` }),
});

export type DryRunJson = Static<typeof DryRunJson>;

/** Holds an agent that makes the same write again and again. */
export const LOOP_BRAKE: RuleDefinition = {
  name: "Loop brake",
  effect: "hold",
  methods: HTTP_METHODS.filter((method) => method !== "GET"),
  more_than: { count: 20, minutes: 5, same: "request" },
};

/** The order of members in a stored definition: the schema's, and inside a condition by name. */
const MEMBERS = [
  ...Object.keys(properties),
  ...Object.values(conditions)
    .flatMap((one) => ("properties" in one ? Object.keys(one.properties) : []))
    .toSorted(),
];

/** A definition as it is stored. Equal definitions have equal texts. */
export function ruleText(definition: RuleDefinition): string {
  return JSON.stringify(definition, MEMBERS);
}

export const UNREADABLE_RULE: RuleDefinition = { name: "A rule that can't be read", effect: "hold" };

/** Reads a stored definition. If the row was altered in the database, returns one that holds everything, as the rule then does. */
export function ruleDefinition({ definition }: Pick<RuleRow, "definition">): RuleDefinition {
  const stored = jsonIn(definition);
  // Safe: `ruleText` wrote it.
  return isJsonObject(stored) && typeof stored["name"] === "string" ? (stored as RuleDefinition) : UNREADABLE_RULE;
}

/** A rule, its position from 0, and what is probably wrong with it. */
export interface PlacedRule {
  readonly row: RuleRow;
  readonly position: number;
  readonly warnings: readonly string[];
}

/** A rule as JSON. Callers who may approve see all of it; others see its name, effect and message. */
export function serializeRule({ row, position, warnings }: PlacedRule, role: Role): RuleJson {
  const { id, version, createdAt, createdBy, changedAt, changedBy } = row;
  const definition = ruleDefinition(row);
  const { name, effect, message } = definition;
  if (!mayDo(role, "approve"))
    return { id, position, version, name, effect, ...(message !== undefined && { message }) };
  const times = { created_at: createdAt.toISOString(), created_by: createdBy, changed_at: changedAt.toISOString() };
  const warned = warnings.length > 0 && { warnings: [...warnings] };
  return { id, position, version, ...definition, ...times, changed_by: changedBy, ...warned };
}

export function serializeRules(
  rows: readonly RuleRow[],
  role: Role,
  warnings: ReadonlyMap<string, string>,
): readonly RuleJson[] {
  return rows.map((row, position) => {
    const warning = warnings.get(row.id);
    return serializeRule({ row, position, warnings: warning === undefined ? [] : [warning] }, role);
  });
}
