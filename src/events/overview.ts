import { RecentMap } from "../core/maps.ts";
import { authorize, type Caller, type Viewer, roleViewer } from "../core/roles.ts";
import {
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_FRESH_MS_MAX,
  OVERVIEW_RANGES,
} from "../core/limits.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "../core/account-store.ts";
import {
  type ActivityName,
  type ActivitySpan,
  type ActivityStore,
  firstSlot,
  type OverviewRange,
  slotLengthMs,
  RANGE_NAMES,
} from "../core/activity.ts";
import type { ActionStore, ScheduledRetries, WaitingApprovals } from "../core/store.ts";
import { type CountActivity, keptSince } from "./activity-job.ts";
import { failingHosts, overviewFigures, sumHostHours, type OverviewFigures, shownNames } from "./overview-figures.ts";
import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import { maskText } from "../receipts/masking.ts";

/** The overview, and what is waiting now. */
export interface OverviewAnswer {
  readonly overview: OverviewFigures;
  readonly retries: ScheduledRetries;
  readonly waiting: WaitingApprovals;
  /** Names of its keys by id. A deleted key has none. */
  readonly keyNames: ReadonlyMap<string, string>;
}

interface OverviewApp {
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  readonly config: Pick<Config, "retentionDays">;
  readonly store: {
    readonly actions: Pick<ActionStore, "scheduledRetries" | "waitingApprovals">;
    readonly activity: Pick<ActivityStore, "read" | "latencies" | "hostSlots">;
    readonly accounts: Pick<AccountStore, "findKey">;
  };
  readonly countActivity: Pick<CountActivity, "upToNow">;
}

type OverviewService = ReturnType<typeof createOverview>;

/** Reads the counts of a range. Caches them for a multiple of the time that the read took. */
export function createOverview(app: OverviewApp) {
  const { clock } = app;
  const { actions, accounts } = app.store;
  const counting = new Map<string, Promise<OverviewFigures>>();
  const kept = new RecentMap<{ readonly overview: OverviewFigures; readonly freshUntilMs: number }>(
    OVERVIEW_ACCOUNTS_MAX,
  );
  let last: Promise<unknown> = Promise.resolve();

  const count = async (name: string, accountId: string, range: OverviewRange): Promise<OverviewFigures> => {
    const beganMs = clock.monotonicMs();
    const overview = await readOverview(app, accountId, range);
    const endedMs = clock.monotonicMs();
    const freshMs = Math.min(OVERVIEW_FRESH_MS_MAX, OVERVIEW_FRESH_FACTOR * (endedMs - beganMs));
    kept.set(name, { overview, freshUntilMs: endedMs + freshMs });
    return overview;
  };

  const read = async (accountId: string, range: OverviewRange): Promise<OverviewFigures> => {
    const name = `${accountId} ${range}`;
    const known = kept.get(name);
    if (known !== undefined && clock.monotonicMs() < known.freshUntilMs) return known.overview;
    const same = counting.get(name);
    if (same !== undefined) return same;
    const overview = last.then(() => count(name, accountId, range)).finally(() => counting.delete(name));
    counting.set(name, overview);
    last = overview.catch(() => {});
    return overview;
  };

  return {
    async read(caller: Caller, range: OverviewRange): Promise<OverviewAnswer> {
      authorize(caller, "read");
      const { accountId } = caller;
      const [overview, retries, waiting] = await Promise.all([
        read(accountId, range),
        actions.scheduledRetries(accountId, clock.now()),
        actions.waitingApprovals(accountId, clock.now()),
      ]);
      const keyIds = overview.keys.named.map(({ name }) => name).filter((name) => name !== "");
      const keys = await Promise.all(keyIds.map((id) => accounts.findKey(accountId, id)));
      const keyNames = new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key.name] as const])));
      return { overview, retries, waiting, keyNames };
    },
  };
}

