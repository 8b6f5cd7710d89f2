import Type, { type Static } from "typebox";
import { type Viewer, viewerOf } from "../core/roles.ts";
import { dateTime, nullable, plainText, choice, yesNo, quantity } from "../api/schema-helpers.ts";
import { OVERVIEW_RANGES } from "../core/limits.ts";
import { jsonOf } from "../http/response.ts";
import { createApiRoutes, operation } from "../http/operation.ts";
import { maskText } from "../receipts/masking.ts";
import { type OverviewRange, RANGE_NAMES } from "../core/activity.ts";
import type { OverviewAnswer, OverviewService } from "./overview.ts";
import type { Breakdown, NamedFigures } from "./overview-figures.ts";

const milliseconds = (description: string) =>
  nullable(Type.Number({ minimum: 0, description: `${description} Null: there was none.`, examples: [41] }));

const host = plainText("Host name, and the port unless it is the scheme's default.", "api.example.com");

const FIGURES = {
  created: quantity("Actions created.", 17),
  completed: quantity("Actions that completed.", 17),
  failed: quantity("Actions that failed.", 17),
  attempts: quantity("Attempts that ended.", 17),
  p50_ms: milliseconds("Median duration of the attempts."),
  p95_ms: milliseconds("95 % of the attempts took at most so long."),
};

const Slot = Type.Object(
  { at: dateTime("When the slot begins."), ...FIGURES },
  { title: "OverviewSlot", description: "A slot of the range: half an hour of a day." },
);

const SHARE = { ...FIGURES, failed_attempts: quantity("Attempts that failed.", 17) };

const others = Type.Union(
  [Type.Object(SHARE, { title: "OverviewOthers", description: "All others together." }), Type.Null()],
  {
    description: "All others together; null: there are none.",
    examples: [{ created: 17, completed: 15, failed: 2, attempts: 21, p50_ms: 41, p95_ms: 90, failed_attempts: 6 }],
  },
);

export const OverviewQuery = Type.Object(
  {
    range: Type.Optional(
      Type.Enum([...RANGE_NAMES], {
        type: "string",
        default: "24h",
        description: "How far back: an hour by minutes, a day by half hours, a week by 3 hours, 30 days by 12 hours.",
        examples: ["7d"],
      }),
    ),
  },
  { additionalProperties: false },
);

/** The range of the page and of the API when none is named. */
export const RANGE_DEFAULT: OverviewRange = "24h";

const OverviewJson = Type.Object(
  {
    range: choice(RANGE_NAMES, "How far back it goes.", "24h"),
    since: dateTime("Nothing before this is counted."),
    counted_until: nullable(dateTime("Nothing after this is counted yet; null: everything is.")),
    slot_seconds: Type.Integer({ minimum: 60, description: "Length of a slot.", examples: [1_800] }),
    slots: Type.Array(Slot, { description: "The slots of the range, oldest first; the last one is not over." }),
    latency: nullable(
      Type.Object(
        {
          p50_ms: Type.Number({ description: "Median.", examples: [41] }),
          p95_ms: Type.Number({ description: "95 %.", examples: [120] }),
          p99_ms: Type.Number({ description: "99 %.", examples: [480] }),
        },
        { description: "Duration of all attempts, within 3 %; null: there was none." },
      ),
    ),
    hosts: Type.Array(Type.Object({ host, ...SHARE }, { title: "OverviewHost", description: "The calls to a host." }), {
      description: "The busiest hosts.",
    }),
    other_hosts: others,
    agents: Type.Array(
      Type.Object(
        {
          key_id: plainText("Id of the key; empty: no key created them.", "key_5hK2mP8xQw"),
          name: nullable(plainText("Its name; null: it has none any more.", "billing-agent")),
          ...SHARE,
        },
        { title: "OverviewAgent", description: "The actions of a key." },
      ),
      { description: "The busiest keys." },
    ),
    other_agents: others,
    approvals: Type.Object(
      {
        waiting: quantity("Actions that await approval now.", 17),
        is_more: yesNo("Whether more may wait than were counted.", false),
        oldest_at: nullable(dateTime("When the oldest of them was created; null: none waits.")),
        over_an_hour: quantity("How many of them were created more than an hour ago.", 17),
        over_a_day: quantity("How many of them were created more than a day ago.", 17),
        approved: quantity("Approvals in the range.", 17),
        rejected: quantity("Rejections in the range.", 17),
        p50_ms: milliseconds("Median time from the request to the decision."),
        p95_ms: milliseconds("95 % of the decisions took at most so long."),
      },
      { title: "OverviewApprovals", description: "What awaits approval, and how fast people decided." },
    ),
    failing_hosts: Type.Array(
      Type.Object(
        {
          host,
          completed: quantity("Actions that completed.", 17),
          failed: quantity("Actions that failed. Attempts that were retried with success are not among them.", 17),
          attempts: quantity("Attempts that ended.", 17),
          failed_attempts: quantity("Attempts that failed.", 17),
          last_error: plainText("How the last attempt failed.", "The target answered with status 503."),
          last_failed_at: dateTime("When the last attempt failed."),
        },
        {
          title: "FailingHost",
          description: "A host where actions failed, or where attempts failed and nothing has completed.",
        },
      ),
      { description: "Those with most failed actions first." },
    ),
    retries: Type.Object(
      {
        scheduled: quantity("Actions that wait for the time of their next attempt.", 17),
        due: quantity("Actions that are due and wait for a free slot.", 17),
        due_since: nullable(dateTime("Since when the first of these is due; null: none is.")),
        is_more: yesNo("Whether there may be more of both.", false),
        hosts: Type.Array(
          Type.Object(
            { host, scheduled: quantity("Actions that wait.", 17), next_at: dateTime("When the first one is due.") },
            { title: "RetryingHost", description: "A host with scheduled retries." },
          ),
          { description: "Those whose next retry comes first." },
        ),
      },
      { description: "What waits to be sent again." },
    ),
  },
  { title: "Overview", description: "What the account did in a range, and what waits." },
);

