import { describe, expect, test } from "bun:test";
import { DECISIONS_AT_ONCE_MAX } from "../../src/core/limits.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { ANN, signedIn } from "./signed-in.ts";
import { textOf } from "../support/forms.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);

const NO_TARGET = "http://127.0.0.1:9/";

async function held(members: object = {}, key: string = KEYS.agent): Promise<string> {
  app.engine.clock.advance(1);
  return (await app.call("POST", "/v1/actions", { url: NO_TARGET, approve: true, ...members }, key)).json.id;
}

const statusOf = async (id: string) => (await app.engine.get(id)).status;

const pathOf = (ids: readonly string[]) => `/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`;

/** The review, whose form is sent with this decision. */
async function decide(ids: readonly string[], fields: Readonly<Record<string, string>>) {
  return ann.send("/approvals/review", { ...(await ann.hiddenOf(pathOf(ids))), ...fields });
}

describe("the review of several requests", () => {
  test("shows each whole, and decides on exactly those, as the person's, with a link to what came of them", async () => {
    const ids = [
      await held({ method: "DELETE", url: `${NO_TARGET}first`, body: { a: "one" } }),
      await held({ url: `${NO_TARGET}second`, form: { amount: "1200" } }),
    ];
    const other = await held();
    const page = textOf(await ann.pageOf(pathOf(ids)));
    for (const seen of [
      "Decide on 2 requests",
      "/first",
      "It deletes: the method is DELETE.",
      "&quot;one&quot;",
      "/second",
      "1200",
    ]) {
      expect(page).toContain(seen);
    }
    const answer = await decide(ids, { decision: "approve", reason: "Agreed." });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/approvals?decided=${ids.join("+")}`]);
    expect(await Promise.all([...ids, other].map(statusOf))).toEqual(["pending", "pending", "awaiting_approval"]);
    const told = (await app.engine.events(ids[0] ?? "")).find(({ type }) => type === "approved");
    expect(told).toEqual({ type: "approved", actor: `user:${ANN}`, reason: "Agreed." });
    const list = textOf(await ann.pageOf(answer.headers.get("location") ?? ""));
    expect(list.match(/Approved by ann@example.com/g)).toHaveLength(2);
    expect(list.match(/Pending/g)).toHaveLength(2);
  });

  test("shows what look-alikes share once, and every value in which they differ, what stands apart first", async () => {
    const ids = [];
    for (const amount of [480, 12, 90]) {
      ids.push(
        await held({ url: `${NO_TARGET}refunds`, body: { amount, currency: "eur" }, reason: `Order ${amount}` }),
      );
    }
    const list = textOf(await ann.pageOf("/approvals"));
    expect(list).toContain("3 × POST /refunds");
    expect(list).toContain("amount 12 to 480");
    const page = textOf(await ann.pageOf(pathOf(ids)));
    // With its scheme, as where one is shown: nobody approves plain HTTP unseen.
    expect(page).toContain("POST http:// 127.0.0.1:9 /refunds × 3");
    expect(page).toContain("amount 480 : highest, 5.3 times the median");
    expect(page).toMatch(/amount 3 values, below currency &quot;eur&quot;/);
    expect(page).toMatch(
      /Request 1.*amount 480 Reason Order 480 .*Request 2.*amount 12 .*Request 3.*amount 90 Reason Order 90/,
    );
    expect(page.match(/currency/g)).toHaveLength(1);
    expect(page).toContain("Approve 3 · 7 values");
    // Its place is where another review begins, without it.
    const [, left = ""] = (await ann.pageOf(pathOf(ids))).match(/href="([^"]+)">Leave out/) ?? [];
    expect(textOf(await ann.pageOf(left.replaceAll("&amp;", "&")))).toContain("Decide on 2 requests");
    await decide(ids, { decision: "reject" });
    expect(await Promise.all(ids.map(statusOf))).toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  test("says that requests which look alike may differ in what it hides", async () => {
    const ids = [];
    for (const n of [1, 2, 3]) {
      ids.push(await held({ url: `${NO_TARGET}users/${n}`, headers: { "X-Api-Key": `kY8vQ2mZr7Lw4Tb9Xc1${n}` } }));
    }
    const page = textOf(await ann.pageOf(pathOf(ids)));
    expect(page.match(/1 value hidden, which may differ too/g)).toHaveLength(3);
    await decide(ids, { decision: "reject" });
  });

  test("decides on nothing that it did not show: another run, another digest, another account's", async () => {
    const [again, altered, decided] = [
      await held({ body: { n: 1 } }),
      await held({ body: { n: 2 } }),
      await held({ body: { n: 3 } }),
    ];
    const foreign = await held({}, STRANGER);
    const ids = [again, altered, decided, foreign];
    const fields = await ann.hiddenOf(pathOf(ids));
    const shown = (fields["requests"] ?? "").split(" ");
    expect(shown.map((text) => text.split(",")[0])).toEqual([again, altered, decided]);
    for (const id of [again, decided]) await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${again}/retry`);
    const requests = [shown[0], shown[1]?.replace(/.$/, "x"), shown[2], `${foreign},1,2:00`].join(" ");
    const answer = await ann.send("/approvals/review", { ...fields, requests, decision: "approve" });
    expect(answer.status).toBe(303);
    expect(await Promise.all([again, altered, decided].map(statusOf))).toEqual([
      "awaiting_approval",
      "awaiting_approval",
      "cancelled",
    ]);
    expect(textOf(await ann.pageOf(answer.headers.get("location") ?? ""))).toContain("Awaiting approval");
  });

  test("says which of them no longer wait, and keeps what was typed where it can't be taken", async () => {
    const ids = [await held({ body: { n: 4 } }), await held({ body: { n: 5 } })];
    await app.call("POST", `/v1/actions/${ids[0]}/cancel`);
    expect(textOf(await ann.pageOf(pathOf(ids)))).toContain("1 selected request left out: no longer awaiting approval");
    const reason = "x".repeat(1_001);
    const answer = await decide(ids, { decision: "approve", reason });
    expect([answer.status, (await answer.text()).includes(`${reason}</textarea>`)]).toEqual([400, true]);
    expect(await statusOf(ids[1] ?? "")).toBe("awaiting_approval");
  });

  test("decides on none that are too large to be shown with the others, and says so", async () => {
    const ids = [];
    for (const n of [1, 2, 3]) ids.push(await held({ body: { n, text: "x".repeat(900_000) } }));
    const page = textOf(await ann.pageOf(pathOf(ids)));
    expect(page).toContain(
      "1 selected request left out: no longer awaiting approval, or too large to be shown with the others.",
    );
    // A page has so many bytes: the next one follows the decision.
    expect(page).toContain("1 more selected request on the next page");
    const answer = await decide(ids, { decision: "reject" });
    const next = `${pathOf([ids[1] ?? ""])}&decided=${ids[0]}`;
    expect([answer.status, answer.headers.get("location")]).toEqual([303, next]);
    expect(await Promise.all(ids.map(statusOf))).toEqual(["cancelled", "awaiting_approval", "awaiting_approval"]);
    await decide(ids.slice(1, 2), { decision: "reject" });
  });

  test.each([
    ["nothing", ""],
    ["no request", "x"],
    ["no digest", "act_1,1,"],
    ["a run that is none", "act_1,x,2:00"],
    ["too many", Array.from({ length: DECISIONS_AT_ONCE_MAX + 1 }, (_, at) => `act_${at},1,2:00`).join(" ")],
  ])("takes no form that names %s", async (_what, requests) => {
    const fields = await ann.hiddenOf(pathOf([await held()]));
    const answer = await ann.send("/approvals/review", { ...fields, requests, decision: "approve" });
    expect([answer.status, (await answer.text()).includes("Select 1 to 50 requests")]).toEqual([400, true]);
  });

  test("is empty without a selection", async () => {
    for (const query of ["", "?id=", "?id=../x", "?id=act_nobody"]) {
      const page = await ann.pageOf(`/approvals/review${query}`);
      expect(page).toContain("No request is selected");
      expect(page).not.toContain('name="decision"');
    }
  });
});

