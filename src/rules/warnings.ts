import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../core/action.ts";
import { requesterOf } from "../core/judge.ts";
import { RULE_WARNING_STEPS_MAX } from "../core/limits.ts";
import { isUnder } from "../core/sent-target.ts";
import { walksFor } from "./known.ts";
import type { HostPattern, CompiledRule } from "./rule.ts";

/** Rules that an earlier one keeps from applying, by their ids, and what to say of them. Of very many with long lists, the first. */
export function deadRules(rules: readonly CompiledRule[]): ReadonlyMap<string, string> {
  const dead = new Map<string, string>();
  const earlier: (readonly [CompiledRule, Hosts | null])[] = [];
  let stepsLeft = RULE_WARNING_STEPS_MAX;
  for (const rule of rules) {
    const before = earlier.find(([other, hosts]) => {
      stepsLeft -= 1;
      if (stepsLeft < 0 || !coversFields(other, rule)) return false;
      if (hosts === null) return true;
      stepsLeft -= rule.hosts?.length ?? 0;
      return rule.hosts?.every((host) => coversHost(hosts, host)) === true;
    });
    if (stepsLeft < 0) break;
    if (before !== undefined) dead.set(rule.id, deadBehind(before[0], rule));
    // One that counts lets others decide until its limit is reached.
    else if (rule.counters.length === 0) earlier.push([rule, rule.hosts === null ? null : hostsOf(rule.hosts)]);
  }
  return dead;
}

function deadBehind(before: CompiledRule, rule: CompiledRule): string {
  const name = JSON.stringify(before.name);
  // An `allow` says nothing of these.
  return before.effect === "allow" && rule.effect !== "allow"
    ? `Applies only where a path can be read in different ways: ${name} before it allows all other calls that it is about.`
    : `Never applies: ${name} before it decides on all calls that it is about.`;
}

/** Whether the first rule holds for each request for which the other one does, as far as its fields but hosts say. */
function coversFields(one: CompiledRule, other: CompiledRule): boolean {
  return (
    (one.when === null || one.when.text === other.when?.text) &&
    (one.keys === null || other.keys?.isSubsetOf(one.keys) === true) &&
    (one.methods === null || other.methods?.isSubsetOf(one.methods) === true) &&
    (one.path === null ||
      (other.path !== null && isUnder({ path: other.path.prefix, isAmbiguous: false }, one.path.prefix))) &&
    (one.bodyKind === null || one.bodyKind === other.bodyKind) &&
    (one.bodyOver === null || (other.bodyOver !== null && one.bodyOver <= other.bodyOver)) &&
    (one.between === null || Bun.deepEquals(one.between, other.between))
  );
}

interface Hosts {
  readonly exact: ReadonlySet<string>;
  /** All that end so behind a dot. */
  readonly parents: ReadonlySet<string>;
}

function hostsOf(patterns: readonly HostPattern[]): Hosts {
  const named = (isSubdomains: boolean) =>
    new Set(patterns.flatMap((one) => (one.isSubdomains === isSubdomains ? [one.host] : [])));
  return { exact: named(false), parents: named(true) };
}

function coversHost({ exact, parents }: Hosts, { host, isSubdomains }: HostPattern): boolean {
  const names = host.includes(":") ? [host, host.slice(0, host.lastIndexOf(":"))] : [host];
  if (!isSubdomains && names.some((name) => exact.has(name))) return true;
  return parents.size > 0 && names.some((name) => isBehind(isSubdomains ? `*.${name}` : name, parents));
}

function isBehind(name: string, parents: ReadonlySet<string>): boolean {
  const dot = name.indexOf(".");
  if (dot === -1) return false;
  const parent = name.slice(dot + 1);
  return parents.has(parent) || isBehind(parent, parents);
}

/**
 * That a rule can't be decided on some of the newest requests, which it would hold: of a draft that names a member of another body, on
 * most of them. Null: it can be decided on each.
 */
export async function undecidableOn(rule: CompiledRule, actions: readonly Action[]): Promise<string | null> {
  const reasons = new Map<string, number>();
  for (const [n, action] of actions.entries()) {
    // A large body takes milliseconds.
    if (n % TURN_ACTIONS === 0) await nextTurn();
    const [walk] = walksFor([rule], requesterOf(action), action, action.createdAt, String);
    const why = walk?.decision?.undecidable ?? null;
    if (why !== null) reasons.set(why, (reasons.get(why) ?? 0) + 1);
  }
  const [most] = [...reasons].toSorted(([, one], [, other]) => other - one);
  if (most === undefined) return null;
  const count = reasons.values().reduce((sum, one) => sum + one, 0);
  return `Undecidable on ${count} of the newest ${actions.length} requests, which it would hold: ${most[0]}`;
}

const TURN_ACTIONS = 5;
