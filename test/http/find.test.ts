import { describe, expect, test } from "bun:test";
import { csvLine } from "../../src/actions/export.ts";
import { DECISIONS_AT_ONCE_MAX, EXPORTS_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { eventually } from "../support/eventually.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

const SECRET = "canaryx9Kq2Lm8Vb3Zt7Rw";

/** Of the format of a token, so that it is masked in any text. */
const TOKEN = `ghp_${"a1B2c3D4e5F6".repeat(3)}`;

async function created(server: RealServer, members: object = {}): Promise<string> {
  return (
    await server.call("POST", "/v1/actions", { url: "https://api.example.com/v1/refunds", approve: true, ...members })
  ).json.id;
}

test("GET /v1/actions finds by every filter of the contract", async () => {
  await using server = await openRealServer({ starts: false });
  const one = await created(server, {
    title: "Refund 12.00 EUR",
    reason: "The parcel was lost.",
    metadata: { customer: "4711", "order:no": undefined, order: "a:b" },
  });
  const two = await created(server, { url: "https://other.example/x", title: "Other" });
  const found = async (query: string) => {
    const { json } = await server.call("GET", `/v1/actions?${query}`);
    return json.data.map(({ id }) => (id === one ? "one" : "two"));
  };
  expect(await found("q=REFUND")).toEqual(["one"]);
  expect(await found(`q=${two}`)).toEqual(["two"]);
  expect(await found("path=/v1/")).toEqual(["one"]);
  expect(await found("title=other")).toEqual(["two"]);
  expect(await found("reason=parcel")).toEqual(["one"]);
  expect(await found("metadata=customer:4711&metadata=order:a:b")).toEqual(["one"]);
  expect(await found("metadata=customer&status=awaiting_approval")).toEqual(["one"]);
  expect(await found("metadata=customer:47")).toEqual([]);
  expect(await found("response_code=5xx&response_code=422&outcome=answered&error=target")).toEqual([]);
  const wrong = await server.call(
    "GET",
    `/v1/actions?response_code=600&outcome=x&error=y&metadata=a+b&q=&path=%00&title=${"x".repeat(201)}`,
  );
  expect(wrong.json.error.details?.map(({ field }) => field).toSorted()).toEqual(
    "error metadata outcome path q response_code title".split(" "),
  );
});

test("nobody finds out a value that is masked for them by searching for it", async () => {
  await using server = await openRealServer({ starts: false });
  const id = await created(server, {
    url: `https://api.example.com/hooks?api_key=${SECRET}&page=7`,
    title: `Rotate ${TOKEN}`,
    reason: `The old one was ${TOKEN}.`,
    metadata: { password: "4711", order: "o-9" },
    dedupe: "unlock?pin=4711",
  });
  const finds = async (query: string, key: string) => {
    const { json } = await server.call("GET", `/v1/actions?${query}`, undefined, key);
    const counted = await server.call("GET", `/v1/actions/counts?${query}`, undefined, key);
    const sum = counted.json.data.reduce((total, one) => total + Number(Object(one).count), 0);
    expect(sum).toBe(json.data.length);
    return json.data.length === 1 && json.data[0]?.id === id;
  };
  const hidden = [
    `q=${SECRET.slice(0, 4)}`,
    `q=${TOKEN.slice(4, 9)}`,
    `path=${encodeURIComponent(`/hooks?api_key=${SECRET.slice(0, 3)}`)}`,
    `title=${TOKEN.slice(0, 7)}`,
    `reason=${TOKEN.slice(3, 9)}`,
    "metadata=password:4711",
    `dedupe=${encodeURIComponent("unlock?pin=4711")}`,
  ];
  // On the pages an owner sees as much as an approver, but for what they ask to be shown. On plain http other ports have their cookie.
  const ann = await signedIn(server);
  for (const query of hidden) {
    const found = { owner: await finds(query, KEYS.owner), reader: await finds(query, KEYS.reader) };
    expect({ query, ...found }).toEqual({ query, owner: true, reader: false });
    if (/[?&]?(q|path|title|reason)=/.test(query))
      expect(await ann.pageOf(`/actions?${query}`), query).not.toContain(id);
  }
  const exported = await ann.pageOf("/actions/export");
  expect([exported.includes(id), exported.includes(SECRET), exported.includes(TOKEN)]).toEqual([true, false, false]);
  for (const query of "q=hooks title=rotate reason=old path=/hooks metadata=order:o-9 metadata=password".split(" ")) {
    expect(await finds(query, KEYS.reader), query).toBe(true);
  }
  const dryRun = (filter: object, key: string) =>
    server.call("POST", "/v1/bulk", { operation: "cancel", filter, dry_run: true }, key);
  expect((await dryRun({ title: TOKEN.slice(0, 7) }, KEYS.approver)).json).toMatchObject({ matching: 0 });
  expect((await dryRun({ title: "rotate" }, KEYS.approver)).json).toMatchObject({ matching: 1 });
});

describe("an export", () => {
  test("has every action that matches, as the list has them, newest first", async () => {
    await using server = await openRealServer({ starts: false });
    const ids: string[] = [];
    for (let at = 0; at < 230; at += 1) ids.push(await created(server, { dedupe: `d ${at}`, body: { n: 1.0, at } }));
    await created(server, { url: "https://other.example/" });
    const { text } = await server.call("GET", "/v1/actions/export?host=api.example.com");
    const lines = text.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(ids.toSorted().toReversed());
    const { json } = await server.call("GET", "/v1/actions?host=api.example.com&limit=1");
    expect(JSON.parse(lines[0] ?? "")).toEqual(json.data[0] as never);
    const csv = await server.call("GET", "/v1/actions/export?host=api.example.com&format=csv");
    const rows = csv.text.split("\r\n");
    expect(rows[0]).toStartWith('"id","status","title","method","host","url"');
    expect(rows).toHaveLength(ids.length + 2);
    expect((await server.call("GET", "/v1/actions/export?format=xml")).json.error.code).toBe("invalid_query");
    const theirs = await server.call("GET", "/v1/actions/export", undefined, STRANGER);
    expect(theirs.text).toBe("");
  });

  test("is there for people too, under the limits of the API", async () => {
    await using server = await openRealServer({ starts: false });
    const bob = await signedIn(server);
    const id = await created(server);
    const html = await bob.pageOf("/actions?status=awaiting_approval&limit=3");
    const link = /href="(\/actions\/export[^"]+)" download="">CSV /.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(link).toBe("/actions/export?status=awaiting_approval&format=csv");
    const answer = await bob.context(link);
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="actions.csv"');
    expect(await answer.text()).toContain(id);
    const open = await Promise.all(
      Array.from({ length: EXPORTS_PER_ACCOUNT_MAX }, () => bob.context("/actions/export")),
    );
    const stuck = open.filter(({ status }) => status === 200);
    for (const one of stuck) await one.text();
    expect((await bob.context("/actions/export")).status).toBe(200);
  });

  test("ends when the client leaves, and gives its place free", async () => {
    await using server = await openRealServer({ starts: false });
    for (let at = 0; at < 120; at += 1) await created(server, { body: { text: "x".repeat(40_000) } });
    for (let round = 0; round < EXPORTS_PER_ACCOUNT_MAX * 2; round += 1) {
      const leaving = new AbortController();
      // The place of who left is free a moment later.
      const answer = await eventually(async () => {
        const asked = await server.ask("/v1/actions/export", { signal: leaving.signal });
        return asked.status === 200 ? asked : null;
      }, "a free place");
      await answer.body?.getReader().read();
      leaving.abort();
    }
    expect((await server.ask("/v1/actions/export?host=nobody.example")).status).toBe(200);
  });

  test.each([
    ["=1+1", `"'=1+1"`],
    ["+49", `"'+49"`],
    ["-5", `"'-5"`],
    ["@SUM(A1)", `"'@SUM(A1)"`],
    ["\t=1", `"'\t=1"`],
    ["  =1", `"'  =1"`],
    ['"=1', `"'""=1"`],
    ["\r\n=1", `"'\r\n=1"`],
    ["\uFF1D1", `"'\uFF1D1"`],
    ["a;=1+1;b", `"a;'=1+1;b"`],
    ['a=b, "c"\n', `"a=b, ""c""\n"`],
    ["", `""`],
    [null, ""],
    [-5, "-5"],
    [true, "true"],
  ])("writes the cell %p as %p", (cell, text) => {
    expect(csvLine([cell, "x"])).toBe(`${text},"x"\r\n`);
  });
});

