import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { jsonIn } from "./json.ts";

/** What decides on a request: the hold of its key, its own `approve`, a rule of the account, or a person's grant. */
export const POLICY_SOURCES = ["key", "caller", "rule", "grant"] as const;

interface PolicySource {
  /** What people call it. The name of the rule or grant follows it. */
  readonly label: string;
  /** Whether an agent's client may pass on a person's approval of what it holds. */
  readonly mayBePassedOn: boolean;
  /** Whether a grant lets calls pass that it holds. */
  readonly isLiftedByGrants: boolean;
}

const SOURCES: Readonly<Record<(typeof POLICY_SOURCES)[number], PolicySource>> = {
  key: { label: "The hold of its key", mayBePassedOn: false, isLiftedByGrants: true },
  caller: { label: "The requester", mayBePassedOn: true, isLiftedByGrants: false },
  rule: { label: "The rule", mayBePassedOn: false, isLiftedByGrants: true },
  grant: { label: "The grant", mayBePassedOn: false, isLiftedByGrants: false },
};

export function policySource({ by }: ActionPolicy): PolicySource {
  return SOURCES[by];
}

const StoredPolicy = Type.Object({
  effect: Type.Enum(["allow", "hold"]),
  by: Type.Enum([...POLICY_SOURCES]),
  /** The rule or grant as it was then; null: neither. */
  id: Type.Union([Type.String(), Type.Null()]),
  name: Type.Union([Type.String(), Type.Null()]),
  version: Type.Union([Type.Integer(), Type.Null()]),
  /** Shown to everybody who sees the action: what an owner wrote for agents, or why a rule was undecidable. */
  reason: Type.Union([Type.String(), Type.Null()]),
});

/** Why an action was held, or which rule or grant let it pass. Stored with it as JSON. */
export type ActionPolicy = Readonly<Static<typeof StoredPolicy>>;

const check = Compile(StoredPolicy);

/** Reads a stored policy. Undefined: the text is none. */
export function parseActionPolicy(text: string): ActionPolicy | undefined {
  const stored = jsonIn(text);
  return check.Check(stored) ? stored : undefined;
}

/** What the rules of an account say about a request. */
export interface Ruling {
  readonly effect: "allow" | "hold" | "refuse";
  readonly rule: { readonly id: string; readonly name: string; readonly version: number };
  /** See `ActionPolicy`. */
  readonly reason: string | null;
  /** It is impossible to tell whether the rule applies, so it holds. */
  readonly isUndecidable: boolean;
}

/** The policy of an action that a rule has held or let pass. */
export function policyOfRuling({ effect, rule, reason }: Ruling): ActionPolicy {
  return { effect: effect === "allow" ? "allow" : "hold", by: "rule", ...rule, reason };
}

/** What keeps an attempt from beginning: the action waits for a person, or ends. */
export interface Stop {
  readonly effect: "hold" | "refuse";
  /** The policy of a rule, or, if a grant was ended, of the hold of the key. */
  readonly policy: ActionPolicy;
}

/** The policy of an action that its key or its caller has held. */
export function policyOfHold(by: "key" | "caller"): ActionPolicy {
  return { effect: "hold", by, id: null, name: null, version: null, reason: null };
}

/** 'The rule "Payments" holds it: a person checks them.' Absent if its key or its requester holds it. */
export function heldBy(policy: ActionPolicy | null): { readonly reason?: string } {
  if (policy?.by !== "rule") return {};
  return {
    reason: `${RULE_NAMED}${policy.name ?? ""}" holds it${policy.reason === null ? "." : `: ${policy.reason}`}`,
  };
}

/** Why a rule refuses a call. */
export function refusedBy({ name, reason }: Pick<ActionPolicy, "name" | "reason">): string {
  return `${RULE_NAMED}${name ?? ""}" refuses this call${reason === null ? "." : `: ${reason}`}`;
}

const RULE_NAMED = 'The rule "';

/** Whether a reason of the service names a rule. */
export function namesRule(reason: string): boolean {
  return reason.startsWith(RULE_NAMED);
}

const STRICTNESS = { allow: 0, none: 1, hold: 2, refuse: 3 } as const;

/** The one with the strictest ruling. If one is allowed by a rule and no rule applies to another, no rule applies. */
export function strictest<Judged extends { readonly ruling: Ruling | null }>(judged: readonly Judged[]): Judged | null {
  const strictness = ({ ruling }: Judged) => STRICTNESS[ruling?.effect ?? "none"];
  return judged.toSorted((one, other) => strictness(other) - strictness(one))[0] ?? null;
}
