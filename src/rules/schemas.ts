import Type, { type Static } from "typebox";
import {
  choice,
  dateTime,
  idSchema,
  nullable,
  plainText,
  quantity,
  requestObject,
  answerObject,
  shortList,
  positive,
} from "../api/schema-helpers.ts";
import { HTTP_METHODS } from "../core/action.ts";
import type { RuleRow } from "../core/account-rules.ts";
import { DRY_RUN_ACTIONS_DEFAULT, DRY_RUN_ACTIONS_MAX, DRY_RUN_SHOWN_MAX, RULES_MAX } from "../core/limits.ts";
import { mayDo, type Role } from "../core/roles.ts";
import type { RulesDryRun } from "./dry-run.ts";
import { RULE_EFFECTS, RuleDefinition } from "./rule.ts";

export const ruleIdSchema = idSchema("rul", "Id of a rule.", "RuleId");

const { properties } = RuleDefinition;

export const CreateRule = requestObject("CreateRule", "A rule of the account.", {
  ...properties,
  before: Type.Optional(idSchema("rul", "The rule that it is put before. Default: behind all others.")),
});

/** The members that a rule need not have. */
const CONDITIONS = [
  ...(["when", "keys", "methods", "hosts", "path", "credentials", "body_kind", "body_bytes", "between"] as const),
  ...(["more_than", "sum", "message", "explain"] as const),
] as const satisfies readonly (keyof RuleDefinition)[];

export const ChangeRule = Type.Partial(
  Type.Object({
    ...properties,
    unset: shortList(Type.Enum([...CONDITIONS]), CONDITIONS.length, "Conditions that the rule has no longer.", [
      "path",
    ]),
  }),
  {
    title: "ChangeRule",
    additionalProperties: false,
    minProperties: 1,
    description: "What to change. What is not given stays; `unset` takes conditions away.",
    examples: [{ effect: "hold", when: "action.body.amount > 1000" }],
  },
);

export type ChangeRule = Static<typeof ChangeRule>;

const rulesOf = (description: string) =>
  Type.Array(RuleDefinition, { maxItems: RULES_MAX, description, examples: [[{ name: "All", effect: "hold" }]] });

export const ReplaceRulesBody = requestObject("ReplaceRules", "The rules that are in force from then on.", {
  rules: rulesOf("All rules of the account, in the order in which they are asked."),
});

export const ReorderRulesBody = requestObject("ReorderRules", "Another order of the same rules.", {
  ids: Type.Array(ruleIdSchema, { maxItems: RULES_MAX, description: "The ids of all rules in their new order." }),
});

export const RuleJson = answerObject(
  "Rule",
  "A rule of the account. Agents and readers see its name, effect and message.",
  {
    id: ruleIdSchema,
    position: quantity("Its place among the rules, from 0.", 0),
    version: positive("One more with each change.", 1),
    ...properties,
    created_at: Type.Optional(dateTime("When it was created.")),
    created_by: Type.Optional(plainText("Who created it.", "key:owner")),
    changed_at: Type.Optional(dateTime("When it was last changed.")),
    changed_by: Type.Optional(plainText("Who changed it last.", "user:ann@example.com")),
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

export const RuleListJson = answerObject("RuleList", "The rules of the account.", {
  data: Type.Array(RuleJson, { description: "In the order in which they are asked." }),
});

export const DryRunRulesBody = requestObject("DryRunRules", "Rules to try, and what on.", {
  rules: Type.Optional(rulesOf("The rules to try. Default: those in force.")),
  last: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DRY_RUN_ACTIONS_MAX,
      default: DRY_RUN_ACTIONS_DEFAULT,
      description: "How many actions to try them on, the newest first.",
      examples: [1000],
    }),
  ),
  since: Type.Optional(dateTime("Only actions created at this time or later.")),
});

const Effect = (description: string) => choice(RULE_EFFECTS, description, "hold");

const DifferingJson = answerObject("DryRunDifference", "A request whose fate would be another one.", {
  id: plainText("Id of the action.", "act_01kjwa5v00e7v8c9x2m4n6p8qr"),
  method: plainText("Its method.", "POST"),
  url: plainText("Its target, masked.", "https://api.example.com/pay"),
  title: Type.Optional(plainText("What the call does, in the requester's words.", "Refund 12.00 EUR")),
  status: plainText("Its status.", "completed"),
  created_at: dateTime("When it was created."),
  created_by: plainText("Who created it.", "key:agent"),
  in_force: Effect("What the rules in force say of it."),
  tried: Effect("What these rules say."),
  rule: nullable(plainText("The name of the rule that applies; null: none.", "Payments above 1,000")),
  reason: nullable(plainText("Why, where the rule says so or can't be decided.", "Ask the finance team first.")),
});

