import { describe, expect, test } from "bun:test";
import { FILTER_IDS_MAX } from "../../src/core/limits.ts";
import { RawTarget } from "../support/raw-target.ts";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

const NO_TARGET = "http://127.0.0.1:9/";

async function created(server: RealServer, members: object = {}): Promise<string> {
  return (await server.call("POST", "/v1/actions", { url: NO_TARGET, approve: true, ...members })).json.id;
}

async function failed(server: RealServer, members: object = {}): Promise<string> {
  const id = await created(server, { approve: false, retries: 1, ...members });
  await server.engine.saw(id, { status: "failed" });
  return id;
}

describe("POST /v1/bulk", () => {
  test("refuses an empty list in a filter: no ids are no actions, and not all", async () => {
    await using server = await openRealServer();
    const id = await created(server);
    for (const name of ["id", "status", "response_code", "metadata"]) {
      for (const filter of [{ [name]: [] }, { method: "POST", [name]: [] }]) {
        const answer = await server.call("POST", "/v1/bulk", { operation: "cancel", filter });
        expect([answer.status, answer.json.error], name).toMatchObject([
          400,
          { details: [{ field: `filter.${name}`, message: "Must not be empty." }] },
        ]);
      }
    }
    await server.bulkRunner.run();
    expect((await server.engine.get(id)).status).toBe("awaiting_approval");
  });

  test("says what it would do, does it, and tells how far it is and what became of each", async () => {
    await using server = await openRealServer();
    await using down = new Target(500);
    const ids = [await failed(server, { url: down.url }), await failed(server, { url: down.url })].toReversed();
    const other = await failed(server);
    const filter = { status: ["failed"], host: new URL(down.url).host };
    const bulk = (more: object) => server.call("POST", "/v1/bulk", { operation: "retry", filter, ...more });
    expect(await bulk({ dry_run: true })).toMatchObject({
      status: 200,
      json: {
        matching: 2,
        is_more: false,
        unknown_outcomes: 0,
        late_results: 0,
        groups: [{ host: filter.host, response_code: 500, count: 2 }],
      },
    });
    expect((await server.call("GET", "/v1/bulk")).json).toEqual({ data: [], next_cursor: null } as never);
    const begun = await bulk({ reason: "It is up again." });
    expect(begun).toMatchObject({
      status: 202,
      json: { status: "running", matching: 2, filter, created_by: "key:owner" },
    });
    await server.bulkRunner.run();
    const path = `/v1/bulk/${begun.json.id}`;
    const { json } = await server.call("GET", path);
    expect(json).toMatchObject({ status: "finished", done: 2, failed: 0, stopped_by: null });
    expect((await server.call("GET", "/v1/bulk")).json.data).toEqual([json] as never);
    const first = await server.call("GET", `${path}/results?limit=1`);
    const rest = await server.call("GET", `${path}/results?cursor=${first.json.next_cursor}`);
    expect([...first.json.data, ...rest.json.data]).toMatchObject(
      ids.map((id) => ({ id, run: 1, status: "done", action_status: "pending", error: null })),
    );
    expect((await server.call("GET", `${path}/results?status=failed`)).json.data).toEqual([]);
    for (const id of ids) await server.engine.saw(id, { status: "failed", run: 2 });
    expect((await server.engine.get(other)).run).toBe(1);
    expect((await server.call("DELETE", path)).status).toBe(204);
  });

  test("shows other keys its filter and reason without secrets", async () => {
    await using server = await openRealServer({ starts: false });
    const secret = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    const filter = { status: ["failed"], dedupe: secret };
    const begun = await server.call("POST", "/v1/bulk", { operation: "retry", filter, reason: `Leaked: ${secret}` });
    const path = `/v1/bulk/${begun.json.id}`;
    expect((await server.call("GET", path)).json).toMatchObject({ filter, reason: `Leaked: ${secret}` });
    const seen = await server.call("GET", path, undefined, KEYS.reader);
    expect(seen.json).toMatchObject({ filter: { status: ["failed"] }, reason: expect.stringContaining("Leaked: ") });
    expect(seen.text).not.toContain(secret);
  });

  test("takes the ids of actions, a hundred at most, and an export does too", async () => {
    await using server = await openRealServer();
    const ids = [await failed(server), await failed(server), await failed(server)];
    const [first = "", , third = ""] = ids;
    const request = (id: readonly string[]) => JSON.stringify({ operation: "retry", filter: { id } });
    const begun = await server.call("POST", "/v1/bulk", request([first, third]));
    expect(begun).toMatchObject({ status: 202, json: { matching: 2, filter: { id: [first, third] } } });
    const many = Array.from({ length: FILTER_IDS_MAX + 1 }, (_one, at) => `act_${at}`);
    const issuesOf = async (id: readonly string[]) =>
      (await server.call("POST", "/v1/bulk", request(id))).json.error.details?.map(({ field }) => field);
    expect(await issuesOf(many)).toEqual(["filter.id"]);
    expect(await issuesOf(["x"])).toEqual(["filter.id.0"]);
    const exported = await server.call("GET", `/v1/actions/export?format=csv&id=${first}&id=${third}`);
    const rows = exported.text.trim().split("\r\n").slice(1);
    expect(rows.map((row) => row.slice(1, row.indexOf('",')))).toEqual([third, first]);
  });

  test("names every wrong field, and needs a filter", async () => {
    await using server = await openRealServer({ starts: false });
    const wrong = await server.call("POST", "/v1/bulk", {
      operation: "approve",
      filter: { status: ["done"], limit: 3 },
      reason: "\u0000",
      extra: 1,
    });
    expect(wrong.json.error.details?.map(({ field }) => field).toSorted()).toEqual([
      "extra",
      "filter.limit",
      "filter.status.0",
      "operation",
      "reason",
    ]);
    const empty = await server.call("POST", "/v1/bulk", { operation: "retry", filter: {} });
    expect(empty.json.error.details?.map(({ field }) => field)).toEqual(["filter"]);
    expect(
      (await server.call("POST", "/v1/bulk", { operation: "cancel", filter: { status: ["completed"] }, dry_run: true }))
        .json.error.details,
    ).toMatchObject([{ field: "filter.status" }]);
    expect((await server.call("GET", "/v1/bulk/blk_unknown")).status).toBe(404);
    expect((await server.call("GET", "/v1/bulk/blk_unknown/results")).status).toBe(404);
  });
});

