import { refusalOf } from "../actions/callers.ts";
import { hiddenIn } from "../support/forms.ts";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { INVITATION_MS_MAX } from "../../src/core/limits.ts";
import { Listener } from "../support/listener.ts";
import { Mailbox } from "../support/mailbox.ts";
import { openRealServer, type RealServer, type RealServerOptions } from "./real-server.ts";
import { ANN, ANN_PASSWORD, browserOf, joined, personOf, sessionIn, signedIn } from "./signed-in.ts";

const BOB = "bob@example.com";
const PASSWORD = ANN_PASSWORD;

let app: RealServer;
let ann: Awaited<ReturnType<typeof signedIn>>;

async function open(options: RealServerOptions = {}): Promise<void> {
  app = await openRealServer({ starts: false, ...options });
  ann = await signedIn(app);
}

beforeEach(() => open());

afterEach(() => app[Symbol.asyncDispose]());

const invite = async (email: string, role: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await app.call("POST", "/v1/invitations", { email, role }, headers);
  const { id, link } = answer.json;
  return { ...answer, id, path: URL.parse(link)?.pathname ?? "" };
};

/** Posts a form as a browser that has this cookie, or none. */
const post = (path: string, fields: Readonly<Record<string, string>>, cookie = "") =>
  browserOf(app, cookie).send(path, fields);

const people = async () => (await app.call("GET", "/v1/people")).json.data;

const idOf = (email: string) => personOf(app, email);

const auditText = async () => (await app.call("GET", "/v1/audit?limit=100")).text;

describe("an invitation", () => {
  test("shows its link once, and lets one person in with its role", async () => {
    const { status, path, text, id } = await invite(BOB, "approver");
    expect(status).toBe(201);
    expect(path).toMatch(/^\/join\/[0-9a-f]{64}$/);
    const token = path.slice("/join/".length);
    const listed = await app.call("GET", "/v1/invitations");
    expect(listed.text).toContain(id);
    expect(text).toContain(token);
    const html = await (await fetch(app.url + path)).text();
    for (const said of ["You are invited as", "approver", ANN, BOB]) expect(html).toContain(said);
    const bob = await joined(app, "reader", "other@example.com");
    const atOnce = await Promise.all([1, 2].map(() => post(path, { password: PASSWORD })));
    expect(atOnce.map((answer) => answer.status).toSorted((one, other) => one - other)).toEqual([303, 404]);
    expect((await people()).map(({ email, role }) => `${String(email)} ${String(role)}`).toSorted()).toEqual([
      `${ANN} owner`,
      `${BOB} approver`,
      "other@example.com reader",
    ]);
    expect((await fetch(app.url + path)).status).toBe(404);
    expect((await post(path, { password: PASSWORD })).status).toBe(404);
    expect((await app.call("GET", "/v1/invitations")).json.data).toEqual([]);
    // Neither lists, nor the log, nor the audit log have the token.
    for (const shown of [listed.text, await auditText(), JSON.stringify(app.lines), JSON.stringify(app.engine.lines)]) {
      expect(shown).not.toContain(token);
    }
    expect(await auditText()).toContain("member_joined");
    expect((await bob.context("/approvals")).status).toBe(200);
  });

  test("ends after seven days, and when it is withdrawn or made again", async () => {
    const first = await invite(BOB, "reader");
    const second = await invite(BOB.toUpperCase(), "reader");
    expect((await fetch(app.url + first.path)).status).toBe(404);
    expect((await app.call("DELETE", `/v1/invitations/${second.id}`)).status).toBe(204);
    expect((await app.call("DELETE", `/v1/invitations/${second.id}`)).status).toBe(404);
    expect((await post(second.path, { password: PASSWORD })).status).toBe(404);
    const third = await invite(BOB, "reader");
    app.engine.clock.advance(INVITATION_MS_MAX - 1);
    expect((await fetch(app.url + third.path)).status).toBe(200);
    app.engine.clock.advance(1);
    expect((await post(third.path, { password: PASSWORD })).status).toBe(404);
    expect(await people()).toHaveLength(1);
  });

  test("is refused for a member, a bad address and an unknown role, with every problem", async () => {
    const member = await invite(ANN.toUpperCase(), "reader");
    expect([member.status, member.json.error.details?.[0]?.field]).toEqual([400, "email"]);
    const bad = await app.call("POST", "/v1/invitations", `{"email":"nobody","role":"agent"}`);
    expect(bad.json.error.details?.map(({ field }) => field).toSorted()).toEqual(["email", "role"]);
  });

  test("of an address that has a login asks for its password, and for no other's", async () => {
    const { path } = await invite(BOB, "reader");
    const other = await app.engine.store.accounts.keys(app.strangerId, 1);
    expect(other).toHaveLength(1);
    // Bob has an account of his own.
    const own = await app.call("POST", "/auth/signup", { email: BOB, password: PASSWORD });
    expect(own.status).toBe(201);
    expect(await (await fetch(app.url + path)).text()).toContain("This address already has a login");
    const wrong = await post(path, { password: "not the password" });
    expect([wrong.status, (await wrong.text()).includes("Incorrect email or password")]).toEqual([401, true]);
    expect(await (await post(path, { password: "short" })).text()).toContain('id="password-problem"');
    expect((await post(path, { password: PASSWORD })).status).toBe(303);
    expect(await idOf(BOB)).not.toBe("");
  });

  test("counts wrong passwords as wrong logins", async () => {
    await app.call("POST", "/auth/signup", { email: BOB, password: PASSWORD });
    const { path } = await invite(BOB, "reader");
    const tried = [];
    for (let count = 0; count < 6; count += 1)
      tried.push((await post(path, { password: `wrong number ${count}` })).status);
    expect(tried).toEqual([401, 401, 401, 401, 401, 429]);
    expect((await post(path, { password: PASSWORD })).status).toBe(429);
  });

  test("is taken up by somebody who is logged in, and by nobody with another address", async () => {
    const { path } = await invite(BOB, "reader");
    const html = await ann.pageOf(path);
    expect(html).toContain("Log out, and open the link again");
    const refused = await ann.send(path, await ann.hiddenOf("/settings"));
    expect([refused.status, await idOf(BOB)]).toEqual([403, ""]);
    // Without the form token nobody who is logged in joins.
    expect((await post(path, { password: PASSWORD }, ann.cookie)).status).toBe(403);
    expect((await post(path, { password: PASSWORD })).status).toBe(303);
  });
});

