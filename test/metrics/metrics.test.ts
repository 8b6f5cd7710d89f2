import { expect, test } from "bun:test";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { residentBytes } from "../../src/metrics/runtime.ts";

/** One line of the Prometheus text format 0.0.4. */
const LINE = /^(# (HELP|TYPE) outgate_[a-z_]+ .+|outgate_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$/;

test("what happens is counted under its name and labels", async () => {
  const { metrics, render } = createMetrics();
  metrics.created("created");
  metrics.created("matched");
  metrics.created("matched");
  metrics.attempted("answered", "completed", 41);
  metrics.attempted("unknown", "retry", 30_000);
  metrics.notified("callback", "delivered", 12);
  metrics.notified("mail", "given_up", 0);
  metrics.decided("approve");
  metrics.rescued(3);
  metrics.fenced();
  metrics.requested("POST", 201, 2);
  const lines = (await render()).split("\n");
  expect(lines).toContain('outgate_creates_total{kind="created"} 1');
  expect(lines).toContain('outgate_creates_total{kind="matched"} 2');
  expect(lines).toContain('outgate_attempts_total{outcome="answered",next="completed"} 1');
  expect(lines).toContain('outgate_attempts_total{outcome="unknown",next="retry"} 1');
  expect(lines).toContain('outgate_attempts_total{outcome="not_sent",next="failed"} 0');
  expect(lines).toContain('outgate_attempt_duration_seconds_sum{outcome="answered"} 0.041');
  expect(lines).toContain('outgate_attempt_duration_seconds_bucket{outcome="unknown",le="30"} 1');
  expect(lines).toContain('outgate_notifications_total{kind="callback",next="delivered"} 1');
  expect(lines).toContain('outgate_notifications_total{kind="callback",next="retry"} 0');
  expect(lines).toContain('outgate_notifications_total{kind="mail",next="given_up"} 1');
  expect(lines).toContain('outgate_notification_duration_seconds_sum{kind="callback"} 0.012');
  expect(lines).toContain('outgate_decisions_total{operation="approve"} 1');
  expect(lines).toContain("outgate_rescued_total 3");
  expect(lines).toContain("outgate_fenced_total 1");
  expect(lines).toContain('outgate_http_requests_total{method="POST",status="201"} 1');
  expect(lines).toContain('outgate_http_request_duration_seconds_sum{method="POST"} 0.002');
});

test("readings are taken when somebody looks", async () => {
  const { show, render } = createMetrics();
  let inFlight = 1;
  show({ inFlight: () => inFlight, loopLagMaxMs: () => 250 });
  show({ waiting: async () => ({ pending: 12, awaiting_approval: 2 }), residentBytes });
  show({ owed: async () => ({ callback: 7, mail: 0 }) });
  inFlight = 5;
  const text = await render();
  const lines = text.split("\n");
  expect(lines).toContain("outgate_attempts_in_flight 5");
  expect(lines).toContain("outgate_event_loop_lag_max_seconds 0.25");
  expect(lines).toContain('outgate_outbox{kind="callback"} 7');
  expect(lines).toContain('outgate_actions{status="pending"} 12');
  expect(lines).toContain('outgate_actions{status="awaiting_approval"} 2');
  expect(Number(/^outgate_resident_memory_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(10_000_000);
});

test("while the store is away the other numbers are shown", async () => {
  const { show, render } = createMetrics();
  const away = () => Promise.reject(new Error("away"));
  show({ waiting: away, owed: away, inFlight: () => 1 });
  const text = await render();
  expect(text).toContain("outgate_attempts_in_flight 1\n");
  expect(text).not.toMatch(/outgate_(actions|outbox)/);
});

test("every line is of the format, every family is named once, and the text ends its last line", async () => {
  const { metrics, show, render } = createMetrics();
  metrics.attempted("answered", "failed", 0.4);
  metrics.requested("GET", 200, 1e6);
  show({ waiting: async () => ({ pending: 1 }), inFlight: () => 0, loopLagMaxMs: () => 0.25, residentBytes });
  const text = await render();
  expect(text).toEndWith("\n");
  const lines = text.trimEnd().split("\n");
  expect(lines.filter((line) => !LINE.test(line))).toEqual([]);
  const types = lines.filter((line) => line.startsWith("# TYPE"));
  expect(new Set(types).size).toBe(types.length);
});

test("an attempt that nobody measured is counted, and no duration is made up for it", async () => {
  const { metrics, render } = createMetrics();
  metrics.attempted("unknown", "retry", null);
  metrics.notified("callback", "retry", null);
  const text = await render();
  expect(text).toContain('outgate_attempts_total{outcome="unknown",next="retry"} 1\n');
  expect(text).toContain('outgate_notifications_total{kind="callback",next="retry"} 1\n');
  expect(text).not.toMatch(/duration_seconds_(bucket|count|sum)/);
});

test("methods that a client makes up share one series", async () => {
  const { metrics, render } = createMetrics();
  for (let count = 0; count < 1_000; count += 1) metrics.requested(`MADE-UP-${count}`, 405, 1);
  const text = await render();
  expect(text).not.toContain("MADE-UP");
  expect(text).toContain('outgate_http_requests_total{method="other",status="405"} 1000\n');
});
