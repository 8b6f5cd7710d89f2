import { expect, test } from "bun:test";
import { ActionJson } from "../../src/api/action-schemas.ts";
import { settleLate } from "../../src/core/settle.ts";
import { compile } from "../../src/api/check.ts";
import { answered } from "../support/factory.ts";
import { Listener } from "../support/listener.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

const LATE = answered(200, '{"n":12345678901234567890,"session":"canary-late-4f9a1c77b2e8d0"}');

/** What a node does that has lost its claim: the action has failed, and then its target's answer becomes known. */
async function failedAndAnswered(app: RealServer) {
  const { id } = (await app.call("POST", "/v1/actions", '{"url":"http://127.0.0.1:9/","retries":1}')).json;
  const failed = await app.engine.saw(id, { status: "failed" });
  const now = app.engine.clock.now();
  const backoff = { baseMs: 2_000, capMs: 3_600_000 };
  const end = { outcome: LATE, now, durationMs: 41, timeoutMs: 30_000, backoff, chance: 0, run: 1, attempt: 1 };
  const change = settleLate(failed, end);
  expect(await app.engine.store.actions.apply({ change, at: now, outbox: [] })).toBe(true);
  app.engine.bus.publish(change.after);
  return id;
}

test("a failed action whose target answered too late says so, in every form in which it is shown", async () => {
  await using app = await openRealServer();
  await using stream = await Listener.open(`${app.url}/v1/events`, { authorization: `Bearer ${KEYS.reader}` });
  const id = await failedAndAnswered(app);
  const path = `/v1/actions/${id}`;

  const read = await app.call("GET", path);
  const late = { run: 1, attempt: 1, response_code: 200, at: expect.any(String) };
  expect(read.json).toMatchObject({ status: "failed", late_result: late });
  expect(read.text).toContain('"response_body":{"n":12345678901234567890,');
  expect(compile(ActionJson).issues(JSON.parse(read.text))).toEqual([]);

  await stream.heard(({ events }) => events.at(-1)?.event === "action.late_result");
  expect(stream.events.map(({ event }) => event).slice(-2)).toEqual(["action.failed", "action.late_result"]);
  expect(stream.events.at(-1)?.data).not.toContain("canary-late");

  const timeline = (await app.call("GET", `${path}/timeline`)).json.data;
  expect(timeline.filter(({ type }) => type === "attempt").map((row) => row["late"])).toEqual([undefined, true]);
  const attempts = (await app.call("GET", `${path}/attempts`)).json.data;
  expect(attempts.map(({ response_code }) => response_code)).toEqual([null, 200]);
  const ann = await signedIn(app);
  expect(await ann.pageOf(`/actions/${id}`)).toContain("12345678901234567890");

  const receipt = read.json.receipt_url;
  const page = await (await fetch(new URL(receipt, app.url), { headers: { accept: "text/html" } })).text();
  expect(page).toContain("Failed, but the target answered 200 to attempt 1");
  expect(page).toContain("12345678901234567890");
  const json = await (await fetch(new URL(receipt, app.url), { headers: { accept: "application/json" } })).text();
  expect(json).toContain('"late_result"');
  expect(page + json).not.toContain("canary-late");

  const [heads = "", row = ""] = (await app.call("GET", "/v1/actions/export?format=csv")).text.split("\r\n");
  const cells = Object.fromEntries(heads.split(",").map((head, at) => [head.replaceAll('"', ""), row.split(",")[at]]));
  expect(cells).toMatchObject({ status: '"failed"', response_code: "", late_result_run: "1", late_result_code: "200" });

  const dry = await app.call("POST", "/v1/bulk", '{"operation":"retry","filter":{"status":["failed"]},"dry_run":true}');
  expect(dry.json).toMatchObject({ matching: 1, late_results: 1 });
});

test("a replayed stream shows a late result as the live one did: masked, and not before it was known", async () => {
  await using app = await openRealServer();
  await using live = await Listener.open(`${app.url}/v1/events`, { authorization: `Bearer ${KEYS.reader}` });
  await live.heard(({ lastEventId }) => lastEventId !== "");
  const from = live.lastEventId;
  const id = await failedAndAnswered(app);
  await live.heard(({ events }) => events.at(-1)?.event === "action.late_result");
  await app.call("POST", `/v1/actions/${id}/retry`);
  await live.heard(({ events }) => events.filter(({ event }) => event === "action.failed").length === 2);
  const lateIn = (data: string) => (JSON.parse(data) as { data: { late_result?: object } }).data.late_result ?? null;
  const told = live.events.map(({ event, data }) => [event, lateIn(data)]);
  expect(told.findIndex(([, late]) => late !== null)).toBe(told.findIndex(([event]) => event === "action.late_result"));
  for (const role of ["reader", "approver", "owner"] as const) {
    const headers = { authorization: `Bearer ${KEYS[role]}`, "last-event-id": from };
    await using replayed = await Listener.open(`${app.url}/v1/events`, headers);
    await replayed.heard(({ events }) => events.length >= told.length);
    const text = replayed.events.map(({ data }) => data).join("");
    expect(text.includes("canary-late"), role).toEqual(role === "owner");
    if (role === "reader") expect(replayed.events.map(({ event, data }) => [event, lateIn(data)])).toEqual(told);
  }
});
