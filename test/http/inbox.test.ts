import { describe, expect, test } from "bun:test";
import { HELD_LISTED_MAX } from "../../src/core/limits.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { hiddenIn } from "../support/forms.ts";
import { ANN, ANN_PASSWORD, browserOf, joined, sessionIn, signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";
import { words } from "../support/words.ts";

const NO_TARGET = "http://127.0.0.1:9/";

const app = await shared(openRealServer());
const ann = await signedIn(app);

let asked = 0;

/** Each a request of its own: what was rejected of one is nothing to the others. */
async function held(members: object = {}, server: RealServer = app, key: string = KEYS.agent): Promise<string> {
  asked += 1;
  return (await server.call("POST", "/v1/actions", { url: `${NO_TARGET}?n=${asked}`, approve: true, ...members }, key))
    .json.id;
}

/** The requests of a list, in their order. */
const idsIn = (html: string) =>
  [...html.matchAll(/class="inbox-open" href="\/approvals\/(act_\w+)/g)].map(([, id]) => id ?? "");

const decide = async (id: string, fields: Readonly<Record<string, string>>) =>
  ann.send(`/approvals/${id}`, { ...(await ann.hiddenOf(`/approvals/${id}`)), ...fields });

describe("the inbox", () => {
  test("lists what waits, oldest first, each leading to a page of its own, without any mail", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    expect(await bob.pageOf("/approvals")).toContain("You’re all caught up");
    const ids = [];
    for (let count = 0; count < 3; count += 1) {
      ids.push(await held({ url: `${NO_TARGET}${count}`, body: { amount: count } }, server));
      server.engine.clock.advance(120_000);
    }
    await held({}, server, STRANGER);
    const decided = await held({}, server);
    await server.call("POST", `/v1/actions/${decided}/cancel`);
    const html = await bob.pageOf("/approvals");
    expect(idsIn(html)).toEqual(ids);
    expect(html).toContain("3 awaiting approval");
    expect(html).toContain("6 min ago");
    expect(html).toContain(ANN);
  });

  test("shows what every key asks for on its first page, and what one of them asks for alone", async () => {
    await using server = await openRealServer({ starts: false });
    const bob = await signedIn(server);
    for (let count = 0; count < HELD_LISTED_MAX + 5; count += 1) await held({}, server);
    const [mine, also] = [await held({}, server, KEYS.owner), await held({}, server, KEYS.owner)];
    const first = await bob.pageOf("/approvals");
    expect(idsIn(first)).toHaveLength(HELD_LISTED_MAX);
    // As everything else the oldest first: what comes last is at the end.
    expect(idsIn(first).slice(-2)).toEqual([mine, also]);
    const next = /href="(\/approvals\?after=[^"]+)"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(new Set([...idsIn(first), ...idsIn(await bob.pageOf(next))]).size).toBe(HELD_LISTED_MAX + 7);

    const [flood = "", few = ""] = [...first.matchAll(/href="(\/approvals\?by=key_\w+)"/g)].map(([, path]) => path);
    expect(first.replaceAll(/<[^>]+>/g, "")).toMatch(
      new RegExp(`Everyone.*agent ${HELD_LISTED_MAX + 5}.*owner 2`, "s"),
    );
    expect(idsIn(await bob.pageOf(few))).toEqual([mine, also]);
    const alone = await bob.pageOf(flood);
    expect(alone).toContain(`${HELD_LISTED_MAX + 5} of ${HELD_LISTED_MAX + 7} awaiting approval`);
    const rest = /href="(\/approvals\?by=[^"]+after=[^"]+)"/.exec(alone)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(idsIn(await bob.pageOf(rest))).toHaveLength(5);
    for (const odd of words(`
      ?by=x ?by=key_nobody ?by=none ?after=9.x ?after=99999999999.act_x ?after=0.act_x ?after=turns~
      ?after=turns~key_x ?after=~~act_x~
    `)) {
      expect((await bob.context(`/approvals${odd}`)).status, odd).toBe(200);
    }
  });

  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("takes %s with a reason, as the person's, and tells of it on the list", async (decision, type) => {
    const id = await held();
    const fields = await ann.hiddenOf(`/approvals/${id}`);
    const response = await decide(id, { decision, reason: " Agreed.\r\n👍 " });
    expect([response.status, response.headers.get("location")]).toEqual([303, `/approvals?decided=${id}`]);
    const told = (await app.engine.events(id)).find((event) => event.type === type);
    expect(told).toEqual({ type, actor: `user:${ANN}`, reason: "Agreed.\n👍" });
    const after = await app.engine.get(id);
    expect(after.approvedBy).toBe(decision === "approve" ? `user:${ANN}` : null);
    const list = (await ann.pageOf(`/approvals?decided=${id}`)).replaceAll(/<[^>]+>/g, "");
    expect(list).toMatch(new RegExp(`${type} by ${ANN}`, "i"));
    // What is decided can't be decided again, and its page says what it has come to.
    const again = (await ann.pageOf(`/approvals/${id}`)).replaceAll(/<[^>]+>/g, "");
    expect(again).toContain("View receipt");
    expect(again).not.toContain("Add note");
    if (decision === "reject") expect(again).toContain("Cancelled");
    // A press of the same button again changes nothing. Whoever wanted the opposite learns that it did not count.
    const press = (other: string) => ann.send(`/approvals/${id}`, { ...fields, decision: other });
    expect((await press(decision)).status).toBe(303);
    const opposite = await press(decision === "approve" ? "reject" : "approve");
    expect([opposite.status, await opposite.text()]).toEqual([409, expect.stringContaining("no longer awaits this")]);
  });

  test("knows nothing of another account's requests", async () => {
    const id = await held({}, app, STRANGER);
    for (const path of [`/approvals/${id}`, "/approvals/act_nobody", "/approvals/nonsense"]) {
      expect((await ann.context(path)).status).toBe(404);
    }
    const fields = await ann.hiddenOf(`/approvals/${await held()}`);
    expect((await ann.send(`/approvals/${id}`, { ...fields, decision: "approve" })).status).toBe(404);
    expect(await ann.pageOf(`/approvals?decided=${id}`)).not.toContain("View receipt");
  });
});