test("a mail carries the link of an invitation by the outbox, and none is sent for one that is withdrawn", async () => {
  await app[Symbol.asyncDispose]();
  await using mailbox = new Mailbox();
  await open({ env: mailbox.env, starts: true });
  const { json, path } = await invite(BOB, "approver");
  expect(json).toMatchObject({ mailed: true });
  const [mail] = await mailbox.took(1);
  expect(mail?.fields).toMatchObject({ to: BOB, subject: "Invitation to Outgate at 127.0.0.1:3000" });
  for (const part of [mail?.fields["text"], mail?.fields["html"]]) {
    expect(part).toContain(path);
    expect(part).toContain(ANN);
    expect(part).toContain("Approver (can read, approve and reject)");
  }
  expect(mail?.fields["v:action_id"]).toBeUndefined();
  // Nothing that is stored has the token.
  const [row] = await app.engine.store.outbox.list(app.engine.owner.accountId, null, 1);
  expect(JSON.stringify(row)).not.toContain(path.slice("/join/".length));
  expect(await ann.pageOf("/settings/notifications")).toContain("Invitation email");
});

describe("a role", () => {
  test("decides what a person may do on the pages, and what they are shown", async () => {
    const { id } = await app.engine.create({
      approve: true,
      headers: { Authorization: "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc" },
    });
    const [approver, reader] = [await joined(app, "approver", BOB), await joined(app, "reader", "eve@example.com")];
    const owners = [
      "/keys",
      "/keys/new",
      "/settings/people",
      "/settings/pauses",
      "/settings/signing-secret",
      "/settings/rules/new",
      "/audit",
    ];
    for (const [who, inbox] of [
      [approver, true],
      [reader, false],
    ] as const) {
      for (const path of owners.filter((one) => one !== "/settings/signing-secret")) {
        const answer = await who.context(path);
        expect(answer.status, path).toBe(403);
      }
      for (const path of [
        "/overview",
        "/approvals",
        "/actions",
        `/actions/${id}`,
        "/settings",
        "/settings/login",
        "/settings/rules",
      ]) {
        const answer = await who.context(path);
        const html = await answer.text();
        expect(answer.status, path).toBe(200);
        expect(html).not.toContain(`href="/keys"`);
        expect(html).not.toContain("4eC39HqLyjWDarjtT1zdp7dc");
        if (path.startsWith("/ap") || path.includes(id)) {
          expect(html.includes(`value="approve"`), path).toEqual(inbox);
          expect(html.includes("/reveal"), path).toEqual(inbox);
        }
      }
    }
    // Services ask for the role, whatever calls them: test/http/roles.test.ts.
    const forms = [
      ["/keys", { name: "x", role: "owner", hold: "none" }],
      [`/settings/people/${await idOf(BOB)}/role`, { role: "owner" }],
      ["/settings/rules", { name: "All", effect: "hold" }],
      [`/actions/${id}/edit`, { sure: "yes" }],
    ] as const;
    for (const [path, fields] of forms) {
      for (const who of [approver, reader]) {
        expect((await who.press(path, fields)).status, path).toBe(403);
      }
    }
    const decision = { ...hiddenIn(await (await approver.context(`/approvals/${id}`)).text()), decision: "approve" };
    expect((await reader.press(`/actions/${id}/reveal`)).status).toBe(403);
    expect((await reader.press(`/approvals/${id}`, decision)).status).toBe(403);
    expect(await (await reader.context(`/approvals/${id}`)).text()).not.toContain(`value="approve"`);
    expect((await app.engine.get(id)).status).toBe("awaiting_approval");
    expect((await approver.press(`/approvals/${id}`, decision)).status).toBe(303);
    // The decision names the person.
    expect(await app.engine.get(id)).toMatchObject({ approvedBy: `user:${BOB}` });
  });

  test("changes at once, on open pages too", async () => {
    const bob = await joined(app, "owner", BOB);
    expect((await bob.context("/keys")).status).toBe(200);
    await using stream = await Listener.open(`${app.url}/events`, { cookie: bob.cookie });
    await stream.heard((heard) => heard.others.length > 0);
    for (const _time of [1, 2]) {
      const changed = await app.call("PATCH", `/v1/people/${await idOf(BOB)}`, `{"role":"reader"}`);
      expect([changed.status, changed.json]).toMatchObject([200, { email: BOB, role: "reader" }]);
    }
    expect(await stream.over()).toBe("closed");
    expect((await bob.context("/keys")).status).toBe(403);
    // The second change changed nothing.
    expect((await auditText()).match(/"kind":"member_role_changed"/g)).toHaveLength(1);
  });

  test("of the last owner stays, and so does the last owner", async () => {
    const id = await idOf(ANN);
    for (const [method, body] of [
      ["PATCH", `{"role":"reader"}`],
      ["DELETE", undefined],
    ] as const) {
      const answer = await app.call(method, `/v1/people/${id}`, body);
      expect([answer.status, answer.json.error.code]).toEqual([409, "last_owner"]);
    }
    const left = await ann.send("/settings/login/leave", { ...(await ann.hiddenOf("/settings/login")), sure: "yes" });
    expect([left.status, (await left.text()).includes("only owner")]).toEqual([409, true]);
    expect(await people()).toHaveLength(1);
  });

  test("who is invited approves unless another role is chosen", async () => {
    expect(await ann.pageOf("/settings/people")).toMatch(/value="approver" required="" checked/);
  });
});

