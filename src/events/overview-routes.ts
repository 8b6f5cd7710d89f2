import Type, { type Static } from "typebox";
import { dateTime, nullable, plainText } from "../api/schema-helpers.ts";
import { json } from "../http/response.ts";
import { API_ERRORS, createApiRoutes, operation } from "../http/operation.ts";
import { maskText } from "../receipts/masking.ts";
import type { OverviewService } from "./overview.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description, examples: [17] });

const milliseconds = (description: string) =>
  nullable(Type.Number({ minimum: 0, description: `${description} Null: there was none.`, examples: [41] }));

const host = plainText("Host name, and the port unless it is the scheme's default.", "api.example.com");

const Slot = Type.Object(
  {
    at: dateTime("When the half hour begins."),
    created: count("Actions created."),
    completed: count("Actions that completed."),
    failed: count("Actions that failed."),
    attempts: count("Attempts that ended."),
    p50_ms: milliseconds("Median duration of the attempts."),
    p95_ms: milliseconds("95 % of the attempts took at most so long."),
  },
  { title: "OverviewSlot", description: "Half an hour." },
);

export const OverviewJson = Type.Object(
  {
    since: dateTime("Nothing before this is counted."),
    slots: Type.Array(Slot, { description: "The last day in half hours, oldest first; the last one is not over." }),
    latency: nullable(
      Type.Object(
        {
          p50_ms: Type.Number({ description: "Median.", examples: [41] }),
          p95_ms: Type.Number({ description: "95 %.", examples: [120] }),
          p99_ms: Type.Number({ description: "99 %.", examples: [480] }),
        },
        { description: "Duration of all attempts; null: there was none." },
      ),
    ),
    failing_hosts: Type.Array(
      Type.Object(
        {
          host,
          failed: count("Attempts that failed."),
          attempts: count("All attempts."),
          last_error: plainText("How the last one failed.", "The target answered with status 503."),
          last_failed_at: dateTime("When."),
        },
        { title: "FailingHost", description: "A host where attempts failed." },
      ),
      { description: "Most failures first." },
    ),
    retries: Type.Object(
      {
        scheduled: count("Actions that wait for the time of their next attempt."),
        due: count("Actions that are due and wait for a free slot."),
        is_more: Type.Boolean({ description: "Whether there may be more of both.", examples: [false] }),
        hosts: Type.Array(
          Type.Object(
            { host, scheduled: count("Actions that wait."), next_at: dateTime("When the first one is due.") },
            { title: "RetryingHost", description: "A host with scheduled retries." },
          ),
          { description: "Those whose next retry comes first." },
        ),
      },
      { description: "What waits to be sent again." },
    ),
  },
  { title: "Overview", description: "What the account did in the last day." },
);

export type OverviewJson = Static<typeof OverviewJson>;

export interface OverviewRouteDeps {
  readonly overviewService: Pick<OverviewService, "read">;
}

/** /v1/overview: the figures of the page. */
export function overviewRoutes({ overviewService }: OverviewRouteDeps) {
  return createApiRoutes().get(
    "/v1/overview",
    async ({ caller }) => json(JSON.stringify(serializeOverview(await overviewService.read(caller)))),
    operation({
      operationId: "getOverview",
      permission: "read",
      tag: "Actions",
      summary: "Get the figures of the last day",
      description: "The figures of the page Overview. They may be some seconds old.",
      answers: { 200: { description: "The figures.", schema: OverviewJson } },
      errors: API_ERRORS,
    }),
  );
}

type Answer = Awaited<ReturnType<OverviewService["read"]>>;

function serializeOverview({ overview, retries }: Answer): OverviewJson {
  const { since, slots, latency, hosts } = overview;
  return {
    since: since.toISOString(),
    slots: slots.map(({ at, p50Ms, p95Ms, ...counts }) => ({
      at: at.toISOString(),
      ...counts,
      p50_ms: p50Ms,
      p95_ms: p95Ms,
    })),
    latency: latency === null ? null : { p50_ms: latency.p50Ms, p95_ms: latency.p95Ms, p99_ms: latency.p99Ms },
    failing_hosts: hosts.map(({ lastError, lastFailedAt, ...failing }) => ({
      ...failing,
      host: maskText(failing.host, "decider"),
      last_error: maskText(lastError, "decider"),
      last_failed_at: lastFailedAt.toISOString(),
    })),
    retries: {
      scheduled: retries.count,
      due: retries.due,
      is_more: retries.isCut,
      hosts: retries.hosts.map((one) => ({
        host: maskText(one.host, "decider"),
        scheduled: one.count,
        next_at: one.nextAt.toISOString(),
      })),
    },
  };
}
