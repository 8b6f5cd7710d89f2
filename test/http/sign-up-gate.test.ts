import { pressLink } from "../support/forms.ts";
import { CONFIRM_PASSWORD_FIELD } from "../../src/ui/form.tsx";
import type { SignUps } from "../../src/config/values.ts";
import { describe, expect, test } from "bun:test";
import { fresh } from "../support/shared.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { browserOf, signedIn, sessionIn } from "./signed-in.ts";
import { KEYS, OWN_ORIGIN } from "./stub-server.ts";

let target: Target;

// The first that comes is the callback of what is held: it fails, and is due again.
fresh(() => (target = new Target(500, 200)));

const PASSWORD = "correct horse battery";

const FORM = { "content-type": "application/x-www-form-urlencoded", origin: OWN_ORIGIN };

/** Somebody who signs up as anybody on the machine can: with a session and an owner key of an account of their own. */
async function signUp(app: RealServer, email: string) {
  const answer = await app.call("POST", "/auth/signup", { email, password: PASSWORD });
  const json = answer.json as { api_key?: string; account?: { id: string }; error?: { message: string } };
  return {
    status: answer.status,
    json,
    cookie: sessionIn(answer),
    key: json.api_key ?? "",
    id: json.account?.id ?? "",
  };
}

const send = (app: RealServer, key: string, body: object = {}) =>
  app.call("POST", "/v1/actions", { url: target.url, ...body }, key);

const holdBy = (app: RealServer) => app.call("POST", "/v1/keys", { name: "agent", role: "agent", hold: "all" });

const open = (signUps: SignUps = "until_hold") => openRealServer({ signUps });

describe("an agent whose calls are held", () => {
  test("that signs up afterwards gets no account, by the API and by the page, and is told why", async () => {
    await using app = await open();
    expect((await holdBy(app)).status).toBe(201);
    const words = "a key of the first account has a hold";
    const refused = await signUp(app, "eve@example.com");
    expect(refused).toMatchObject({ status: 403, key: "" });
    expect(refused.json.error?.message).toContain(words);
    for (const init of [{}, { method: "POST", headers: FORM, body: "email=eve%40example.com&password=12345678" }]) {
      const page = await fetch(`${app.url}${"method" in init ? "/auth/signup" : "/signup"}`, init);
      expect(page.status).toBe(403);
      const text = await page.text();
      expect(text).toContain(words);
      expect(text).toContain("SIGNUPS=open");
    }
    expect(await (await fetch(`${app.url}/login`)).text()).not.toContain("Sign up");
    expect(await app.engine.store.people.find("eve@example.com")).toBeNull();
  });

  test("that signed up before is refused by key, and what its account had pending does not leave", async () => {
    await using app = await open();
    const eve = await signUp(app, "eve@example.com");
    // One that waits for its next attempt, one that waits for a pause of its own, and a callback that is owed.
    const { clock, store } = app.engine;
    const refusing = "http://127.0.0.1:9/";
    const retrying = (await send(app, eve.key, { url: refusing, callback: `${refusing}callback` })).json.id;
    const { json: pause } = await app.call("POST", "/v1/pauses", "{}", eve.key);
    const paused = (await send(app, eve.key)).json.id;
    const held = (await send(app, eve.key, { approve: true, callback: target.url })).json.id;
    await until(() => target.received.length === 1);
    const called = target.received.length;
    expect((await holdBy(app)).status).toBe(201);

    for (const [method, path, body] of [
      ["POST", "/v1/actions", JSON.stringify({ url: target.url })],
      ["GET", "/v1/actions", undefined],
      ["POST", `/v1/actions/${held}/approve`, "{}"],
      ["DELETE", `/v1/pauses/${pause.id}`, undefined],
      ["POST", "/v1/keys", `{"name":"x","role":"owner"}`],
      ["POST", `/v1/accounts/${eve.id}/allow`, undefined],
    ] as const) {
      const answer = await app.call(method, path, body, eve.key);
      expect({ status: answer.status, code: answer.json.error.code }, path).toEqual({ status: 403, code: "forbidden" });
      expect(answer.json.error.message).toContain(`outgate accounts allow ${eve.id}`);
    }
    // Whoever has the session looks, and sends nothing: neither by an approval, nor by ending a pause, nor anew.
    const browser = browserOf(app, eve.cookie);
    expect(await browser.pageOf(`/actions/${paused}`)).toContain(
      "An owner of the first account of this service has to allow it.",
    );
    for (const [path, fields] of [
      [`/approvals/${held}`, { decision: "approve" }],
      [`/actions/${retrying}/edit`, { sure: "yes" }],
      [`/settings/pauses/${pause.id}/resume`, {}],
      ["/keys", { name: "x", role: "owner", hold: "none" }],
    ] as const) {
      const answer = await browser.press(path, { ...fields, [CONFIRM_PASSWORD_FIELD]: PASSWORD });
      expect(answer.status, path).toBe(403);
      expect(await answer.text()).toContain("is stopped");
    }
    const { approve } = await app.linksOf(held).catch(() => ({ approve: null }));
    if (approve !== null) await pressLink(app.url + approve, { decision: "approve" });
    // Nor does time release anything, nor what memory has forgotten.
    await store.pauses.end(eve.id, pause.id, pauseEnd(app));
    for (let hours = 0; hours < 5; hours += 1) {
      clock.advance(3_600_000);
      await app.engine.pauseService.reconcile();
      await Bun.sleep(20);
    }
    expect(target.received.length).toBe(called);
    const notSent = await store.actions.find(eve.id, paused);
    expect(notSent).toMatchObject({ status: "pending", attempts: 0 });

    // The owner of the first account sees it, and lets it go on.
    const list = await app.call("GET", "/v1/accounts");
    expect(list.json.data[0]).toMatchObject({ id: eve.id, email: "eve@example.com", stopped: true, first: false });
    for (const key of [KEYS.agent, KEYS.approver, KEYS.reader]) {
      expect((await app.call("POST", `/v1/accounts/${eve.id}/allow`, undefined, key)).status).toBe(403);
    }
    for (const _twice of [1, 2]) {
      expect((await app.call("POST", `/v1/accounts/${eve.id}/allow`)).status).toBe(204);
    }
    await until(() => target.received.length > called);
    expect((await send(app, eve.key)).status).toBe(201);
    const log = (await app.call("GET", "/v1/audit?kind=account_allowed&kind=signups_closed")).json.data;
    expect(log).toMatchObject([{ kind: "account_allowed", subject: eve.id }, { kind: "signups_closed" }]);
  });

  test("finds the same at a start where settings ask for approval", async () => {
    for (const closedBy of ["APPROVERS", "AGENT_APPROVAL", "SIGNUPS", "HOST"] as const) {
      await using app = await open({ closedBy });
      const { accounts } = app.engine.store;
      expect(await app.signUpGate.enforce()).toContain("1 account that was signed up before is stopped");
      await app.engine.known.paused.reload();
      expect((await signUp(app, "eve@example.com")).status).toBe(403);
      expect(await accounts.list(9)).toMatchObject([{ id: app.strangerId, isStopped: true }, { isFirst: true }]);
    }
  });
});

