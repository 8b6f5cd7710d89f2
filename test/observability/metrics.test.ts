import { expect, test } from "bun:test";
import { Metrics } from "../../src/observability/metrics.ts";

const residentBytes = () => process.memoryUsage.rss();

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
  expect(lines).toContain('outgate_http_requests_total{method="POST",status="201"} 1');
  expect(lines).toContain(
    'outgate_http_request_duration_seconds_sum{route="/v1/actions",method="POST",status="2xx",kind="work"} 0.002',
  );
});

test("readings are taken when somebody looks", async () => {
  const metrics = new Metrics();
  let inFlight = 1;
  metrics.addGauges({ inFlight: () => inFlight, loopLagMaxMs: () => 250 });
  metrics.addGauges({ waiting: async () => ({ pending: 12, awaiting_approval: 2 }), residentBytes });
  metrics.addGauges({ notifications: async () => ({ callback: 7, mail: 0 }) });
  inFlight = 5;
  const text = await metrics.render();
  const lines = text.split("\n");
  expect(lines).toContain("outgate_attempts_in_flight 5");
  expect(lines).toContain("outgate_event_loop_lag_max_seconds 0.25");
  expect(lines).toContain('outgate_outbox{kind="callback"} 7');
  expect(lines).toContain('outgate_actions{status="pending"} 12');
  expect(lines).toContain('outgate_actions{status="awaiting_approval"} 2');
  expect(Number(/^outgate_resident_memory_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(10_000_000);
});

test("what rests, what is due and what runs is told when somebody looks", async () => {
  const metrics = new Metrics();
  let isAway = true;
  metrics.addGauges({ storePaused: () => isAway, deliveryPaused: () => ({ actions: isAway, mails: false }) });
  metrics.addGauges({
    oldestDueMs: async () => 12_500,
    eventStreams: () => 3,
    build: { version: "1.2.3", bun: "1.4.5" },
  });
  metrics.toolCalled("create", "ok");
  metrics.toolCalled("create", "refused");
  const lines = (await metrics.render()).split("\n");
  expect(lines).toContain("outgate_store_paused 1");
  expect(lines).toContain('outgate_delivery_paused{kind="actions"} 1');
  expect(lines).toContain('outgate_delivery_paused{kind="mails"} 0');
  expect(lines).toContain("outgate_oldest_due_action_age_seconds 12.5");
  expect(lines).toContain("outgate_event_streams 3");
  expect(lines).toContain('outgate_build_info{version="1.2.3",bun="1.4.5"} 1');
  expect(lines).toContain('outgate_mcp_calls_total{tool="create",outcome="refused"} 1');
  isAway = false;
  expect(await metrics.render()).toContain("\noutgate_store_paused 0\n");
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
  const metrics = new Metrics();
  const away = () => Promise.reject(new Error("away"));
  metrics.addGauges({ waiting: away, notifications: away, oldestDueMs: away, inFlight: () => 1 });
  const text = await metrics.render();
  expect(text).toContain("outgate_attempts_in_flight 1\n");
  expect(text).not.toMatch(/outgate_(actions|outbox|oldest)/);
});

test("every line is of the format, every family is named once, and the text ends its last line", async () => {
  const metrics = new Metrics();
  metrics.attempted("answered", "failed", 0.4);
  metrics.requested({ method: "GET", route: null, status: 200, kind: "stream" }, 1e6);
  metrics.addGauges({
    waiting: async () => ({ pending: 1 }),
    inFlight: () => 0,
    loopLagMaxMs: () => 0.25,
    residentBytes,
  });
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
