import { expect, test } from "bun:test";
import { VERSION } from "../../src/config/config.ts";
import { COUNTS_FRESH_MS } from "../../src/core/limits.ts";
import { addGauges } from "../../src/app/gauges.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { FakeClock } from "../support/clock.ts";

/** One line of the Prometheus text format 0.0.4. */
const LINE = /^(# (HELP|TYPE) outgate_[a-z_]+ .+|outgate_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$/;

test("what happens is counted under its name and labels", async () => {
  const metrics = new Metrics();
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
  metrics.toolCalled("create", "refused");
  metrics.requested({ method: "POST", route: "/v1/actions", status: 201, kind: "work" }, 2);
  const lines = (await metrics.render()).split("\n");
  expect(lines).toContain('outgate_creates_total{kind="created"} 1');
  expect(lines).toContain('outgate_creates_total{kind="matched"} 2');
  expect(lines).toContain('outgate_attempts_total{outcome="answered",next="completed"} 1');
  expect(lines).toContain('outgate_attempts_total{outcome="unknown",next="retry"} 1');
  expect(lines).toContain('outgate_attempts_total{outcome="not_sent",next="failed"} 0');
  expect(lines).toContain('outgate_attempt_duration_seconds_sum{outcome="answered"} 0.041');
  expect(lines).toContain('outgate_attempt_duration_seconds_bucket{le="30",outcome="unknown"} 1');
  expect(lines).toContain('outgate_notifications_total{kind="callback",next="delivered"} 1');
  expect(lines).toContain('outgate_notifications_total{kind="callback",next="retry"} 0');
  expect(lines).toContain('outgate_notifications_total{kind="mail",next="given_up"} 1');
  expect(lines).toContain('outgate_notification_duration_seconds_sum{kind="callback"} 0.012');
  expect(lines).toContain('outgate_decisions_total{operation="approve"} 1');
  expect(lines).toContain("outgate_rescued_total 3");
  expect(lines).toContain("outgate_fenced_total 1");
  expect(lines).toContain('outgate_mcp_calls_total{tool="create",outcome="refused"} 1');
  expect(lines).toContain('outgate_http_requests_total{method="POST",status="201"} 1');
  expect(lines).toContain(
    'outgate_http_request_duration_seconds_sum{route="/v1/actions",method="POST",status="2xx",kind="work"} 0.002',
  );
});

/** Metrics with all gauges, over a store and an engine that the test changes. */
function gauged() {
  const metrics = new Metrics();
  const waiting = { actions: { pending: 12, awaiting_approval: 2 }, outbox: { callback: 7, mail: 0, message: 0 } };
  const store = {
    isUnavailable: false,
    actions: {
      waiting: () => readOr(waiting.actions),
      firstDueAt: () => readOr(new Date(clock.now().getTime() - 12_500)),
    },
    outbox: { waiting: () => readOr(waiting.outbox) },
  };
  const readOr = <Value>(value: Value) =>
    store.isUnavailable ? Promise.reject(new Error("away")) : Promise.resolve(value);
  const delivery = {
    storeAway: () => ({ actions: store.isUnavailable, callbacks: false, mails: false, messages: false }),
    unwritten: { count: 1, bytes: 2_048 },
    loop: { inFlight: 1 },
  };
  const feed = { count: () => 3 };
  const clock = new FakeClock();
  addGauges(metrics, { store, delivery, feed, countNodes: () => 1, lag: { takeMaxMs: () => 250 }, clock });
  return { metrics, store, delivery, clock, render: () => metrics.render() };
}

test("gauges are read when somebody looks, those of the store once in ten seconds", async () => {
  const { delivery, store, clock, render } = gauged();
  delivery.loop.inFlight = 5;
  const text = await render();
  const lines = text.split("\n");
  expect(lines).toContain("outgate_attempts_in_flight 5");
  expect(lines).toContain("outgate_event_loop_lag_max_seconds 0.25");
  expect(lines).toContain('outgate_outbox{kind="callback"} 7');
  expect(lines).toContain('outgate_actions{status="pending"} 12');
  expect(lines).toContain('outgate_actions{status="awaiting_approval"} 2');
  expect(lines).toContain("outgate_results_kept 1");
  expect(lines).toContain("outgate_results_kept_bytes 2048");
  expect(lines).toContain("outgate_store_paused 0");
  expect(lines).toContain('outgate_delivery_paused{kind="mails"} 0');
  expect(lines).toContain("outgate_oldest_due_action_age_seconds 12.5");
  expect(lines).toContain("outgate_event_streams 3");
  expect(lines).toContain(`outgate_build_info{version="${VERSION}",bun="${Bun.version}"} 1`);
  expect(Number(/^outgate_resident_memory_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(10_000_000);
  store.isUnavailable = true;
  expect(await render()).toContain('outgate_actions{status="pending"} 12\n');
  clock.advance(COUNTS_FRESH_MS);
  expect(await render()).not.toContain("outgate_actions");
});

test("times to an answer tell routes apart, and waits from work", async () => {
  const metrics = new Metrics();
  const route = "/v1/actions/{id}";
  metrics.requested({ method: "GET", route, status: 200, kind: "work" }, 4);
  metrics.requested({ method: "GET", route, status: 200, kind: "wait" }, 30_000);
  metrics.requested({ method: "GET", route, status: 404, kind: "work" }, 1);
  metrics.requested({ method: "GET", route: null, status: 404, kind: "work" }, 1);
  const text = await metrics.render();
  const counts = text.split("\n").filter((line) => line.startsWith("outgate_http_request_duration_seconds_count"));
  expect(counts).toEqual([
    'outgate_http_request_duration_seconds_count{route="/v1/actions/{id}",method="GET",status="2xx",kind="work"} 1',
    'outgate_http_request_duration_seconds_count{route="/v1/actions/{id}",method="GET",status="2xx",kind="wait"} 1',
    'outgate_http_request_duration_seconds_count{route="/v1/actions/{id}",method="GET",status="4xx",kind="work"} 1',
    'outgate_http_request_duration_seconds_count{route="none",method="GET",status="4xx",kind="work"} 1',
  ]);
});

test("while the store is away the other numbers are shown", async () => {
  const { store, render } = gauged();
  store.isUnavailable = true;
  const text = await render();
  expect(text).toContain("outgate_attempts_in_flight 1\n");
  expect(text).toContain("outgate_store_paused 1\n");
  expect(text).toContain('outgate_delivery_paused{kind="actions"} 1\n');
  expect(text).not.toMatch(/outgate_(actions|outbox|oldest)/);
});

test("who asks at the same time shares a text, which takes time to make", async () => {
  const metrics = new Metrics();
  let reads = 0;
  metrics.addGauge("outgate_reads", "Reads.", () => (reads += 1));
  const texts = await Promise.all([metrics.render(), metrics.render()]);
  expect([...texts, await metrics.render()].map((text) => text.trimEnd().at(-1))).toEqual(["1", "1", "2"]);
});

test("every line is of the format, every family is named once, and the text ends its last line", async () => {
  const { metrics } = gauged();
  metrics.attempted("answered", "failed", 0.4);
  metrics.requested({ method: "GET", route: null, status: 200, kind: "stream" }, 1e6);
  const text = await metrics.render();
  expect(text).toEndWith("\n");
  const lines = text.trimEnd().split("\n");
  expect(lines.filter((line) => !LINE.test(line))).toEqual([]);
  const types = lines.filter((line) => line.startsWith("# TYPE"));
  expect(new Set(types).size).toBe(types.length);
});

test("an attempt that nobody measured is counted, and no duration is made up for it", async () => {
  const metrics = new Metrics();
  metrics.attempted("unknown", "retry", null);
  metrics.notified("callback", "retry", null);
  const text = await metrics.render();
  expect(text).toContain('outgate_attempts_total{outcome="unknown",next="retry"} 1\n');
  expect(text).toContain('outgate_notifications_total{kind="callback",next="retry"} 1\n');
  expect(text).not.toMatch(/duration_seconds_(bucket|count|sum)/);
});

test("methods that a client makes up share one series", async () => {
  const metrics = new Metrics();
  for (let count = 0; count < 1_000; count += 1) {
    metrics.requested({ method: `MADE-UP-${count}`, route: null, status: 405, kind: "work" }, 1);
  }
  const text = await metrics.render();
  expect(text).not.toContain("MADE-UP");
  expect(text).toContain('outgate_http_requests_total{method="other",status="405"} 1000\n');
});