test("somebody who has lost the account since their request began changes nobody in it", async () => {
  await post((await invite(BOB, "owner")).path, { password: PASSWORD });
  const { owner, services } = app.engine;
  const late = { ...owner, keyId: null, personId: "per_gone", actor: "user:eve@example.com" } as const;
  const bob = await idOf(BOB);
  const lowered = await refusalOf(services.teamService.changeRole(late, bob, "reader"));
  const removed = await refusalOf(services.teamService.remove(late, bob));
  expect([lowered?.code, removed?.code]).toEqual(["forbidden", "forbidden"]);
  expect(await people()).toContainEqual(expect.objectContaining({ email: BOB, role: "owner" }));
});

describe("somebody who is removed", () => {
  test("has no session in the account any more, here and on other nodes, and their streams end", async () => {
    const bob = await joined(app, "approver", BOB);
    await using stream = await Listener.open(`${app.url}/events`, { cookie: bob.cookie });
    await stream.heard((heard) => heard.others.length > 0);
    expect((await app.call("DELETE", `/v1/people/${await idOf(BOB)}`)).status).toBe(204);
    expect(await stream.over()).toBe("closed");
    expect((await bob.context("/approvals")).headers.get("location")).toStartWith("/login");
    expect((await post("/auth/login", { email: BOB, password: PASSWORD })).status).toBe(401);
    // Their address is free again.
    await joined(app, "reader", BOB);
  });

  test("is asked by no channel any more", async () => {
    await joined(app, "approver", BOB);
    const channelOf = (...to: readonly string[]) => app.call("POST", "/v1/channels", { name: "ops", kind: "mail", to });
    const both = (await channelOf(BOB.toUpperCase(), "eve@example.com")).json;
    await channelOf(BOB);
    await app.call("DELETE", `/v1/people/${await idOf(BOB)}`);
    const { data } = (await app.call("GET", "/v1/channels")).json;
    expect(data).toEqual([{ ...both, to: ["eve@example.com"] }]);
    const { accountId } = app.engine.owner;
    expect(app.engine.known.channels.of(accountId)).toMatchObject([{ id: both.id, to: ["eve@example.com"] }]);
    await app.call("DELETE", `/v1/channels/${both.id}`);
  });

  test("leaves by their own wish, when they confirm it", async () => {
    const bob = await joined(app, "reader", BOB);
    expect((await bob.press("/settings/login/leave")).status).toBe(400);
    const left = await bob.press("/settings/login/leave", { sure: "yes" });
    expect([left.status, left.headers.get("location")]).toEqual([303, "/login"]);
    expect(await people()).toHaveLength(1);
    expect(await auditText()).toContain("member_left");
  });
});