export const DryRunJson = answerObject("DryRun", "What rules would have done with what was requested.", {
  looked_at: quantity("Actions that the rules were tried on.", 4031),
  from: nullable(dateTime("When the oldest of them was created.")),
  allowed: quantity("They would be sent without a person.", 4016),
  held: quantity("They would be held, by a rule or as they were by their key or caller.", 12),
  refused: quantity("They would be refused.", 3),
  held_approved: quantity("Of those that would be held: a person approved them.", 9),
  held_rejected: quantity("A person rejected them.", 2),
  held_undecided: quantity("No person has decided on them.", 1),
  undecidable: quantity("They would be held because a rule can't be decided.", 0),
  unknown: quantity("Refused by a rule in that time: nothing is stored that rules could be tried on.", 0),
  uncertain: quantity(
    "They fit into budgets and counts as far as is known: older calls than those looked at may count too.",
    0,
  ),
  differing: quantity("The rules in force say something else of them.", 15),
  differences: Type.Array(DifferingJson, { description: `The newest ${DRY_RUN_SHOWN_MAX} of these.` }),
});

export function serializeDryRun({
  lookedAt,
  from,
  effects,
  held,
  shown,
  ...rest
}: RulesDryRun): Static<typeof DryRunJson> {
  const { undecidable, unknown, uncertain, differing } = rest;
  return {
    looked_at: lookedAt,
    from: from?.toISOString() ?? null,
    allowed: effects.allow,
    held: effects.hold,
    refused: effects.refuse,
    held_approved: held.approved,
    held_rejected: held.rejected,
    held_undecided: held.undecided,
    undecidable,
    unknown,
    uncertain,
    differing,
    differences: shown.map(({ action, inForce, tried, ruling }) => ({
      id: action.id,
      method: action.method,
      url: action.url,
      ...(action.title !== null && { title: action.title }),
      status: action.status,
      created_at: action.createdAt.toISOString(),
      created_by: action.createdBy,
      in_force: inForce,
      tried,
      rule: ruling?.rule.name ?? null,
      reason: ruling?.reason ?? null,
    })),
  };
}

/** What holds an agent that makes the same write again and again. */
export const LOOP_BRAKE: RuleDefinition = {
  name: "Loop brake",
  effect: "hold",
  methods: HTTP_METHODS.filter((method) => method !== "GET"),
  more_than: { count: 20, minutes: 5, same: "request" },
};

const MEMBERS = Object.keys(properties);

/** A definition as it is stored: equal ones have the same text. */
export function ruleText(definition: RuleDefinition): string {
  return JSON.stringify(definition, (_name, value: unknown) => (isObject(value) ? inOrder(value) : value));
}

/** Members in the order of the schema, or else of their names. */
function inOrder(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const place = (name: string) => (MEMBERS.includes(name) ? String.fromCharCode(MEMBERS.indexOf(name)) : name);
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (place(one) < place(other) ? -1 : 1)));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a stored rule says. Of a row that was altered in the database: that it holds everything, as it then does. */
export function definitionOf({ definition }: Pick<RuleRow, "definition">): RuleDefinition {
  try {
    // Safe: `ruleText` wrote it, or it is altered.
    const stored = JSON.parse(definition) as RuleDefinition;
    if (isObject(stored) && typeof stored.name === "string") return stored;
  } catch {
    // The same.
  }
  return { name: "A rule that can't be read", effect: "hold" };
}

/** Rules as JSON: whoever may approve sees all of them, others what they are told anyway. */
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

/** A rule, its place among the others from 0, and what is probably wrong with it. */
export interface PlacedRule {
  readonly row: RuleRow;
  readonly position: number;
  readonly warnings: readonly string[];
}

export function serializeRule({ row, position, warnings }: PlacedRule, role: Role): RuleJson {
  const { id, version, createdAt, createdBy, changedAt, changedBy } = row;
  const definition = definitionOf(row);
  const { name, effect, message } = definition;
  if (!mayDo(role, "approve"))
    return { id, position, version, name, effect, ...(message !== undefined && { message }) };
  const times = { created_at: createdAt.toISOString(), created_by: createdBy, changed_at: changedAt.toISOString() };
  const warned = warnings.length > 0 && { warnings: [...warnings] };
  return { id, position, version, ...definition, ...times, changed_by: changedBy, ...warned };
}