describe("POST /v1/approvals", () => {
  const shown = async (server: RealServer, id: string) => {
    const { json } = await server.call("GET", `/v1/actions/${id}/facts`);
    const { run, digest } = json as never as { run: number; digest: string };
    return { id, run, digest };
  };
  const decide = (server: RealServer, decision: string, requests: readonly object[], key: string = KEYS.owner) =>
    server.call("POST", "/v1/approvals", { decision, reason: "Agreed.", requests }, key);

  test("decides on exactly what was shown, and says of each what became of it", async () => {
    await using server = await openRealServer({ starts: false });
    const [one, two, other, gone] = [await created(server), await created(server), await created(server), "act_gone"];
    const [first, second, third] = [await shown(server, one), await shown(server, two), await shown(server, other)];
    const answer = await decide(server, "approve", [
      first,
      { ...second, digest: third.digest.replace(/.$/, "x") },
      { ...third, run: 2 },
      { ...first, id: gone },
      first,
    ]);
    expect(answer.json.data).toMatchObject([
      { id: one, status: "pending" },
      { id: two, error: { code: "not_approvable" } },
      { id: other, error: { code: "not_approvable" } },
      { id: gone, error: { code: "not_found" } },
      { id: one, error: { code: "not_approvable" } },
    ]);
    expect((await decide(server, "reject", [second, third], KEYS.approver)).json.data).toMatchObject([
      { id: two, status: "cancelled" },
      { id: other, status: "cancelled" },
    ]);
    const told = await server.engine.events(two);
    expect(told.at(-1)).toEqual({ type: "rejected", actor: "key:approver", reason: "Agreed." });
  });

  test("takes a bounded number, and its digest is only for those who may approve", async () => {
    await using server = await openRealServer({ starts: false });
    const id = await created(server);
    const request = await shown(server, id);
    const many = Array.from({ length: DECISIONS_AT_ONCE_MAX + 1 }, () => request);
    expect((await decide(server, "approve", many)).json.error.details).toMatchObject([{ field: "requests" }]);
    expect((await decide(server, "approve", [])).json.error.details).toMatchObject([{ field: "requests" }]);
    for (const role of ["agent", "reader"] as const) {
      expect((await decide(server, "approve", [request], KEYS[role])).status).toBe(403);
      const facts = await server.call("GET", `/v1/actions/${id}/facts`, undefined, KEYS[role]);
      expect(Object.keys(facts.json)).toEqual(["facts", "risks", "run"]);
    }
  });
});

test("GET /v1/notifications has what the page of the settings has, in pages, masked", async () => {
  await using server = await openRealServer({ starts: false });
  const callback = `https://hooks.example.com/x?token=${SECRET}`;
  const ids = [await created(server, { callback }), await created(server, { callback })].toSorted();
  for (const id of ids) await server.call("POST", `/v1/actions/${id}/approve`);
  const first = await server.call("GET", "/v1/notifications?limit=1");
  const rest = await server.call("GET", `/v1/notifications?cursor=${first.json.next_cursor}`);
  const all = [...first.json.data, ...rest.json.data];
  expect(all.length).toBeGreaterThan(1);
  expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
  expect(all[0]).toMatchObject({
    action_id: ids[1],
    kind: "callback",
    status: "pending",
    attempts: 0,
    last_error: null,
  });
  expect(JSON.stringify(all)).not.toContain(SECRET);
  expect((await server.call("GET", "/v1/notifications", undefined, KEYS.approver)).status).toBe(403);
});