describe("a person of several accounts", () => {
  /** Bob owns an account of his own and is a reader of Ann's. */
  async function bobOfBoth() {
    const signUp = await app.call("POST", "/auth/signup", { email: BOB, password: PASSWORD });
    const { account } = signUp.json;
    const { path } = await invite(BOB, "reader");
    const entered = await post(path, { password: PASSWORD });
    const cookie = sessionIn(entered);
    /** Opens a stream of this session, and says whether it has ended. */
    const watch = async () => {
      const watched = await app.engine.services.sessionService.watchSession(cookie.slice(cookie.indexOf("=") + 1));
      return () => watched?.caller.revoked?.aborted;
    };
    return { own: account.id, shared: app.engine.owner.accountId, bob: browserOf(app, cookie), watch };
  }

  test("switches between them, and to no other", async () => {
    const { own, shared, bob, watch } = await bobOfBoth();
    const hasEnded = await watch();
    expect((await bob.context("/keys")).status).toBe(403);
    // The navigation offers the other one by the address of its first person, as a form that needs no script.
    const menu =
      /<details class="menu account-menu">.*?<\/details>/s.exec(await (await bob.context("/overview")).text())?.[0] ??
      "";
    expect(menu).toMatch(
      new RegExp(`action="/settings/login/account".*value="${own}".*Account of bob@example.com`, "s"),
    );
    expect(menu).not.toContain(`value="${shared}"`);
    for (const account of [app.strangerId, "acc_nowhere", "", "../x"]) {
      expect((await bob.press("/settings/login/account", { account })).status).toBe(404);
    }
    expect(hasEnded()).toBe(false);
    expect((await bob.press("/settings/login/account", { account: own })).status).toBe(303);
    expect(hasEnded()).toBe(true);
    expect((await bob.context("/keys")).status).toBe(200);
    expect((await bob.press("/settings/login/account", { account: shared })).status).toBe(303);
    expect((await bob.context("/keys")).status).toBe(403);
  });

  test("tells them apart by the names that owners gave them, as text", async () => {
    const { own, shared, bob } = await bobOfBoth();
    const name = `<b>Acme</b>\u202e & Co`;
    const patched = await app.call("PATCH", "/v1/account", { name });
    expect(patched.status).toBe(200);
    expect((await bob.context("/keys")).status).toBe(403);
    const seen = async (path: string) => (await bob.context(path)).text();
    const menu = /<details class="menu account-menu">.*?<\/details>/s.exec(await seen("/overview"))?.[0] ?? "";
    expect(menu).toContain("&lt;b&gt;Acme&lt;/b&gt;");
    expect(menu).not.toContain("\u202e");
    expect(menu).toContain("Account of bob@example.com");
    const page = await seen("/settings/login");
    expect(page).toContain("&lt;b&gt;Acme&lt;/b&gt;");
    // A reader sees it, and can't change it.
    expect(page).not.toContain('action="/settings/login/name"');
    expect((await bob.press("/settings/login/name", { name: "Mine" })).status).toBe(403);
    expect((await bob.press("/settings/login/account", { account: own })).status).toBe(303);
    expect(await seen("/settings/login")).toContain('action="/settings/login/name"');
    expect((await bob.press("/settings/login/name", { name: "  Bob & Sons " })).status).toBe(303);
    expect(await seen("/settings/login")).toContain('value="Bob &amp; Sons"');
    const refused = await bob.press("/settings/login/name", { name: "x".repeat(81) });
    expect(refused.status).toBe(400);
    const again = await refused.text();
    expect(again).toContain(`value="${"x".repeat(81)}"`);
    expect(again).toMatch(/name|characters/i);
    expect((await bob.press("/settings/login/name", { name: " " })).status).toBe(303);
    expect(await seen("/settings/login")).toContain("Account of");
    expect((await bob.press("/settings/login/account", { account: shared })).status).toBe(303);
    // Whoever is invited reads the name in quotes, beside the address of the account.
    const { path } = await invite("eve@example.com", "reader");
    const join = await (await fetch(`${app.url}${path}`)).text();
    expect(join.replaceAll(/<[^>]+>/g, "")).toMatch(/to “&lt;b&gt;Acme&lt;\/b&gt;.* &amp; Co”/);
    await app.call("PATCH", "/v1/account", { name: "" });
  });

  test("logs in to the one that they used last", async () => {
    const { own, bob } = await bobOfBoth();
    const { clock } = app.engine;
    const accountOf = async () => {
      const { json } = await app.call("POST", "/auth/login", { email: BOB, password: PASSWORD });
      return json.account.id;
    };
    expect(await accountOf()).toBe(app.engine.owner.accountId);
    const { form_token = "" } = await bob.hiddenOf("/settings/login");
    clock.advance(1_000);
    await post("/settings/login/account", { form_token, account: own }, bob.cookie);
    expect(await accountOf()).toBe(own);
  });

  test("changes nothing in one by a form that was loaded in another", async () => {
    const { own, shared, bob } = await bobOfBoth();
    await bob.press("/settings/login/account", { account: own });
    const { form_token = "" } = await bob.hiddenOf("/settings/login");
    await bob.press("/settings/login/account", { account: shared });
    const stale = await post("/settings/login/leave", { form_token, sure: "yes" }, bob.cookie);
    expect([stale.status, (await stale.text()).includes("of another account")]).toEqual([403, true]);
    expect(await idOf(BOB)).not.toBe("");
  });

  test("who is removed from one keeps the other, and comes back by another invitation", async () => {
    const { own, shared, bob, watch } = await bobOfBoth();
    await bob.press("/settings/login/account", { account: own });
    await app.call("DELETE", `/v1/people/${await idOf(BOB)}`);
    expect((await bob.context("/keys")).status).toBe(200);
    expect((await bob.press("/settings/login/account", { account: shared })).status).toBe(404);
    const { path } = await invite(BOB, "reader");
    const hidden = await bob.hiddenOf("/settings");
    const hasEnded = await watch();
    const atOnce = await Promise.all([1, 2].map(() => bob.send(path, hidden)));
    const [entered, refused = 0] = atOnce.map(({ status }) => status).toSorted((one, other) => one - other);
    expect(entered).toBe(303);
    // 403 if the session was in the new account by the time at which the second form had arrived.
    expect([403, 404]).toContain(refused);
    expect(hasEnded()).toBe(true);
    // The session is in the other account, whose log has it.
    expect((await bob.context("/keys")).status).toBe(403);
    expect((await app.call("GET", "/v1/audit?kind=member_joined")).json.data).toHaveLength(2);
  });
});

