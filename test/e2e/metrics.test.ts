import { expect, setDefaultTimeout, test } from "bun:test";
import { callModern } from "../mcp/wire.ts";
import { freePort } from "../support/free-port.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

const TOKEN = "metrics-token-that-prometheus-has";

setDefaultTimeout(60_000);

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** As Prometheus takes it: every sample belongs to the family named before it, and no series comes twice. */
function seriesOf(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>();
  let family = "";
  for (const line of text.trimEnd().split("\n")) {
    const [, name] = /^# TYPE (\S+) (?:counter|gauge|histogram)$/.exec(line) ?? [];
    if (name !== undefined) family = name;
    if (line.startsWith("#")) continue;
    const [, key = "", of = "", value] = /^(([a-z_]+)(?:\{[^{}]*(?:\{[a-z]+\}[^{}]*)*\})?) (\S+)$/.exec(line) ?? [];
    if (!of.startsWith(family) || series.has(key)) throw new Error(`Not of its family, or twice: ${line}`);
    series.set(key, Number(value));
  }
  return series;
}

test("/metrics asks for METRICS_TOKEN, and tells routes, waits, streams, tools and what runs", async () => {
  await using service = new Service({ env: { METRICS_TOKEN: TOKEN } });
  await using target = new Target(200);
  const url = await service.ready();
  for (const init of [{}, bearer("wrong-wrong-wrong-wrong"), bearer(OWNER_KEY)]) {
    const refused = await fetch(`${url}/metrics`, init);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  }
  expect((await fetch(`${url}/metrics?token=${TOKEN}`)).status).toBe(401);
  const held = await service.create({ url: target.url, approve: true });
  await service.request(`/v1/actions/${String(held["id"])}?wait=1`);
  await service.create({ url: target.url, sync: true });
  await service.request("/v1/actions/act_unknown");
  await service.request("/nowhere/order-4711");
  const stream = await service.request("/v1/events");
  await callModern(`${url}/mcp`, "get", `{"id":"${String(held["id"])}"}`, { key: OWNER_KEY });
  await callModern(`${url}/mcp`, "wait", `{"id":"${String(held["id"])}","wait":1}`, { key: OWNER_KEY });
  await callModern(`${url}/mcp`, "get", `{"id":"act_unknown"}`, { key: OWNER_KEY });
  const text = await (await fetch(`${url}/metrics`, bearer(TOKEN))).text();
  await stream.body?.cancel();
  const series = seriesOf(text);
  const count = (route: string, method: string, status: string, kind: string) =>
    series.get(
      `outgate_http_request_duration_seconds_count{route="${route}",method="${method}",status="${status}",kind="${kind}"}`,
    );
  expect(count("/v1/actions", "POST", "2xx", "work")).toBe(1);
  expect(count("/v1/actions", "POST", "2xx", "wait")).toBe(1);
  expect(count("/v1/actions/{id}", "GET", "2xx", "wait")).toBe(1);
  expect(count("/v1/actions/{id}", "GET", "4xx", "work")).toBe(1);
  expect(count("/v1/events", "GET", "2xx", "stream")).toBe(1);
  expect(count("none", "GET", "4xx", "work")).toBe(1);
  expect((count("/mcp", "POST", "2xx", "wait") ?? 0) + (count("/mcp", "POST", "2xx", "stream") ?? 0)).toBeGreaterThan(
    0,
  );
  expect(series.get('outgate_mcp_calls_total{tool="get",outcome="ok"}')).toBe(1);
  expect(series.get('outgate_mcp_calls_total{tool="get",outcome="refused"}')).toBe(1);
  expect(series.get('outgate_mcp_calls_total{tool="wait",outcome="ok"}')).toBe(1);
  expect(series.get("outgate_event_streams")).toBe(1);
  expect(series.get("outgate_oldest_due_action_age_seconds")).toBe(0);
  expect(series.get("outgate_store_paused")).toBe(0);
  for (const kind of ["actions", "callbacks", "mails"]) {
    expect(series.get(`outgate_delivery_paused{kind="${kind}"}`)).toBe(0);
  }
  expect(
    [...series.keys()].filter((key) => /^outgate_build_info\{version="[^"]+",bun="[^"]+"\}$/.test(key)),
  ).toHaveLength(1);
  // No path, id or key of anybody is a label.
  expect(text).not.toMatch(/order-4711|act_|og_/);
  // Every family is in the table of the documentation.
  const documented = await Bun.file(new URL("../../docs/operations.md", import.meta.url)).text();
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? "");
  expect(families.filter((name) => !documented.includes(`\`${name}\``))).toEqual([]);
});

test("with METRICS_PORT they are there alone, and nothing else is", async () => {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const env = { PORT: String(port), METRICS_PORT: String(metricsPort), METRICS_TOKEN: TOKEN };
  await using service = new Service({ env });
  await service.ready();
  const own = `http://127.0.0.1:${metricsPort}`;
  const answers = await Promise.all([
    service.request("/metrics"),
    fetch(`${own}/metrics`),
    fetch(`${own}/metrics`, bearer(TOKEN)),
    fetch(`${own}/health`),
    fetch(`${own}/v1/actions`, bearer(OWNER_KEY)),
    fetch(`${own}/metrics`, { method: "POST", ...bearer(TOKEN) }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([404, 401, 200, 404, 404, 404]);
  expect(answers.every(({ headers }) => headers.get("x-request-id")?.startsWith("req_"))).toBe(true);
  expect(seriesOf((await answers[2]?.text()) ?? "").size).toBeGreaterThan(20);
  expect(await answers[3]?.json()).toMatchObject({ error: { code: "not_found" } });
  expect(await service.end()).toBe(0);
});

test("a METRICS_PORT that is taken refuses the start with a sentence", async () => {
  await using target = new Target(200);
  await using service = new Service({ env: { METRICS_PORT: new URL(target.url).port } });
  expect(await service.process.exited).toBe(1);
  expect(await service.complaint()).toContain("METRICS_PORT");
});