/** Counts new events, up to a bound, and reads the counts of a range. */
async function readOverview(
  { clock, config, store, countActivity }: OverviewApp,
  accountId: string,
  range: OverviewRange,
): Promise<OverviewFigures> {
  const { activity } = store;
  const countedUntil = await countActivity.upToNow();
  const now = clock.now();
  const span = overviewSpan(accountId, range, now);
  const { since } = span;
  const day = overviewSpan(accountId, "24h", now);
  const { slots, names } = await activity.read(span);
  const shown = shownNames(names);
  const failing = failingHosts(names);
  const hosts = [...new Set([...shown.flatMap(hostIn), ...failing.map(({ host }) => host)])];
  const latencies = await activity.latencies(span, shown);
  const hostHours = sumHostHours(hosts, await activity.hostSlots(day, hosts), day.since);
  const figures = overviewFigures({ range, since, slots, names, shown, failing, latencies });
  return { range, since: keptSince(since, config.retentionDays, now), countedUntil, ...figures, hostHours };
}

/** The slots of a range. Leaves out later ones, from before the clock was set back. */
function overviewSpan(accountId: string, range: OverviewRange, now: Date): ActivitySpan {
  const since = firstSlot(range, now);
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const until = new Date(since.getTime() + slots * slotLengthMs(slotMinutes));
  return { accountId, slotMinutes, since, until };
}

function hostIn({ kind, name }: ActivityName): readonly string[] {
  return kind === "host" ? [name] : [];
}

const milliseconds = (description: string) =>
  t.nullable(Type.Number({ minimum: 0, description: `${description} Null: there was none.`, examples: [41] }));

const host = t.plainText("Host name, and the port unless it is the scheme's default.", "api.example.com");

const FIGURES = {
  created: t.quantity("Actions created.", 17),
  completed: t.quantity("Actions that completed.", 17),
  failed: t.quantity("Actions that failed.", 17),
  attempts: t.quantity("Attempts that ended.", 17),
  p50_ms: milliseconds("Median duration of the attempts."),
  p95_ms: milliseconds("95 % of the attempts took at most so long."),
};

const SHARE = { ...FIGURES, failed_attempts: t.quantity("Attempts that failed.", 17) };

const others = Type.Union([t.answerObject("OverviewOthers", "All others together.", SHARE), Type.Null()], {
  description: "All others together; null: there are none.",
  examples: [{ created: 17, completed: 15, failed: 2, attempts: 21, p50_ms: 41, p95_ms: 90, failed_attempts: 6 }],
});

export const OverviewParameters = t.closedObject({
  range: Type.Optional(
    t.choice(
      RANGE_NAMES,
      "How far back: an hour by minutes, a day by half hours, a week by 3 hours, 30 days by 12 hours.",
      "7d",
      { default: "24h" },
    ),
  ),
});

export const RANGE_DEFAULT: OverviewRange = "24h";