describe("the sessions of a person", () => {
  test("are listed with address, browser and times, and ended one by one or all but this one", async () => {
    const logIn = async (browser: string) => {
      const login = { email: ANN, password: ANN_PASSWORD };
      return browserOf(app, sessionIn(await app.call("POST", "/auth/login", login, { "user-agent": browser })));
    };
    const [phone, laptop] = [await logIn("Phone\u00e9 <b>1"), await logIn("Laptop 2")];
    const html = await ann.pageOf("/settings/login");
    for (const said of ["Phone &lt;b&gt;1", "Laptop 2", "127.0.0.1", "This one"]) expect(html).toContain(said);
    const named = [...html.matchAll(/<button[^>]*>End<span class="visually-hidden">(.*?)<\/span><\/button>/g)];
    expect(new Set(named.map(([, name]) => name)).size).toBe(2);
    const ids = [...html.matchAll(/name="id" value="([0-9a-f]{32})"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(2);
    // Not the hash by which the store knows it.
    await ann.press("/settings/login/sessions", { id: ids[0] ?? "" });
    const ended = async () =>
      (await Promise.all([phone, laptop].map(async (one) => (await one.context("/approvals")).status))).filter(
        (status) => status === 303,
      ).length;
    expect(await ended()).toBe(1);
    await ann.press("/settings/login/sessions", { id: "f".repeat(32) });
    expect(await ended()).toBe(1);
    const live = (await phone.context("/approvals")).status === 200 ? phone : laptop;
    await using stream = await Listener.open(`${app.url}/events`, { cookie: live.cookie });
    await ann.press("/settings/login/sessions", { id: "" });
    expect(await ended()).toBe(2);
    expect(await stream.over()).toBe("closed");
    expect((await ann.context("/approvals")).status).toBe(200);
    expect(await auditText()).toContain("sessions_ended");
  });

  test("are nobody else's", async () => {
    const bob = await joined(app, "owner", BOB);
    const html = await ann.pageOf("/settings/login");
    expect(html).not.toContain("End<");
    expect((await bob.press("/settings/login/sessions", { id: "" })).status).toBe(303);
    expect((await ann.context("/approvals")).status).toBe(200);
  });
});

describe("what somebody made who may no longer manage the account", () => {
  const EVE = "eve@example.com";

  const listOf = async (path: string) =>
    (await app.call("GET", path)).json.data as unknown as readonly { readonly id: string; readonly void: boolean }[];

  /** Bob is an owner who made a key and invited Eve as another owner. */
  async function bobMade() {
    const bob = await joined(app, "owner", BOB);
    await bob.press("/keys", { name: "of-bob", role: "owner", hold: "none" });
    const bobId = await idOf(BOB);
    const [key] = await listOf(`/v1/keys?created_by=${bobId}`);
    expect(await (await bob.press("/settings/people", { email: EVE, role: "owner" })).text()).toContain("/join/");
    const [invitation] = await listOf("/v1/invitations");
    const path = `/join/${app.engine.secrets.invitationToken(invitation?.id ?? "")}`;
    return { bobId, keyId: key?.id ?? "", invitationId: invitation?.id ?? "", path };
  }

  test.each(["removed", "lowered"])("is void or listed with one press to void, once they are %s", async (how) => {
    const { bobId, keyId, invitationId, path } = await bobMade();
    expect(await ann.pageOf("/settings/people")).not.toContain("Keys to check");
    expect((await fetch(app.url + path)).status).toBe(200);
    const hidden = await ann.hiddenOf("/settings/people");
    const press = (at: string, fields: Readonly<Record<string, string>> = {}) => ann.send(at, { ...hidden, ...fields });
    const done =
      how === "removed"
        ? await press(`/settings/people/${bobId}/remove`)
        : await press(`/settings/people/${bobId}/role`, { role: "approver" });
    expect(done.headers.get("location")).toBe("/settings/people");
    // The link lets nobody in, and no list of open invitations has it.
    expect((await fetch(app.url + path)).status).toBe(404);
    expect((await post(path, { password: PASSWORD })).status).toBe(404);
    expect(await listOf("/v1/invitations")).toEqual([]);
    expect(await listOf(`/v1/invitations?created_by=${bobId}`)).toMatchObject([{ id: invitationId, void: true }]);
    expect(await listOf(`/v1/keys?created_by=${bobId}`)).toMatchObject([{ id: keyId, created_by: `user:${BOB}` }]);
    for (const at of ["/settings/people", "/keys"]) {
      const html = await ann.pageOf(at);
      expect(html).toContain("Keys to check");
      expect(html).toContain(`action="/keys/${keyId}/revoke"`);
    }
    expect(await ann.pageOf("/settings/people")).toContain(`action="/settings/invitations/${invitationId}/withdraw"`);
    await press(`/keys/${keyId}/revoke`);
    await press(`/settings/invitations/${invitationId}/withdraw`);
    const after = await ann.pageOf("/settings/people");
    for (const gone of ["Keys to check", "Void invitations", EVE]) expect(after).not.toContain(gone);
    expect(await listOf(`/v1/keys?created_by=${bobId}`)).toMatchObject([{ revoked_by: `user:${ANN}` }]);
  });

  test.each([
    ["revoked", true],
    ["replaced and revoked", false],
  ])("by an owner key is found when it is %s", async (how, isVoid) => {
    const keyOf = async (body: object, key?: string) => (await app.call("POST", "/v1/keys", body, key)).json;
    const boss = await keyOf({ name: "boss", role: "owner" });
    const child = await keyOf({ name: "child", role: "agent" }, boss.key);
    const { path } = await invite(EVE, "owner", { authorization: `Bearer ${boss.key ?? ""}` });
    if (!isVoid) await keyOf({ name: "next", role: "owner", replaces: boss.id });
    const { status, json } = await app.call("DELETE", `/v1/keys/${boss.id}`);
    expect({ status, json }, how).toMatchObject({ status: 200, json: { revoked_by: "key:owner", created_keys: 1 } });
    expect((await fetch(app.url + path)).status).toBe(isVoid ? 404 : 200);
    expect(await listOf(`/v1/keys?created_by=${boss.id}`)).toMatchObject([{ id: child.id, created_by: "key:boss" }]);
    expect(await listOf(`/v1/invitations?created_by=${boss.id}`)).toMatchObject([{ email: EVE, void: isVoid }]);
    expect(await listOf(`/v1/invitations?created_by=${child.id}`)).toEqual([]);
    const page = await ann.pageOf("/keys");
    expect(page.includes(`action="/keys/${child.id}/revoke"`)).toBe(isVoid);
    await app.call("DELETE", `/v1/keys/${child.id}`);
    expect((await app.call("DELETE", `/v1/keys/${boss.id}`)).json).toMatchObject({ created_keys: 0 });
  });
});
