import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { type OverviewRange, RANGE_NAMES } from "../core/activity.ts";
import { OVERVIEW_RANGES } from "../core/limits.ts";
import { type Viewer, viewerOf } from "../core/roles.ts";
import { createApiRoutes, operation } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import { maskText } from "../receipts/masking.ts";
import type { OverviewAnswer, OverviewService } from "./overview.ts";

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
      query: OverviewParameters,
      answers: { 200: { description: "The figures.", schema: OverviewJson } },
    }),
  );
}
