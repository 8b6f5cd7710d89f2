import type { Backoff } from "./backoff.ts";

export const STATUS_CLASSES = ["3xx", "4xx", "5xx"] as const;

/** A status of the target, or a class of them. */
export type StatusPattern = number | (typeof STATUS_CLASSES)[number];

/** How attempts are made and repeated. A member that is null is decided by whoever comes next: host, account, server. */
export interface AttemptRules {
  /** One deadline for a whole attempt. */
  readonly timeoutMs: number | null;
  readonly backoff: Backoff | null;
  /** Statuses after which no further attempt follows. */
  readonly giveUpOn: readonly StatusPattern[] | null;
}

/** The same where everything is decided. */
export type EffectiveRules = { readonly [Name in keyof AttemptRules]: NonNullable<AttemptRules[Name]> };

export const NO_RULES: AttemptRules = { timeoutMs: null, backoff: null, giveUpOn: null };

/** The rules that apply, each member by itself: of `rules` the first that says something, else the server's. */
export function rulesOf(server: EffectiveRules, rules: readonly AttemptRules[]): EffectiveRules {
  const first = <Name extends keyof AttemptRules>(name: Name): AttemptRules[Name] => {
    return rules.find((one) => one[name] !== null)?.[name] ?? null;
  };
  return {
    timeoutMs: first("timeoutMs") ?? server.timeoutMs,
    backoff: first("backoff") ?? server.backoff,
    giveUpOn: first("giveUpOn") ?? server.giveUpOn,
  };
}

/** Whether a status is one of them. */
export function isOneOfStatuses(patterns: readonly StatusPattern[], code: number): boolean {
  const ofClass = `${Math.floor(code / 100)}xx`;
  return patterns.some((pattern) => pattern === code || pattern === ofClass);
}