test("the filters of the inbox find what one host gets and what has waited long, and count it truly", async () => {
  await using server = await openRealServer({ starts: false });
  const bob = await signedIn(server);
  const ask = async (url: string) => (await server.call("POST", "/v1/actions", { url, approve: true })).json.id;
  const old = await ask("https://b.example/1");
  server.engine.clock.advance(2 * 3_600_000);
  const young = await ask("https://b.example/2");
  const other = await ask("https://c.example/");
  const idsIn = (html: string) =>
    [...html.matchAll(/class="inbox-open" href="\/approvals\/(act_\w+)/g)].map(([, id]) => id ?? "");
  const look = async (query: string) => {
    const html = await bob.pageOf(`/approvals${query}`);
    return { ids: idsIn(html), count: /role="status">([^<]*)</.exec(html)?.[1] };
  };
  expect(await look("")).toEqual({ ids: [old, young, other], count: "3 awaiting approval" });
  expect(await look("?host=b.example")).toEqual({ ids: [old, young], count: "2 of 3 awaiting approval" });
  expect(await look("?age=hour")).toEqual({ ids: [old], count: "1 of 3 awaiting approval" });
  expect(await look("?host=c.example&age=day")).toEqual({ ids: [], count: "0 of 3 awaiting approval" });
  expect(await look("?age=long&host=/&by=x")).toEqual({ ids: [old, young, other], count: "3 awaiting approval" });
  // A decision keeps the filters, and opens the next request of them.
  const fields = await bob.hiddenOf(`/approvals/${old}?host=b.example`);
  const answer = await bob.send(`/approvals/${old}?host=b.example`, { ...fields, decision: "reject" });
  expect(answer.headers.get("location")).toBe(`/approvals?decided=${old}&host=b.example`);
  const next = await bob.pageOf(`/approvals?decided=${old}&host=b.example`);
  expect(next).toContain(`data-open-path="/approvals/${young}?host=b.example"`);
  expect(next).toContain("Rejected by");
});
