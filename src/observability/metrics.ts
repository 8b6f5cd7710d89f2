import { createCounter, createHistogram, type Readings, readingsText } from "./gauges.ts";
import type { OutcomeKind } from "../actions/outcome.ts";
import type { NotificationKind } from "../delivery/notification.ts";

export interface MetricsBook {
  readonly metrics: Metrics;
  /** Adds readings, replacing those of the same name. */
  readonly show: (readings: Readings) => void;
  /** All metrics in the Prometheus text format 0.0.4. */
  readonly render: () => Promise<string>;
}

/** Upper bounds in seconds: from a create to a `wait` of two minutes. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Clients can send any method: those that HTTP does not define share one series. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** The metrics of the service since its start, kept in memory. */
export function createMetrics(): MetricsBook {
  const families = createFamilies();
  let readings: Readings = {};
  return {
    metrics: {
      created: (kind) => families.creates.add([kind]),
      attempted(outcome, next, durationMs) {
        families.attempts.add([outcome, next]);
        if (durationMs !== null) families.attemptSeconds.observe([outcome], durationMs / 1_000);
      },
      notified(kind, next, durationMs) {
        families.notifications.add([kind, next]);
        if (durationMs !== null) families.notificationSeconds.observe([kind], durationMs / 1_000);
      },
      decided: (operation) => families.decisions.add([operation]),
      rescued: (count) => families.rescued.add([], count),
      fenced: () => families.fenced.add([]),
      unclaimed: (of) => families.unclaimed.add([of]),
      setAside: (of) => families.setAside.add([of]),
      taskFailed: (task) => families.taskFailures.add([task]),
      requested({ method, route, status, kind }, durationMs) {
        const name = METHODS.has(method) ? method : "other";
        families.requests.add([name, String(status)]);
        const labels = [route ?? "none", name, `${Math.floor(status / 100)}xx`, kind];
        families.requestSeconds.observe(labels, durationMs / 1_000);
      },
      toolCalled: (tool, outcome) => families.toolCalls.add([tool, outcome]),
    },
    show(more) {
      readings = { ...readings, ...more };
    },
    async render() {
      const counted = Object.values(families).map((family) => family.text());
      return counted.join("") + (await readingsText(readings));
    },
  };
}

function createFamilies() {
  const outcomes = ["answered", "not_sent", "unknown"];
  const ends = outcomes.flatMap((outcome) => ["completed", "retry", "failed"].map((next) => [outcome, next]));
  return {
    ...createNotificationFamilies(),
    ...createUpkeepFamilies(),
    creates: createCounter(
      { name: "outgate_creates_total", help: "Creates answered, by what they found.", labels: ["kind"] },
      [["created"], ["matched"]],
    ),
    attempts: createCounter(
      { name: "outgate_attempts_total", help: "Attempts, by outcome and what came next.", labels: ["outcome", "next"] },
      ends,
    ),
    attemptSeconds: createHistogram(
      { name: "outgate_attempt_duration_seconds", help: "Duration of attempts, by outcome.", labels: ["outcome"] },
      DURATIONS,
    ),
    decisions: createCounter(
      { name: "outgate_decisions_total", help: "Approvals, cancels and manual retries.", labels: ["operation"] },
      [["approve"], ["cancel"], ["retry"]],
    ),
    rescued: createCounter(
      { name: "outgate_rescued_total", help: "Actions taken over from a process that died.", labels: [] },
      [[]],
    ),
    fenced: createCounter(
      { name: "outgate_fenced_total", help: "Results dropped because another change came first.", labels: [] },
      [[]],
    ),
    requests: createCounter({
      name: "outgate_http_requests_total",
      help: "Requests answered, by method and status.",
      labels: ["method", "status"],
    }),
    requestSeconds: createHistogram(
      {
        name: "outgate_http_request_duration_seconds",
        help: "Time to the answer, by route, method, class of status and kind (work, wait or stream).",
        labels: ["route", "method", "status", "kind"],
      },
      DURATIONS,
    ),
    toolCalls: createCounter({
      name: "outgate_mcp_calls_total",
      help: "Calls of MCP tools, by tool and outcome (ok, asked, refused or failed).",
      labels: ["tool", "outcome"],
    }),
  };
}

function createNotificationFamilies() {
  const kinds = ["callback", "mail"];
  return {
    notifications: createCounter(
      {
        name: "outgate_notifications_total",
        help: "Attempts of callbacks and mails, by what came next.",
        labels: ["kind", "next"],
      },
      kinds.flatMap((kind) => ["delivered", "retry", "given_up"].map((next) => [kind, next])),
    ),
    notificationSeconds: createHistogram(
      {
        name: "outgate_notification_duration_seconds",
        help: "Duration of attempts of callbacks and mails.",
        labels: ["kind"],
      },
      DURATIONS,
    ),
  };
}

const KINDS = [["action"], ["callback"], ["mail"]];

function createUpkeepFamilies() {
  return {
    unclaimed: createCounter(
      {
        name: "outgate_claims_returned_total",
        help: "Attempts that were claimed and never began; nothing was sent and none was counted.",
        labels: ["of"],
      },
      KINDS,
    ),
    setAside: createCounter(
      {
        name: "outgate_rows_set_aside_total",
        help: "Rows that were altered by hand, and ended for it.",
        labels: ["of"],
      },
      KINDS,
    ),
    taskFailures: createCounter({
      name: "outgate_task_failures_total",
      help: "Unexpected errors in background tasks; each task runs again.",
      labels: ["task"],
    }),
  };
}

/** What a request spent its time on: work, a requested wait, or opening a stream. */
export type RequestKind = "work" | "wait" | "stream";

/** An answered request. */
interface RequestSeen {
  readonly method: string;
  /** The route's pattern, never the path; null: no route matched. */
  readonly route: string | null;
  readonly status: number;
  readonly kind: RequestKind;
}

/** How a tool call ended: done, with a question to a person, refused with one of our codes, or by a bug. */
export type ToolOutcome = "ok" | "asked" | "refused" | "failed";

/**
 * Records metrics; names and labels are fixed here, so that they stay few. A null duration was not measured: the
 * attempt is counted, without a time.
 */
export interface Metrics {
  created(kind: "created" | "matched"): void;
  attempted(outcome: OutcomeKind, next: "completed" | "retry" | "failed", durationMs: number | null): void;
  notified(
    kind: NotificationKind,
    next: "delivered" | "retry" | "given_up" | "dropped",
    durationMs: number | null,
  ): void;
  decided(operation: "approve" | "cancel" | "retry"): void;
  rescued(count: number): void;
  fenced(): void;
  /** A claim was returned because its attempt never began. */
  unclaimed(of: "action" | NotificationKind): void;
  /** A row that was altered in the database was ended. */
  setAside(of: "action" | NotificationKind): void;
  /** A background task failed unexpectedly; it runs again. */
  taskFailed(task: string): void;
  requested(request: RequestSeen, durationMs: number): void;
  toolCalled(tool: string, outcome: ToolOutcome): void;
}
