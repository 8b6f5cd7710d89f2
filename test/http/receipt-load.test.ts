import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { slowness } from "../support/core.ts";
import { peakOf } from "../support/memory.ts";
import { ProbedService } from "../support/probed.ts";
import { FakeClock } from "../support/clock.ts";
import type { Action } from "../../src/core/action.ts";
import type { TimelineEntry } from "../../src/core/timeline.ts";
import { anAction, anAttempt, aResult, NOON } from "../support/factory.ts";
import { until } from "../support/until.ts";
import { KNOWN_TOKEN, openStubServer } from "./stub-server.ts";
import { leastOf } from "./tries.ts";

const MEBIBYTE = 1_048_576;
const BODY_BYTES_MAX = 65_536;
const RETRIED_GAP_MS_MAX = 50;

setDefaultTimeout(120_000);

describe("receipts that nobody reads", () => {
  const UNREAD = 100;
  const PEAK_BYTES_MAX = 165 * MEBIBYTE;
  const GAP_MS_MAX = 100;
  const TRIES = 4;
  let service: ProbedService;
  let port: number;
  beforeAll(async () => {
    service = new ProbedService();
    port = Number(new URL(await service.ready()).port);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  /** Asks for a receipt and reads nothing of it. */
  const unread = (path: string, accept: string): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1" }, () => {
        socket.pause();
        socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: ${accept}\r\n\r\n`, () =>
          resolve(socket),
        );
      });
      socket.on("error", () => {});
    });

  test.each(["text/html", "application/json"])("%s: 100 of a text of 900 kB take little", async (accept) => {
    const text = "a<b ".repeat(225_000);
    const made = await service.request("/v1/actions", {
      method: "POST",
      body: JSON.stringify({ url: "http://127.0.0.1:9/", approve: true, text }),
    });
    const { receipt_url: pathname } = (await made.json()) as { receipt_url: string };
    // The masking thread takes memory of its own when it begins.
    const first = await fetch(`http://127.0.0.1:${port}${pathname}`, { headers: { accept } });
    expect(first.status).toBe(200);
    expect((await first.text()).length).toBeLessThan(8 * BODY_BYTES_MAX);
    const peaks: number[] = [];
    const gaps: number[] = [];
    for (let tries = 0; tries < TRIES && !peaks.some((peak) => peak < PEAK_BYTES_MAX); tries += 1) {
      const sockets: Socket[] = [];
      const peak = await peakOf(service.process.pid, async () => {
        const gap = await service.gapOf(async () => {
          sockets.push(...(await Promise.all(Array.from({ length: UNREAD }, () => unread(pathname, accept)))));
          await Bun.sleep(3_000);
        });
        gaps.push(gap / slowness());
      });
      for (const socket of sockets) socket.destroy();
      peaks.push(peak);
    }
    const told = [peaks.map((peak) => (peak / MEBIBYTE).toFixed(0)), gaps.map((gap) => gap.toFixed(0))];
    console.log(`unread receipts, ${accept}: ${told.map((all) => all.join(", ")).join(" MB; ")} ms`);
    expect(Math.min(...peaks)).toBeLessThan(PEAK_BYTES_MAX);
    expect(Math.min(...gaps)).toBeLessThan(GAP_MS_MAX);
  });

  test("1,041 retries do not hold the event loop, nor make the receipt long", async () => {
    const body = JSON.stringify({ url: "http://127.0.0.1:9/", approve: true });
    const made = await service.request("/v1/actions", { method: "POST", body });
    const { id, receipt_url: path } = (await made.json()) as { id: string; receipt_url: string };
    for (let run = 1; run <= 1_041; run += 1) {
      await service.request(`/v1/actions/${id}/cancel`, { method: "POST" });
      await service.request(`/v1/actions/${id}/retry`, { method: "POST" });
    }
    for (const accept of ["text/html", "application/json"]) {
      const read = async () => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { accept } });
        expect((await response.text()).length).toBeLessThan(2 * BODY_BYTES_MAX);
      };
      const bound = { name: `1,041 retries, ${accept}, ms`, max: RETRIED_GAP_MS_MAX, tries: TRIES };
      const gapMs = await leastOf(bound, async () => (await service.gapOf(read)) / slowness());
      expect(gapMs).toBeLessThan(RETRIED_GAP_MS_MAX);
    }
  });
});