describe("sign-ups", () => {
  test("stay open for a first look: keys without a hold, and holds of other accounts, close nothing", async () => {
    await using app = await open();
    await app.call("POST", "/v1/keys", `{"name":"ci","role":"agent"}`);
    const eve = await signUp(app, "eve@example.com");
    await app.call("POST", "/v1/keys", `{"name":"x","role":"agent","hold":"all"}`, eve.key);
    expect((await signUp(app, "bob@example.com")).status).toBe(201);
    expect((await send(app, eve.key)).status).toBe(201);
  });

  test("that somebody opens by the setting stay open, and who came by them is not stopped later", async () => {
    await using app = await open("open");
    const eve = await signUp(app, "eve@example.com");
    await holdBy(app);
    expect((await signUp(app, "bob@example.com")).status).toBe(201);
    expect((await send(app, eve.key)).status).toBe(201);
    await app.engine.store.accounts.stopOthers({ at: app.engine.clock.now(), reason: "x" });
    await app.engine.known.paused.reload();
    expect((await send(app, eve.key)).status).toBe(201);
  });

  test("that have closed stay closed when the key with the hold is revoked", async () => {
    await using app = await open();
    const { json } = await holdBy(app);
    await app.call("DELETE", `/v1/keys/${json.id}`);
    expect((await signUp(app, "eve@example.com")).status).toBe(403);
  });

  test("are told of on the pages: with the key that closes them, and in the settings of the first account alone", async () => {
    await using app = await open();
    const eve = await signUp(app, "eve@example.com");
    const ann = await signedIn(app);
    const key = { name: "agent", role: "agent", hold: "writes", scope: "own", replaces: "" };
    const made = await ann.press("/keys", key);
    expect(await made.text()).toContain("Sign-ups are closed: a key of the first account has a hold");
    expect(await ann.pageOf("/settings/server")).toContain("/settings/accounts");
    const accounts = await ann.pageOf("/settings/accounts");
    expect(accounts).toContain("eve@example.com");
    expect(accounts).toContain("Stopped");
    const theirs = browserOf(app, eve.cookie);
    expect(await theirs.pageOf("/settings/server")).not.toContain("/settings/accounts");
    expect((await theirs.context("/settings/accounts")).status).toBe(403);
    expect((await ann.press(`/settings/accounts/${eve.id}/allow`)).status).toBe(303);
    expect((await send(app, eve.key)).status).toBe(201);
  });
});

function pauseEnd(app: RealServer) {
  const at = app.engine.clock.now();
  const audit = {
    at,
    accountId: "acc",
    actor: "system",
    kind: "resumed",
    subject: "",
    client: "",
    detail: {},
  } as const;
  return { at, by: "system", audit } as const;
}
