import { OVERVIEW_RANGES } from "../../src/core/limits.ts";
import { type ActivityGroup, firstSlot, type OverviewRange, slotLengthMs } from "../../src/core/activity.ts";
import type { OverviewAnswer } from "../../src/events/overview.ts";
import type { OverviewFigures } from "../../src/events/overview-figures.ts";
import { ACCOUNT, KEY, NOON } from "./factory.ts";

/** One attempt that completed at noon. */
export function aGroup(overrides: Partial<ActivityGroup> = {}): ActivityGroup {
  return {
    accountId: ACCOUNT,
    at: NOON,
    host: "api.example.com",
    keyId: KEY,
    kind: "completed",
    ms: 20,
    count: 1,
    byMcp: 0,
    attempts: overrides.count ?? 1,
    failedAttempts: 0,
    lastError: null,
    lastFailedAt: null,
    ...overrides,
  };
}

const NO_FIGURES = { created: 0, completed: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

/** An overview of an account that did nothing, at noon. */
export function anOverview({ range = "24h", ...overrides }: Partial<OverviewFigures> = {}): OverviewFigures {
  const since = firstSlot(range, NOON);
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const at = (index: number) => new Date(since.getTime() + index * slotLengthMs(slotMinutes));
  return {
    range,
    since,
    countedUntil: null,
    slots: Array.from({ length: slots }, (_, index) => ({ at: at(index), ...NO_FIGURES })),
    latency: null,
    failing: [],
    hostHours: new Map(),
    hosts: { named: [], others: null },
    keys: { named: [], others: null },
    decisions: { approved: 0, rejected: 0, p50Ms: null, p95Ms: null },
    ...overrides,
  };
}

/** The answer of the service about it. */
export function anOverviewAnswer({
  range = "24h",
  ...overrides
}: Partial<OverviewAnswer> & { readonly range?: OverviewRange } = {}): OverviewAnswer {
  return {
    overview: anOverview({ range }),
    retries: { count: 0, due: 0, dueSince: null, isCut: false, hosts: [] },
    waiting: { count: 0, isCut: false, oldestAt: null, overAnHour: 0, overADay: 0 },
    keyNames: new Map(),
    ...overrides,
  };
}