type OverviewJson = Static<typeof OverviewJson>;

/** /v1/overview: the figures of the page. */
export function overviewRoutes({ overviewService }: { readonly overviewService: Pick<OverviewService, "read"> }) {
  return createApiRoutes().get(
    "/v1/overview",
    async ({ caller, query: { range = RANGE_DEFAULT } }) =>
      jsonOf(serializeOverview(await overviewService.read(caller, range), viewerOf(caller.role))),
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
      query: OverviewQuery,
      answers: { 200: { description: "The figures.", schema: OverviewJson } },
    }),
  );
}

/** Texts are masked as the page of an action masks them for the viewer. */
function serializeOverview({ overview, retries, waiting, keyNames }: OverviewAnswer, viewer: Viewer): OverviewJson {
  const { range, since, countedUntil, slots, latency, decisions } = overview;
  return {
    range,
    since: since.toISOString(),
    counted_until: countedUntil?.toISOString() ?? null,
    slot_seconds: OVERVIEW_RANGES[range].slotMinutes * 60,
    slots: slots.map(({ at, p50Ms, p95Ms, ...counts }) => {
      return { at: at.toISOString(), ...counts, p50_ms: p50Ms, p95_ms: p95Ms };
    }),
    latency: latency === null ? null : { p50_ms: latency.p50Ms, p95_ms: latency.p95Ms, p99_ms: latency.p99Ms },
    hosts: overview.hosts.named.map(({ name, ...figures }) => ({
      host: maskText(name, viewer),
      ...shareJson(figures),
    })),
    other_hosts: othersJson(overview.hosts),
    agents: overview.keys.named.map(({ name, ...figures }) => ({
      key_id: name,
      name: keyNames.has(name) ? maskText(keyNames.get(name) ?? "", viewer) : null,
      ...shareJson(figures),
    })),
    other_agents: othersJson(overview.keys),
    approvals: {
      waiting: waiting.count,
      is_more: waiting.isCut,
      oldest_at: waiting.oldestAt?.toISOString() ?? null,
      over_an_hour: waiting.overAnHour,
      over_a_day: waiting.overADay,
      approved: decisions.approved,
      rejected: decisions.rejected,
      p50_ms: decisions.p50Ms,
      p95_ms: decisions.p95Ms,
    },
    failing_hosts: overview.failing.map(({ failedAttempts, lastError, lastFailedAt, ...failing }) => ({
      ...failing,
      host: maskText(failing.host, viewer),
      failed_attempts: failedAttempts,
      last_error: maskText(lastError, viewer),
      last_failed_at: lastFailedAt.toISOString(),
    })),
    retries: {
      scheduled: retries.count,
      due: retries.due,
      due_since: retries.dueSince?.toISOString() ?? null,
      is_more: retries.isCut,
      hosts: retries.hosts.map((one) => ({
        host: maskText(one.host, viewer),
        scheduled: one.count,
        next_at: one.nextAt.toISOString(),
      })),
    },
  };
}

function shareJson({ failedAttempts, p50Ms, p95Ms, ...counts }: Omit<NamedFigures, "name">) {
  return { ...counts, failed_attempts: failedAttempts, p50_ms: p50Ms, p95_ms: p95Ms };
}

function othersJson({ others: figures }: Breakdown) {
  return figures === null ? null : shareJson(figures);
}