test("the root leads whoever is logged in to the inbox", async () => {
  const response = await ann.context("/");
  expect([response.status, response.headers.get("location")]).toEqual([303, "/approvals"]);
});

describe("a note that comes after the end of the session", () => {
  const refused = async (email: string) => {
    const bob = await joined(app, "approver", email);
    const id = await held();
    const fields = {
      ...(await bob.hiddenOf(`/approvals/${id}`)),
      decision: "reject",
      reason: "Not without\na ticket.",
    };
    await bob.send("/auth/logout", fields);
    return { bob, id, path: `/approvals/${id}`, fields };
  };
  const noteAfterLogIn = async (html: string, email: string) => {
    const fields = { ...hiddenIn(html), email, password: ANN_PASSWORD };
    const entered = await browserOf(app, "").send("/auth/login", fields);
    const shown = await (await browserOf(app, sessionIn(entered)).follow(entered)).text();
    return { at: entered.headers.get("location"), note: /<textarea[^>]*name="reason"[^>]*>([^<]*)</.exec(shown)?.[1] };
  };

  test("is in the form again after the login, even the second one, and decides nothing by itself", async () => {
    const { bob, id, path, fields } = await refused("kept@example.com");
    const answer = await bob.send(`${path}?agent=ci`, fields);
    expect(answer.status).toBe(401);
    const html = await answer.text();
    expect(html).toContain("Not without");
    const email = "kept@example.com";
    const wrong = await bob.send("/auth/login", { ...hiddenIn(html), email, password: "wrong wrong" });
    const note = "Not without\na ticket.";
    expect(await noteAfterLogIn(await wrong.text(), email)).toEqual({ at: `${path}?agent=ci`, note });
    expect((await app.call("GET", `/v1/actions/${id}`)).json.status).toBe("awaiting_approval");
  });

  test("is shown to nobody else who logs in, and not taken from another site or with another request", async () => {
    const { bob, path, fields } = await refused("gone@example.com");
    const html = await (await bob.send(path, fields)).text();
    expect((await noteAfterLogIn(html, ANN)).note).toBe("");
    const other = await bob.send(`/approvals/${await held()}`, fields);
    expect((await noteAfterLogIn(await other.text(), "gone@example.com")).note).toBe("");
    const foreign = await bob.send(path, fields, { origin: "https://evil.example" });
    expect([foreign.status, await foreign.text()]).toEqual([303, ""]);
  });
});
