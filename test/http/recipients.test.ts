import { pressLink } from "../support/forms.ts";
import { describe, expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { CALLBACK_HOSTS_MAX } from "../../src/core/limits.ts";
import type { Hold, Role } from "../../src/core/roles.ts";
import { eventually } from "../support/eventually.ts";
import { Mailbox } from "../support/mailbox.ts";
import { testSecrets } from "../support/store.ts";
import { type Received, Target } from "../support/target.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { ANN, joined, personOf, signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";
import { runStatements } from "../../db/commands/command.ts";

const BOB = "bob@example.com";

/** A key of the owner's account, as its owner makes it. */
async function keyOf(app: RealServer, role: Role, hold: Hold) {
  return (await app.call("POST", "/v1/keys", { name: `${role} ${hold}`, role, hold })).json.key;
}

const create = (app: RealServer, key: string, body: object) =>
  app.call("POST", "/v1/actions", { url: "http://127.0.0.1:9/", ...body }, key);

/** What a secret makes of what was received. */
function signatureOf(received: Received | undefined, secret: string): string {
  const [id = "", seconds] = ["webhook-id", "webhook-timestamp"].map((name) => received?.headers.get(name) ?? "");
  return testSecrets.sign([secret], { id, timestampSeconds: Number(seconds), body: received?.body ?? "" });
}

const listHost = (app: RealServer, host: string) => app.call("POST", "/v1/callback-hosts", { host });

const attacker = await shared(new Target());

describe("callbacks of a key with a hold", () => {
  test("go to a listed host, and no further than its port, with a signature that no call has", async () => {
    await using hooks = new Target();
    await using other = await openRealServer();
    const key = await keyOf(other, "agent", "all");
    const origin = new URL(hooks.url).origin;
    expect((await listHost(other, new URL(hooks.url).host)).status).toBe(200);
    expect((await create(other, key, { callback: `${attacker.url}steal` })).status).toBe(400);
    const ann = await signedIn(other);
    const { json } = await create(other, key, { callback: `${hooks.url}news`, notify: { email: ANN } });
    await hooks.saw(1);
    const [held] = hooks.received;
    const secretOf = async (use: string) =>
      (await other.call("GET", `/v1/signing-secret?origin=${origin}&for=${use}`)).json.secret;
    const calls = await secretOf("calls");
    expect(held?.headers.get("webhook-signature")).toBe(signatureOf(held, await secretOf("callbacks")));
    expect(signatureOf(held, await secretOf("callbacks"))).not.toBe(signatureOf(held, calls));
    expect(JSON.parse(held?.body ?? "")).toMatchObject({ type: "action.awaiting_approval", data: { id: json.id } });
    // The inbox, the held page and the page of the link say where news goes, and never that nothing was sent.
    const { approve } = await other.linksOf(json.id);
    for (const path of ["/approvals", `/approvals/${json.id}`, `/actions/${json.id}`, approve]) {
      const html = await ann.pageOf(path);
      expect(html).toContain("/news");
      expect(html).not.toContain("Nothing has been sent");
    }
  });
});

test("origins that got callbacks before callbacks had secrets of their own have the secret of calls beside it", async () => {
  await using app = await openRealServer({ starts: false });
  const { owner, clock, folder } = app.engine;
  const until = new Date(clock.now().getTime() + 1_000);
  const file = openFile(`${folder}/outgate.db`);
  const insert = "INSERT INTO callback_overlaps (account_id, origin, until) VALUES (?, ?, ?)";
  await runStatements(file, [{ sql: insert, args: [owner.accountId, "https://a.example", until.getTime()] }]);
  await file.close();
  const path = "/v1/signing-secret?origin=https://a.example";
  const { secret } = (await app.call("GET", path)).json;
  const { previous } = (await app.call("GET", `${path}&for=callbacks`)).json;
  expect(previous).toEqual({ secret, expires_at: until.toISOString() });
});

describe("who may be asked by mail", () => {
  test("an agent names nobody but people of its account; a held key of an owner neither", async () => {
    await using mailbox = new Mailbox();
    await using app = await openRealServer({ env: mailbox.env });
    await signedIn(app);
    const asking = (email: string) => ({ approve: true, notify: { email } });
    const bound = [KEYS.agent, await keyOf(app, "agent", "all"), await keyOf(app, "owner", "writes")];
    for (const key of bound) {
      const { status, json } = await create(app, key, asking("agent@evil.example"));
      expect({ status, code: json.error.code }).toEqual({ status: 400, code: "validation_error" });
      expect(json.error.details).toMatchObject([
        { field: "notify.email", message: expect.stringContaining("add it to APPROVERS") },
      ]);
      expect((await create(app, key, asking(ANN.toUpperCase()))).status).toBe(201);
    }
    expect((await create(app, KEYS.owner, asking("anybody@example.org"))).status).toBe(201);
    expect((await create(app, STRANGER, asking(ANN))).status).toBe(201);
    const mails = await mailbox.took(bound.length + 2);
    expect(mails.map(({ fields }) => fields["to"])).not.toContain("agent@evil.example");
  });

  test("is asked again before a mail leaves and before a link decides: who has left is sent nothing", async () => {
    await using mailbox = new Mailbox();
    await using app = await openRealServer({ env: mailbox.env });
    await signedIn(app);
    const { engine } = app;
    const { id } = (await create(app, KEYS.agent, { approve: true, notify: { email: ANN } })).json;
    await mailbox.took(1);
    const { approve } = await app.linksOf(id);
    const file = openFile(`${engine.folder}/outgate.db`);
    await runStatements(file, [{ sql: "DELETE FROM members", args: [] }]);
    await file.close();
    // The link that lies in the mailbox leads to the receipt and decides nothing.
    const pressed = await pressLink(app.url + approve, { decision: "approve" });
    expect(pressed.headers.get("location")).toStartWith("/r/");
    expect((await engine.get(id)).status).toBe("awaiting_approval");
    await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${id}/retry`);
    const told = await engine.told(id, "mail", 3);
    for (const one of told.slice(1)) {
      expect(one).toMatchObject({ delivered: false, error: expect.stringContaining("neither of a person") });
    }
    expect(mailbox.posted).toHaveLength(1);
  });
});

test("the links of a mail are our own address's, whatever a request says of hosts", async () => {
  const held = '{"url":"http://127.0.0.1:9/","approve":true,"notify":{"email":"boss@example.com"}}';
  for (const BASE_URL of [undefined, "https://gate.example.com"]) {
    await using mailbox = new Mailbox();
    await using app = await openRealServer({
      env: { ...mailbox.env, ...(BASE_URL === undefined ? {} : { BASE_URL }) },
    });
    const { status } = await app.call("POST", "/v1/actions", held, {
      Host: "evil.example",
      Forwarded: "host=evil.example;proto=https",
      "X-Forwarded-Host": "evil.example",
      "X-Forwarded-Proto": "https",
    });
    expect(status).toBe(201);
    const [mail] = await mailbox.took(1);
    const written = JSON.stringify(mail?.fields);
    expect(written).not.toContain("evil.example");
    const links = [...written.matchAll(/(https?:\/\/[^/"\\]+)\/[ar]\//g)].map(([, origin]) => origin);
    // Each of the three stands in the text and behind a button.
    expect(links).toEqual(Array.from({ length: 6 }, () => BASE_URL ?? "http://127.0.0.1:3000"));
  }
});

describe("an approver whom an owner's key has named", () => {
  test.each([
    ["is removed", "DELETE", undefined],
    ["becomes a reader", "PATCH", { role: "reader" }],
  ])("and who then %s decides by no link, whether its mail was sent or not", async (_what, method, body) => {
    await using mailbox = new Mailbox();
    await using app = await openRealServer({ env: mailbox.env });
    const { engine } = app;
    await signedIn(app);
    await joined(app, "approver", BOB);
    const bob = await personOf(app, BOB);
    const asked = (email: string) => create(app, KEYS.owner, { approve: true, notify: { email } });
    const { id } = (await asked(BOB.toUpperCase())).json;
    const { id: ofOther } = (await asked("carol@example.org")).json;
    // One is the invitation.
    await mailbox.took(3);
    const links = [await app.linksOf(id), await app.linksOf(ofOther)] as const;
    mailbox.script = 500;
    const { id: unsent } = (await asked(BOB)).json;
    await eventually(() => (mailbox.posted.length > 3 ? true : null), "a mail that failed");

    expect((await app.call(method, `/v1/people/${bob}`, body)).status).toBeLessThan(300);
    mailbox.script = "take";
    engine.clock.advance(60_000);
    const mail = (await engine.told(unsent, "mail", 2)).at(-1);
    expect(mail).toMatchObject({ delivered: false, error: expect.stringContaining("its links have ended") });
    for (const { approve, reject } of [links[0], await app.linksOf(unsent)]) {
      for (const [path, decision] of [
        [approve, "approve"],
        [reject, "reject"],
      ] as const)
        expect((await pressLink(app.url + path, { decision })).headers.get("location")).toStartWith("/r/");
    }
    for (const one of [id, unsent]) expect((await engine.get(one)).status).toBe("awaiting_approval");
    // Nor do they read what came of it.
    await app.call("POST", `/v1/actions/${id}/cancel`, { reason: "Not for those who have left." });
    const answer = (await engine.told(id, "mail", 2)).at(-1);
    expect(answer).toMatchObject({ event: "decided", error: expect.stringContaining("its links have ended") });
    await pressLink(app.url + links[1].approve, { decision: "approve" });
    expect((await engine.get(ofOther)).approvedBy).toBe("email:carol@example.org");
  });
});

describe("/v1/callback-hosts", () => {
  test("keeps each host once in its normal form, for its own account", async () => {
    await using app = await openRealServer();
    for (const host of ["Hooks.Example.com.", "hooks.example.com", "10.0.0.7:8080"]) {
      expect((await listHost(app, host)).status).toBe(200);
    }
    const hosts = async (key: string) =>
      (await app.call("GET", "/v1/callback-hosts", undefined, key)).json.data.map(({ host }) => host);
    expect(await hosts(KEYS.owner)).toEqual(["10.0.0.7:8080", "hooks.example.com"]);
    expect(await hosts(STRANGER)).toEqual([]);
    for (const host of ["*.example.com", "https://a.example", "a/b", ""]) {
      expect((await listHost(app, host)).json.error.code).toBe("validation_error");
    }
    expect((await app.call("DELETE", "/v1/callback-hosts?host=HOOKS.example.com")).status).toBe(204);
    expect((await app.call("DELETE", "/v1/callback-hosts?host=hooks.example.com")).status).toBe(404);
  });

  test("stops at so many, and says so", async () => {
    await using app = await openRealServer({ starts: false });
    for (let n = 0; n < CALLBACK_HOSTS_MAX; n += 1) await listHost(app, `h${n}.example`);
    const { status, text } = await listHost(app, "more.example");
    expect({ status, says: text.includes(`at most ${CALLBACK_HOSTS_MAX} hosts`) }).toEqual({ status: 400, says: true });
  });

  test("is a page of the settings, with forms of our own session, and without script", async () => {
    await using app = await openRealServer();
    const ann = await signedIn(app);
    const token = (await ann.hiddenOf("/settings"))["form_token"] ?? "";
    expect((await ann.send("/settings/callback-hosts", { host: "a.example" })).status).toBe(403);
    const added = await ann.send("/settings/callback-hosts", { form_token: token, host: " A.example. " });
    expect(added.headers.get("location")).toBe("/settings/callback-hosts");
    expect(await ann.pageOf("/settings/callback-hosts")).toContain("a.example");
    // The old address of the list leads on.
    expect(await ann.pageOf("/settings/hosts")).toMatch(
      /id="callback-hosts">[^<]*<a href="\/settings\/callback-hosts">/,
    );
    const wrong = await ann.send("/settings/callback-hosts", { form_token: token, host: "https://<b>" });
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).toContain("Must be a host name");
    for (let twice = 0; twice < 2; twice += 1) {
      const removed = await ann.send("/settings/callback-hosts/remove", { form_token: token, host: "a.example" });
      expect(removed.status).toBe(303);
    }
    expect(await ann.pageOf("/settings/callback-hosts")).toContain("No hosts yet");
  });
});
