import Type, { type Static } from "typebox";
import { dateTime, idSchema, plainText, quantity } from "../api/schema-helpers.ts";
import type { RuleRow } from "../core/account-rules.ts";
import { RULES_MAX } from "../core/limits.ts";
import { mayDo, type Role } from "../core/roles.ts";
import { RuleDefinition } from "./rule.ts";

export const RuleId = idSchema("rul", "Id of a rule.", "RuleId");

const { properties } = RuleDefinition;

export const CreateRule = Type.Object(
  {
    ...properties,
    before: Type.Optional(idSchema("rul", "The rule that it is put before. Default: behind all others.")),
  },
  { title: "CreateRule", additionalProperties: false, description: "A rule of the account." },
);

/** The members that a rule need not have. */
const CONDITIONS = [
  ...(["when", "keys", "methods", "hosts", "path", "body_kind", "body_bytes", "between"] as const),
  ...(["message", "explain"] as const),
] as const satisfies readonly (keyof RuleDefinition)[];

export const ChangeRule = Type.Partial(
  Type.Object({
    ...properties,
    unset: Type.Array(Type.Enum([...CONDITIONS]), {
      minItems: 1,
      maxItems: CONDITIONS.length,
      description: "Conditions that the rule has no longer.",
      examples: [["path"]],
    }),
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

export const ReplaceRules = Type.Object(
  { rules: rulesOf("All rules of the account, in the order in which they are asked.") },
  { title: "ReplaceRules", additionalProperties: false, description: "The rules that are in force from then on." },
);

export const ReorderRules = Type.Object(
  { ids: Type.Array(RuleId, { maxItems: RULES_MAX, description: "The ids of all rules in their new order." }) },
  { title: "ReorderRules", additionalProperties: false, description: "Another order of the same rules." },
);

export const RuleJson = Type.Object(
  {
    id: RuleId,
    position: quantity("Its place among the rules, from 0.", 0),
    version: Type.Integer({ minimum: 1, description: "One more with each change.", examples: [1] }),
    ...properties,
    created_at: Type.Optional(dateTime("When it was created.")),
    created_by: Type.Optional(plainText("Who created it.", "key:owner")),
    changed_at: Type.Optional(dateTime("When it was last changed.")),
    changed_by: Type.Optional(plainText("Who changed it last.", "user:ann@example.com")),
  },
  {
    title: "Rule",
    description: "A rule of the account. Agents and readers see its name, effect and message.",
  },
);

export type RuleJson = Static<typeof RuleJson>;

export const RuleList = Type.Object(
  { data: Type.Array(RuleJson, { description: "In the order in which they are asked." }) },
  { title: "RuleList", description: "The rules of the account." },
);

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
export function serializeRules(rows: readonly RuleRow[], role: Role): readonly RuleJson[] {
  return rows.map((row, position) => serializeRule(row, position, role));
}

export function serializeRule(row: RuleRow, position: number, role: Role): RuleJson {
  const { id, version, createdAt, createdBy, changedAt, changedBy } = row;
  const definition = definitionOf(row);
  const { name, effect, message } = definition;
  if (!mayDo(role, "approve"))
    return { id, position, version, name, effect, ...(message !== undefined && { message }) };
  const times = { created_at: createdAt.toISOString(), created_by: createdBy, changed_at: changedAt.toISOString() };
  return { id, position, version, ...definition, ...times, changed_by: changedBy };
}
