import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { OutcomeKind } from "../core/outcome.ts";
import type { NotificationKind } from "../core/notification-events.ts";
import type { Log, LogFields } from "./log.ts";

/** What a request spent its time on: work, a requested wait, or opening a stream. */
export type RequestKind = "work" | "wait" | "stream";

interface AnsweredRequest {
  readonly method: string;
  /** The route's pattern, never the path; null: no route matched. */
  readonly route: string | null;
  readonly status: number;
  readonly kind: RequestKind;
}

/** How a tool call ended: done, with a question to a person, refused with one of our codes, or by a bug. */
export type ToolOutcome = "ok" | "asked" | "refused" | "failed";

type Reading = number | Readonly<Record<string, number>>;

/** Upper bounds in seconds: from a create to a `wait` of two minutes. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Clients can send any method: those that HTTP does not define share one series. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * The metrics of the service since its start, kept in memory. Names and labels are fixed here, so that they stay few. A
 * null duration was not measured: the attempt is counted, without a time.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = createCounters(this.#registry);
  readonly #durations = createDurations(this.#registry);
  #rendering: Promise<string> | null = null;

  created(kind: "created" | "matched"): void {
    this.#counters.creates.inc({ kind });
  }

  attempted(outcome: OutcomeKind, next: "completed" | "retry" | "failed", durationMs: number | null): void {
    this.#counters.attempts.inc({ outcome, next });
    if (durationMs !== null) this.#durations.attempts.observe({ outcome }, durationMs / 1_000);
  }

  notified(
    kind: NotificationKind,
    next: "delivered" | "retry" | "given_up" | "dropped",
    durationMs: number | null,
  ): void {
    this.#counters.notifications.inc({ kind, next });
    if (durationMs !== null) this.#durations.notifications.observe({ kind }, durationMs / 1_000);
  }

  decided(operation: "approve" | "cancel" | "retry"): void {
    this.#counters.decisions.inc({ operation });
  }

  credentialEchoed(count: number): void {
    this.#counters.credentialEchoes.inc(count);
  }

  rescued(count: number): void {
    this.#counters.rescued.inc(count);
  }

  fenced(): void {
    this.#counters.fenced.inc();
  }

  /** A claim was given back because its attempt never began. */
  unclaimed(of: "action" | NotificationKind): void {
    this.#counters.unclaimed.inc({ of });
  }

  /** A row was found that was altered in the database. */
  setAside(of: "action" | NotificationKind): void {
    this.#counters.setAside.inc({ of });
  }

  /** A background task failed unexpectedly; it runs again. */
  taskFailed(task: string): void {
    this.#counters.taskFailures.inc({ task });
  }

  requested({ method, route, status, kind }: AnsweredRequest, durationMs: number): void {
    const name = METHODS.has(method) ? method : "other";
    this.#counters.requests.inc({ method: name, status: String(status) });
    const labels = { route: route ?? "none", method: name, status: `${Math.floor(status / 100)}xx`, kind };
    this.#durations.requests.observe(labels, durationMs / 1_000);
  }

  toolCalled(tool: string, outcome: ToolOutcome): void {
    this.#counters.toolCalls.inc({ tool, outcome });
  }

  /** Adds a value that is read whenever the metrics are: one number, or one for each value of `label`. */
  addGauge(name: string, help: string, read: () => Reading | Promise<Reading>, label?: string): void {
    const labelNames = label === undefined ? [] : [label];
    const collect = async (): Promise<void> => {
      const reading = await read();
      gauge.reset();
      if (typeof reading === "number") gauge.set(reading);
      else for (const [value, count] of Object.entries(reading)) gauge.set({ [label ?? ""]: value }, count);
    };
    const gauge = new Gauge({ name, help, labelNames, registers: [this.#registry], collect });
  }

  /** Adds facts that don't change, as labels of a metric that is always 1. */
  addInfo(name: string, help: string, labels: Readonly<Record<string, string>>): void {
    const gauge = new Gauge({ name, help, labelNames: Object.keys(labels), registers: [this.#registry] });
    gauge.set({ ...labels }, 1);
  }

  /** All metrics in the Prometheus text format 0.0.4. Who asks at the same time shares a text: it takes 10 ms of the event loop. */
  render(): Promise<string> {
    this.#rendering ??= nextTurn()
      .then(() => this.#render())
      .finally(() => (this.#rendering = null));
    return this.#rendering;
  }

  /** A gauge that can't be read is left out, since the others matter most then. */
  async #render(): Promise<string> {
    const names = this.#registry.getMetricsAsArray().map(({ name }) => name);
    const texts = names.map((name) => this.#registry.getSingleMetricAsString(name).catch(() => null));
    return (await Promise.all(texts)).map((text) => (text === null ? "" : `${text}\n`)).join("");
  }
}

/** Series for all pairs of two labels. They exist from the start, so that a rate sees their first increment. */
function series(one: string, ones: readonly string[], other: string, others: readonly string[]) {
  return ones.flatMap((value) => others.map((next) => ({ [one]: value, [other]: next })));
}

function createCounters(registry: Registry) {
  const counter = (name: string, help: string, labelNames: string[], known: readonly Record<string, string>[] = []) => {
    const made = new Counter({ name, help, labelNames, registers: [registry] });
    for (const labels of known) made.inc(labels, 0);
    return made;
  };
  const rows = [{ of: "action" }, { of: "callback" }, { of: "mail" }, { of: "message" }];
  return {
    attempts: counter(
      "outgate_attempts_total",
      "Attempts, by outcome and what came next.",
      ["outcome", "next"],
      series("outcome", ["answered", "not_sent", "unknown"], "next", ["completed", "retry", "failed"]),
    ),
    notifications: counter(
      "outgate_notifications_total",
      "Attempts of callbacks, mails and messages to channels, by what came next.",
      ["kind", "next"],
      series("kind", ["callback", "mail", "message"], "next", ["delivered", "retry", "given_up"]),
    ),
    credentialEchoes: counter(
      "outgate_credential_echoes_total",
      "Credentials masked in answers of targets that had sent them back.",
      [],
    ),
    rescued: counter("outgate_rescued_total", "Actions taken over from a process that died.", []),
    fenced: counter("outgate_fenced_total", "Results dropped because another change came first.", []),
    unclaimed: counter(
      "outgate_claims_returned_total",
      "Attempts that were claimed and never began; nothing was sent and none was counted.",
      ["of"],
      rows,
    ),
    setAside: counter(
      "outgate_rows_set_aside_total",
      "Rows that were altered by hand: nothing of them is sent any more.",
      ["of"],
      rows,
    ),
    creates: counter(
      "outgate_creates_total",
      "Creates answered, by what they found.",
      ["kind"],
      [{ kind: "created" }, { kind: "matched" }],
    ),
    decisions: counter(
      "outgate_decisions_total",
      "Approvals, cancels and manual retries.",
      ["operation"],
      [{ operation: "approve" }, { operation: "cancel" }, { operation: "retry" }],
    ),
    taskFailures: counter(
      "outgate_task_failures_total",
      "Unexpected errors in background tasks; each task runs again.",
      ["task"],
    ),
    requests: counter("outgate_http_requests_total", "Requests answered, by method and status.", ["method", "status"]),
    toolCalls: counter(
      "outgate_mcp_calls_total",
      "Calls of MCP tools, by tool and outcome (ok, asked, refused or failed).",
      ["tool", "outcome"],
    ),
  };
}

function createDurations(registry: Registry) {
  const histogram = (name: string, help: string, labelNames: string[]) =>
    new Histogram({ name, help, labelNames, buckets: DURATIONS, registers: [registry] });
  return {
    attempts: histogram("outgate_attempt_duration_seconds", "Duration of attempts, by outcome.", ["outcome"]),
    notifications: histogram(
      "outgate_notification_duration_seconds",
      "Duration of attempts of callbacks, mails and messages.",
      ["kind"],
    ),
    requests: histogram(
      "outgate_http_request_duration_seconds",
      "Time to the answer, by route, method, class of status and kind (work, wait or stream).",
      ["route", "method", "status", "kind"],
    ),
  };
}

interface Reports {
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "setAside">;
}

/** Reports a row that somebody has altered in the database, and of which nothing is sent any more. */
export function reportSetAside(
  { log, metrics }: Reports,
  of: "action" | NotificationKind,
  id: string,
  fields: LogFields,
): void {
  metrics.setAside(of);
  const message = "Its row was altered where it is stored, and nothing of it is sent any more.";
  if (of === "action") log.error("action.set_aside", { action_id: id, message, ...fields });
  else log.error("notification.set_aside", { id, message, ...fields });
}