export const OverviewJson = t.answerObject("Overview", "What the account did in a range, and what waits.", {
  range: t.choice(RANGE_NAMES, "How far back it goes.", "24h"),
  since: t.dateTime("Nothing before this is counted."),
  counted_until: t.nullable(t.dateTime("Nothing after this is counted yet; null: everything is.")),
  slot_seconds: Type.Integer({ minimum: 60, description: "Length of a slot.", examples: [1_800] }),
  slots: Type.Array(
    t.answerObject("OverviewSlot", "A slot of the range: half an hour of a day.", {
      at: t.dateTime("When the slot begins."),
      ...FIGURES,
    }),
    { description: "The slots of the range, oldest first; the last one is not over." },
  ),
  latency: t.nullable(
    Type.Object(
      {
        p50_ms: Type.Number({ description: "Median.", examples: [41] }),
        p95_ms: Type.Number({ description: "95 %.", examples: [120] }),
        p99_ms: Type.Number({ description: "99 %.", examples: [480] }),
      },
      { description: "Duration of all attempts, within 3 %; null: there was none." },
    ),
  ),
  hosts: Type.Array(t.answerObject("OverviewHost", "The calls to a host.", { host, ...SHARE }), {
    description: "The busiest hosts.",
  }),
  other_hosts: others,
  agents: Type.Array(
    t.answerObject("OverviewAgent", "The actions of a key.", {
      key_id: t.plainText("Id of the key; empty: no key created them.", "key_5hK2mP8xQw"),
      name: t.nullable(t.plainText("Its name; null: it has none any more.", "billing-agent")),
      ...SHARE,
    }),
    { description: "The busiest keys." },
  ),
  other_agents: others,
  approvals: t.answerObject("OverviewApprovals", "What awaits approval, and how fast people decided.", {
    waiting: t.quantity("Actions that await approval now.", 17),
    is_more: t.yesNo("Whether more may wait than were counted.", false),
    oldest_at: t.nullable(t.dateTime("When the oldest of them was created; null: none waits.")),
    over_an_hour: t.quantity("How many of them were created more than an hour ago.", 17),
    over_a_day: t.quantity("How many of them were created more than a day ago.", 17),
    approved: t.quantity("Approvals in the range.", 17),
    rejected: t.quantity("Rejections in the range.", 17),
    p50_ms: milliseconds("Median time from the request to the decision."),
    p95_ms: milliseconds("95 % of the decisions took at most so long."),
  }),
  failing_hosts: Type.Array(
    t.answerObject("FailingHost", "A host where actions failed, or where attempts failed and nothing has completed.", {
      host,
      completed: FIGURES.completed,
      failed: t.quantity("Actions that failed. Attempts that were retried with success are not among them.", 17),
      attempts: FIGURES.attempts,
      failed_attempts: SHARE.failed_attempts,
      last_error: t.plainText("How the last attempt failed.", "The target answered with status 503."),
      last_failed_at: t.dateTime("When the last attempt failed."),
    }),
    { description: "Those with most failed actions first." },
  ),
  retries: Type.Object(
    {
      scheduled: t.quantity("Actions that wait for the time of their next attempt.", 17),
      due: t.quantity("Actions that are due and wait for a free slot.", 17),
      due_since: t.nullable(t.dateTime("Since when the first of these is due; null: none is.")),
      is_more: t.yesNo("Whether there may be more of both.", false),
      hosts: Type.Array(
        t.answerObject("RetryingHost", "A host with scheduled retries.", {
          host,
          scheduled: t.quantity("Actions that wait.", 17),
          next_at: t.dateTime("When the first one is due."),
        }),
        { description: "Those whose next retry comes first." },
      ),
    },
    { description: "What waits to be sent again." },
  ),
});

/** Masks texts for the viewer, like the page of an action. */
function serializeOverview({ overview, retries, waiting, keyNames }: OverviewAnswer, viewer: Viewer) {
  const { hosts, keys, failing, decisions } = overview;
  const masked = (text: string) => maskText(text, viewer);
  return toJson(OverviewJson, {
    ...overview,
    slotSeconds: OVERVIEW_RANGES[overview.range].slotMinutes * 60,
    hosts: hosts.named.map((one) => ({ ...one, host: masked(one.name) })),
    otherHosts: hosts.others,
    agents: keys.named.map((one) => {
      const name = keyNames.get(one.name);
      return { ...one, keyId: one.name, name: name === undefined ? null : masked(name) };
    }),
    otherAgents: keys.others,
    approvals: { ...decisions, ...waiting, waiting: waiting.count, isMore: waiting.isCut },
    failingHosts: failing.map((one) => ({ ...one, host: masked(one.host), lastError: masked(one.lastError) })),
    retries: {
      ...retries,
      scheduled: retries.count,
      isMore: retries.isCut,
      hosts: retries.hosts.map((one) => ({ ...one, host: masked(one.host), scheduled: one.count })),
    },
  });
}

export function overviewRoutes({ overviewService }: { readonly overviewService: Pick<OverviewService, "read"> }) {
  return createApiRoutes().get(
    "/v1/overview",
    async ({ caller, query: { range = RANGE_DEFAULT } }) =>
      jsonResponse(serializeOverview(await overviewService.read(caller, range), roleViewer(caller.role))),
    operation({
      operationId: "getOverview",
      permission: "read",
      tag: "Actions",
      summary: "Get the figures of an hour, a day, a week or 30 days",
      description: "Returns the figures of the page Overview.",
      notes: [
        "They may be some seconds old.",
        "Hosts, names and errors are masked as the role sees them on an action.",
      ],
      query: OverviewParameters,
      answers: { 200: { description: "The figures.", schema: OverviewJson } },
    }),
  );
}