describe("a receipt of many attempts", () => {
  const runs = Array.from({ length: 120 }, (_, at): TimelineEntry => {
    const event = anAttempt(at + 1, { response_code: 500 });
    return { seq: at + 1, at: NOON, run: 1, status: "pending", event };
  });
  const shownIn = (html: string) => [...html.matchAll(/Attempt (\d+):/g)].map(([, number]) => Number(number));
  const linksIn = (html: string) =>
    [...html.matchAll(/<a href="(\?[^"]*)">(Earlier|Newest) entries/g)].map(([, to]) => to);

  test("shows the 50 newest with their count, and links to the earlier ones", async () => {
    await using app = openStubServer({
      readReceipt: () => Promise.resolve({ action: anAction({ status: "failed" }), timeline: runs }),
    });
    const path = `${app.url}/r/${KNOWN_TOKEN}`;
    const html = async (query = "") => (await fetch(path + query, { headers: { accept: "text/html" } })).text();
    const newest = await html();
    expect(shownIn(newest)).toEqual(runs.slice(70).map((_, at) => at + 71));
    expect(newest).toContain("The newest 50 of 120 attempts.");
    expect(linksIn(newest)).toEqual(["?earlier=1"]);
    const second = await html("?earlier=1");
    expect(shownIn(second)).toEqual(runs.slice(20, 70).map((_, at) => at + 21));
    expect(linksIn(second)).toEqual(["?earlier=2", "?"]);
    const oldest = await html("?earlier=2");
    expect(shownIn(oldest)).toEqual(runs.slice(0, 20).map((_, at) => at + 1));
    expect(linksIn(oldest)).toEqual(["?"]);
    const answer = await fetch(path, { headers: { accept: "application/json" } });
    const told = (await answer.json()) as { timeline: readonly unknown[]; earlier_attempts: number };
    expect([told.timeline.length, told.earlier_attempts]).toEqual([50, 70]);
    expect(JSON.stringify(told)).not.toContain("earlier=");
  });

  test.each<[string, Partial<Action>]>([
    ["JSON", { body: `{"a":"${"x".repeat(100_000)}"}` }],
    ["a text", { body: "x".repeat(100_000), extras: { bodyKind: "text" } }],
    ["a form", { body: `${`a=${"x".repeat(100)}&`.repeat(900)}a=x`, extras: { bodyKind: "form" } }],
    ["a list", { body: `[${"1,".repeat(60_000)}1]`, extras: { bodyKind: "json" } }],
  ])("shows at most 64 kB of a body and of an answer: %s", async (_name, sent) => {
    const result = aResult({ responseCode: 500, responseBody: JSON.stringify("y".repeat(100_000)) });
    await using app = openStubServer({
      readReceipt: () => Promise.resolve({ action: anAction({ ...sent, status: "failed", result }), timeline: [] }),
    });
    const path = `${app.url}/r/${KNOWN_TOKEN}`;
    const html = await (await fetch(path, { headers: { accept: "text/html" } })).text();
    expect(html).toContain("View the whole request");
    expect(/y{1000,}/.exec(html)?.[0]).toHaveLength(BODY_BYTES_MAX);
    expect(html).toContain("34,464 characters more not shown");
    const text = await (await fetch(path, { headers: { accept: "application/json" } })).text();
    // The answer stands in the error too.
    expect(text.length).toBeLessThan(3.2 * BODY_BYTES_MAX);
    expect(JSON.parse(text)).toMatchObject({
      body_truncated: true,
      response_truncated: true,
      response_body: "y".repeat(BODY_BYTES_MAX),
    });
  });
});

test("receipts that are asked for at once are rendered four at a time, in order; who waits for 2 s gets 503 with Retry-After", async () => {
  const clock = new FakeClock();
  const begun: (() => void)[] = [];
  const receipt = { action: anAction({}), timeline: [] };
  await using app = openStubServer({
    clock,
    readReceipt: (token) =>
      token === KNOWN_TOKEN ? new Promise((resolve) => begun.push(() => resolve(receipt))) : Promise.resolve(null),
  });
  const statuses: number[] = [];
  const ask = async () => {
    const response = await fetch(`${app.url}/r/${KNOWN_TOKEN}`, { headers: { accept: "application/json" } });
    statuses.push(response.status);
    return response;
  };
  const answers = Array.from({ length: 6 }, ask);
  await until(() => begun.length === 4 && clock.timers === 2);
  // A place that is free goes to the one that has waited longest.
  begun[0]?.();
  await until(() => begun.length === 5 && statuses.length === 1);
  expect(clock.timers).toBe(1);
  clock.advance(1_999);
  await new Promise((resolve) => setImmediate(resolve));
  expect(statuses).toEqual([200]);
  clock.advance(1);
  await until(() => statuses.length === 2);
  expect(statuses).toEqual([200, 503]);
  for (const end of begun) end();
  const all = await Promise.all(answers);
  const refused = all.find(({ status }) => status === 503);
  expect(refused?.headers.get("retry-after")).toBe("1");
  expect(await refused?.json()).toMatchObject({ error: { code: "unavailable" } });
  expect(statuses.filter((status) => status === 200)).toHaveLength(5);
  // All places are free again, also after one that failed.
  expect((await fetch(`${app.url}/r/unknown`)).status).toBe(404);
  begun.length = 0;
  const later = Array.from({ length: 4 }, ask);
  await until(() => begun.length === 4);
  for (const end of begun) end();
  expect((await Promise.all(later)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});
