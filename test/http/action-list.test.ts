import { describe, expect, test } from "bun:test";
import { ACTIONS_SHOWN_MAX, DAY_MS } from "../../src/core/limits.ts";
import { textOf } from "../support/forms.ts";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";

const NO_TARGET = "http://127.0.0.1:9/";

const app = await shared(openRealServer());
const ann = await signedIn(app);

async function created(members: object = {}, server: RealServer = app): Promise<string> {
  return (await server.call("POST", "/v1/actions", { url: NO_TARGET, approve: true, ...members })).json.id;
}

const idsIn = (html: string) =>
  [...html.matchAll(/class="row-link" href="\/actions\/(act_\w+)"/g)].map(([, id]) => id ?? "");

const linkIn = (html: string, words: string) =>
  (new RegExp(`href="([^"]+)">${words}(?: <span[^>]*>[^<]*</span>)?</a>`).exec(html)?.[1] ?? "").replaceAll(
    "&amp;",
    "&",
  );

describe("the list of actions", () => {
  test("shows time, agent, call, status, attempts, duration and error, newest first, and leads to each", async () => {
    await using server = await openRealServer();
    await using target = new Target(200);
    const bob = await signedIn(server);
    await using down = new Target(() => Response.json({ error: { message: "No such charge." } }, { status: 422 }));
    const failed = await created({ url: down.url, approve: false, retries: 1, title: "Refund 12 EUR" }, server);
    await server.engine.saw(failed, { status: "failed" });
    const old = await created({ url: target.url, method: "PUT", approve: false, retries: 5 }, server);
    await server.engine.saw(old, { status: "completed" });
    server.engine.clock.advance(7_200_000);
    const young = await created(
      { url: `${NO_TARGET}refunds?token=canaryx9Kq2Lm8Vb3Zt7Rw`, body: { password: "canaryx9Kq2Lm8Vb3Zt7Rw" } },
      server,
    );
    const html = await bob.pageOf("/actions");
    expect(idsIn(html)).toEqual([young, old, failed]);
    const rows = html.slice(html.indexOf("</thead>")).split("</tr>");
    const [first = "", second = "", third = ""] = rows.map(textOf);
    const call = String.raw`/refunds\?token=••••\(token,22-chars,…t7Rw\) POST 127\.0\.0\.1:9`;
    expect(first).toMatch(new RegExp(String.raw`^ \d\d:\d\d:\d\d owner ${call} Awaiting approval – $`));
    expect(second).toMatch(/owner 127\.0\.0\.1:\d+ PUT Completed 200 1 of 5 \d+ ms $/);
    // A title never stands without method, host and path.
    expect(third).toMatch(/owner Refund 12 EUR POST 127\.0\.0\.1:\d+ \/ Failed 422 1 of 1 \d+ ms No such charge\. $/);
    expect(html).toContain('<span><bdi class="untrusted">Refund 12 EUR</bdi></span>');
    // Colour is for what needs somebody.
    const tones = [...html.matchAll(/class="dot dot-(\w+)">([^<]*)/g)].map(([, tone, words]) => `${words}: ${tone}`);
    expect(tones).toEqual(["Awaiting approval: wait", "Completed 200: still", "Failed 422: bad"]);
    expect(html).not.toContain("canary");
  });

  test("has a divider where another day begins, and none above what was created today", async () => {
    await using server = await openRealServer({ starts: false });
    const { clock } = server.engine;
    const [first, second] = [await created({}, server), await created({}, server)];
    clock.advance(DAY_MS);
    const third = await created({}, server);
    const bob = await signedIn(server);
    const partsOf = (html: string) =>
      [...html.matchAll(/<tr id="([^"]+)"|<tr class="day">.*?<time[^>]*>([^<]*)/gs)].map(([, id, day]) => id ?? day);
    const day = /^Thu,? 1 Jan 2026$/;
    expect(partsOf(await bob.pageOf("/actions"))).toEqual([third, expect.stringMatching(day), second, first]);
    expect(partsOf(await bob.pageOf("/actions?created_before=2026-01-01T12:00:00Z"))).toEqual([
      expect.stringMatching(day),
      second,
      first,
    ]);
  });

  test("is filtered by the parameters of the API's list, and each filter has its address", async () => {
    await using server = await openRealServer({ starts: false });
    const bob = await signedIn(server);
    const early = server.engine.clock.now();
    const one = await created({ method: "GET", dedupe: "order 7" }, server);
    server.engine.clock.advance(60_000);
    const two = await created({ url: "http://127.0.0.1:10/", approve: false }, server);
    const seen = async (query: string) => idsIn(await bob.pageOf(`/actions?${query}`));
    const between = encodeURIComponent(new Date(early.getTime() + 1_000).toISOString());
    expect(await seen("status=pending")).toEqual([two]);
    expect(await seen("method=GET")).toEqual([one]);
    expect(await seen("host=127.0.0.1%3A10")).toEqual([two]);
    expect(await seen("dedupe=order+7")).toEqual([one]);
    expect(await seen(`created_after=${between}`)).toEqual([two]);
    expect(await seen("limit=1")).toEqual([two]);
    const html = await bob.pageOf("/actions?method=GET&status=pending&limit=7");
    expect(linkIn(html, "Failed")).toBe("/actions?method=GET&status=failed&limit=7");
    expect(linkIn(html, "All")).toBe("/actions?method=GET&limit=7");
    expect(html).toContain('<option selected="">GET</option>');
    expect(html).toContain("No actions match these filters");
  });

  test("drops what a form leaves empty, and takes times without a zone for UTC", async () => {
    const lead = async (query: string) => (await ann.context(`/actions?${query}`)).headers.get("location");
    expect(await lead("host=&method=&dedupe=&created_after=&created_before=")).toBe("/actions");
    expect(await lead("host=a.example&method=")).toBe("/actions?host=a.example");
    expect(await lead("created_after=2026-01-01T10%3A00")).toBe("/actions?created_after=2026-01-01T10%3A00%3A00Z");
    expect(await lead("created_before=2026-01-01T10:00:30&status=failed")).toBe(
      "/actions?created_before=2026-01-01T10%3A00%3A30Z&status=failed",
    );
    expect(await lead("status=failed&status=pending")).toBeNull();
    const html = await ann.pageOf("/actions?created_after=2026-01-01T10%3A00%3A00Z");
    expect(html).toContain('value="2026-01-01T10:00:00"');
  });

  test("offers the agents, hosts, codes and times there are, and each choice keeps the other filters", async () => {
    await using server = await openRealServer({ starts: false });
    const bob = await signedIn(server);
    const hrefs = (html: string) =>
      [...html.matchAll(/href="(\/actions\?[^"]*)"/g)].map(([, href = ""]) => href.replaceAll("&amp;", "&"));
    const { json: key } = await server.call("POST", "/v1/keys", { name: "crm <b>", role: "agent" });
    await server.call("POST", "/v1/actions", { url: "https://crm.example:8443/x", approve: true }, key.key);
    await created({}, server);
    const html = await bob.pageOf("/actions?q=x&status=failed&limit=7");
    expect(html).toContain("crm &lt;b&gt;");
    expect(hrefs(html)).toEqual(
      expect.arrayContaining([
        `/actions?q=x&status=failed&limit=7&created_by=${key.id}`,
        "/actions?q=x&status=failed&limit=7&host=crm.example",
        "/actions?q=x&status=failed&limit=7&host=127.0.0.1",
        "/actions?q=x&status=failed&limit=7&response_code=5xx",
      ]),
    );
    const chosen = await bob.pageOf(`/actions?created_by=${key.id}&response_code=422`);
    expect(hrefs(chosen)).toContain("/actions?response_code=422");
    expect(hrefs(chosen)).toContain(`/actions?created_by=${key.id}`);
    // The forms keep them too.
    expect(chosen.match(new RegExp(`<input type="hidden" name="created_by" value="${key.id}"/>`, "g"))).toHaveLength(3);
    const [, day = ""] = /created_after=([^"&]+)">Last 24 h</.exec(html) ?? [];
    const after = new Date(decodeURIComponent(day)).getTime();
    expect(after % 60_000).toBe(0);
    expect(await bob.pageOf(`/actions?created_after=${day}`)).toMatch(/<summary>Last 24 h/);
    server.engine.clock.advance(3_600_000);
    expect(await bob.pageOf(`/actions?created_after=${day}`)).toMatch(/<summary>Since <time/);
  });

  test("says what is wrong with a filter, and keeps what was typed", async () => {
    for (const [query, field] of [
      ["status=done", "status"],
      ["created_after=2026-02-30T99%3A00%3A00Z", "created_after"],
      ["nothing=known", "nothing"],
    ]) {
      const response = await ann.context(`/actions?${query}`);
      const html = await response.text();
      expect([query, response.status, html.includes(`${field}: `)]).toEqual([query ?? "", 400, true]);
      expect(idsIn(html)).toEqual([]);
    }
    expect(await ann.pageOf("/actions?host=a%22+%3Cb%3E")).toContain('value="a&quot; &lt;b&gt;"');
  });

  test("goes on to older ones, and back to the newest, and none is left out or shown twice", async () => {
    await using server = await openRealServer({ starts: false });
    const bob = await signedIn(server);
    const ids = [];
    for (let count = 0; count < ACTIONS_SHOWN_MAX + 3; count += 1) ids.push(await created({}, server));
    const first = await bob.pageOf("/actions?status=awaiting_approval");
    const second = await bob.pageOf(linkIn(first, "Older"));
    expect([...idsIn(first), ...idsIn(second)]).toEqual(ids.toSorted().toReversed());
    expect(linkIn(second, "Older")).toBe("");
    expect(linkIn(second, "Back to newest")).toBe("/actions?status=awaiting_approval");
    // As many as are asked for, where an address says so.
    expect(idsIn(await bob.pageOf("/actions?limit=2"))).toHaveLength(2);
  });

  test("tells whoever has sent nothing yet how to", async () => {
    await using server = await openRealServer({ starts: false });
    const html = await (await signedIn(server)).pageOf("/actions");
    expect(html).toContain("No actions yet");
    expect(html).toContain('href="/get-started"');
  });
});