describe("the pages of bulk jobs", () => {
  test("ask with what would be done, begin it once, and show how far it is", async () => {
    await using server = await openRealServer();
    await using down = new Target(500);
    const bob = await signedIn(server);
    const ids = [await failed(server, { url: down.url }), await failed(server, { url: down.url, dedupe: "one" })];
    await created(server, { dedupe: "one" });
    const list = await bob.pageOf(`/actions?status=failed&host=${encodeURIComponent(new URL(down.url).host)}`);
    const link = /href="(\/bulk\/new[^"]+)">Retry all 2 failed</.exec(list)?.[1]?.replaceAll("&amp;", "&");
    const asked = await bob.pageOf(link ?? "");
    expect(asked).toContain("Retry 2 actions?");
    const action = (/<form method="post" action="(\/bulk\?[^"]+)"/.exec(asked)?.[1] ?? "").replaceAll("&amp;", "&");
    const fields = await bob.hiddenOf(link ?? "");
    const sent = await bob.send(action, { ...fields, reason: "It is up again." });
    expect(sent.status).toBe(303);
    await server.bulkRunner.run();
    const done = await (await bob.follow(sent)).text();
    expect(done).toContain("1 action retried, 1 refused.");
    expect(done).toContain("now has its dedupe key");
    expect(done).toContain(`<a href="/actions/${ids[1]}"><code>`);
    expect(await bob.pageOf("/bulk")).toContain("Retry 2 actions");
    const retried = (await server.engine.events(ids[0] ?? "")).find(({ type }) => type === "retried");
    expect(retried).toMatchObject({ actor: "user:ann@example.com", reason: "It is up again." });
  });

  test("cover at most as many actions as they showed", async () => {
    await using server = await openRealServer();
    await using down = new Target(500);
    const bob = await signedIn(server);
    await failed(server, { url: down.url });
    const fields = await bob.hiddenOf("/bulk/new?operation=retry&status=failed");
    await failed(server, { url: down.url });
    const refused = await bob.send("/bulk?status=failed", { ...fields, reason: "It is up again." });
    const shown = await refused.text();
    expect(refused.status).toBe(400);
    expect(shown).toContain("2 actions match now, 1 when you looked. Check again.");
    expect(shown).toContain("It is up again.");
    expect(shown).toContain('name="at_most" value="2"');
    expect((await bob.send("/bulk?status=failed", { ...fields, at_most: "2" })).status).toBe(303);
  });

  test("ask about the selected actions, and what can't be included", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    const ids = [await failed(server), await failed(server), await created(server)];
    const list = await bob.pageOf("/actions");
    for (const id of ids) expect(list).toContain(`<input type="checkbox" name="id" value="${id}"`);
    expect(list).toContain('<form id="selection" method="get" action="/bulk/new"');
    const query = ids.map((id) => `id=${id}`).join("&");
    const asked = await bob.pageOf(`/bulk/new?operation=retry&${query}`);
    expect(asked).toContain("Retry 2 actions?");
    expect(asked).toContain("1 of the 3 actions that you selected can&#39;t be included");
    const sent = await bob.send(`/bulk?${query}`, await bob.hiddenOf(`/bulk/new?operation=retry&${query}`));
    await server.bulkRunner.run();
    expect(await (await bob.follow(sent)).text()).toContain("2 actions retried.");
    expect(await bob.pageOf(`/actions/export?${query}&format=csv`)).toContain(ids[0] ?? "");
  });

  test("say before a retry how many outcomes are unknown, and what would be refused again", async () => {
    await using server = await openRealServer();
    await using silent = await new RawTarget((socket) => socket.destroy(), {}).start();
    const bob = await signedIn(server);
    await using strict = new Target(422);
    await failed(server, { url: `http://127.0.0.1:${silent.port}/` });
    await failed(server, { url: strict.url });
    const asked = await bob.pageOf("/bulk/new?operation=retry&status=failed");
    expect(asked).toMatch(/1 × <b>422<\/b>.*Likely to fail again/s);
    expect(asked).toContain("2 actions, 1 with unknown outcome: the target may have done it already.");
    expect(await bob.pageOf("/bulk/new?operation=cancel&status=pending")).not.toContain("unknown outcome");
  });

  test("never take nothing for everything", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    const id = await failed(server);
    expect((await bob.context("/bulk/new?operation=retry")).headers.get("location")).toBe("/actions");
    const fields = await bob.hiddenOf("/bulk/new?operation=retry&status=failed");
    expect((await bob.send("/bulk", fields)).status).toBe(400);
    await server.bulkRunner.run();
    expect((await server.engine.get(id)).run).toBe(1);
  });

  test("offer only what the statuses of the list are for", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    const id = await created(server);
    await server.call("POST", `/v1/actions/${id}/cancel`);
    await created(server);
    for (const query of ["", "?status=completed", "?status=failed", "?status=active"]) {
      expect(await bob.pageOf(`/actions${query}`)).not.toMatch(/(Retry|Cancel) all/);
    }
    expect(await bob.pageOf("/actions?status=cancelled")).toContain("Retry all 1 cancelled");
    expect(await bob.pageOf("/actions?status=awaiting_approval")).toContain("Cancel all 1 awaiting approval");
  });
});

test("the counts of the API stand on the chips of the list", async () => {
  await using server = await openRealServer({ starts: false });
  const bob = await signedIn(server);
  for (const members of [{}, {}, { approve: false }]) await created(server, { title: "Refund", ...members });
  await created(server, { approve: false, title: "Other" });
  const { json } = await server.call("GET", "/v1/actions/counts?q=refund");
  const counts = { awaiting_approval: 2, pending: 1, active: 0, completed: 0, failed: 0, cancelled: 0 };
  expect(json).toEqual({
    data: Object.entries(counts)
      .map(([status, count]) => ({ status, count, is_more: false }))
      .toSorted((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status)),
    counted_until: null,
  } as never);
  const html = (await bob.pageOf("/actions?q=refund")).replaceAll(/<[^>]+>/g, "");
  expect(html).toContain("Awaiting approval 2Pending 1Sending 0");
  expect((await server.call("GET", "/v1/actions/counts?status=failed&status=pending")).json.data).toHaveLength(2);
});

const ORDER = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];
