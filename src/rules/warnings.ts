import { RULE_WARNING_STEPS_MAX } from "../core/limits.ts";
import { isUnder } from "../core/sent-target.ts";
import { type CompiledRule, isHost } from "./rule.ts";
import type { RuleDefinition } from "./schemas.ts";

/** Rules that an earlier one keeps from applying, by their ids, and what to say of them. Of very many with long lists, the first. */
export function deadRules(rules: readonly CompiledRule[]): ReadonlyMap<string, string> {
  const dead = new Map<string, string>();
  const earlier: CompiledRule[] = [];
  let stepsLeft = RULE_WARNING_STEPS_MAX;
  for (const rule of rules) {
    const before = earlier.find((other) => {
      stepsLeft -= 1;
      if (stepsLeft < 0 || !coversFields(other.definition, rule.definition)) return false;
      const [hosts, wanted] = [other.definition.hosts, rule.definition.hosts];
      stepsLeft -= (hosts?.length ?? 0) * (wanted?.length ?? 0);
      return stepsLeft >= 0 && coversList(hosts, wanted, coversHost);
    });
    if (stepsLeft < 0) break;
    if (before !== undefined) dead.set(rule.id, deadBehind(before, rule));
    // One that counts lets others decide until its limit is reached.
    else if (rule.counters.length === 0) earlier.push(rule);
  }
  return dead;
}

function deadBehind(before: CompiledRule, rule: CompiledRule): string {
  const name = JSON.stringify(before.definition.name);
  // An `allow` says nothing of these.
  return before.definition.effect === "allow" && rule.definition.effect !== "allow"
    ? `Applies only where a path can be read in different ways: ${name} before it allows all other calls that it is about.`
    : `Never applies: ${name} before it decides on all calls that it is about.`;
}

/** Whether the first rule holds for each request for which the other one does, as far as its members but hosts say. */
function coversFields(one: RuleDefinition, other: RuleDefinition): boolean {
  return (
    (one.when === undefined || one.when === other.when) &&
    coversList(one.keys, other.keys) &&
    coversList(one.methods, other.methods) &&
    coversList(one.credentials, other.credentials) &&
    (one.path === undefined ||
      (other.path !== undefined && isUnder({ path: other.path, isAmbiguous: false }, one.path))) &&
    (one.body_kind === undefined || one.body_kind === other.body_kind) &&
    (one.body_bytes === undefined ||
      (other.body_bytes !== undefined && one.body_bytes.over <= other.body_bytes.over)) &&
    (one.between === undefined || Bun.deepEquals(one.between, other.between))
  );
}

function coversList<Item>(
  one: readonly Item[] | undefined,
  other: readonly Item[] | undefined,
  isSame = (item: Item, of: Item) => item === of,
): boolean {
  return one === undefined || other?.every((item) => one.some((of) => isSame(of, item))) === true;
}

/** With a port, a host is also one without it. */
function coversHost(one: string, other: string): boolean {
  return isHost(one, other) || isHost(one, other.replace(/:\d+$/, ""));
}
