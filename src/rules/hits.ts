import type { ActionPolicy } from "../core/action-policy.ts";
import type { AuditStore } from "../core/audit.ts";
import { DRY_RUN_PAGE_ACTIONS, RULE_HITS_MAX } from "../core/limits.ts";
import type { RuleEffect } from "./schemas.ts";

/** What rules did to calls. */
export interface RuleHits {
  /** By the id of the rule, how many calls it held, refused or let pass. */
  readonly counts: ReadonlyMap<string, Readonly<Record<RuleEffect, number>>>;
  /** Whether every call is counted, and not only the newest ones. */
  readonly isWhole: boolean;
}

/** `ruled`: why calls were held or let pass; `refused`: the rules that refused calls. */
export function hitsOf(ruled: readonly ActionPolicy[], refused: Refusals): RuleHits {
  const counts = new Map<string, Record<RuleEffect, number>>();
  const count = (id: string, effect: RuleEffect) => {
    const hits = counts.get(id) ?? { hold: 0, refuse: 0, allow: 0 };
    hits[effect] += 1;
    counts.set(id, hits);
  };
  for (const { by, id, effect } of ruled) if (by === "rule" && id !== null) count(id, effect);
  for (const id of refused.ruleIds) count(id, "refuse");
  return { counts, isWhole: ruled.length < RULE_HITS_MAX && refused.isWhole };
}

/** Calls that rules refused. */
interface Refusals {
  /** The rule of each. */
  readonly ruleIds: readonly string[];
  readonly isWhole: boolean;
}

/** Reads at most so many pages of the audit log. */
export async function refusalsSince(
  audit: Pick<AuditStore, "page">,
  { accountId, since, pagesMax }: { readonly accountId: string; readonly since: Date; readonly pagesMax: number },
): Promise<Refusals> {
  const ruleIds: string[] = [];
  let before: number | null = null;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const filter = { accountId, kinds: ["refused_by_rule"] as const, actors: [], since, until: null };
    const page = await audit.page({ ...filter, before, limit: DRY_RUN_PAGE_ACTIONS });
    ruleIds.push(...page.rows.map(({ subject }) => subject));
    ({ before } = page);
    if (before === null) return { ruleIds, isWhole: true };
  }
  return { ruleIds, isWhole: false };
}
