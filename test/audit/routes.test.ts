import { pressLink } from "../support/forms.ts";
import type { AuditLog } from "../../src/client/api.ts";
import { describe, expect, test } from "bun:test";
import { AUDIT_SCANS_MAX, AUDIT_STEP_ROWS } from "../../src/core/limits.ts";
import { anAuditEntry } from "../support/factory.ts";
import { until } from "../support/until.ts";
import { openRealServer, type RealServer, STRANGER } from "../http/real-server.ts";
import { ANN, signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false })));

const log = async (query = "", headers = {}) => {
  const { json } = await app.call("GET", `/v1/audit${query}`, undefined, headers);
  return json as unknown as { readonly data: AuditLog["data"]; readonly next_cursor: string | null };
};

const kinds = async (query = "") => (await log(query)).data.map(({ kind }) => kind);

const subjects = async () => (await log()).data.map(({ subject }) => subject);

const wrong = { email: ANN, password: "not the password" };

const logIn = (body: object) => app.call("POST", "/auth/login", body);

describe("the audit log has an entry for", () => {
  test("a decision: by whom, which way, from where, on what and why", async () => {
    const { id } = (await app.call("POST", "/v1/actions", `{"url":"https://a.example/","approve":true}`)).json;
    await app.call("POST", `/v1/actions/${id}/cancel`, `{"reason":"Not now, sk_live_0123456789abcdefghij."}`);
    const { data } = await log("?kind=rejected");
    expect(data).toHaveLength(1);
    expect(data[0]).toMatchObject({
      account_id: app.engine.owner.accountId,
      actor: "key:owner",
      kind: "rejected",
      subject: id,
      client: "127.0.0.1",
      detail: { via: "api", method: "POST", host: "a.example", run: 1 },
    });
    expect(JSON.stringify(data)).toContain("Not now, ");
    expect(JSON.stringify(data)).not.toContain("0123456789abcdefghij");
  });

  test("a decision by the link of a mail", async () => {
    const { id } = await app.engine.create({ approve: true, notifyEmail: "bob@example.com" });
    const { approve } = await app.linksOf(id);
    await pressLink(app.url + approve, { decision: "approve" });
    expect((await log()).data[0]).toMatchObject({
      actor: "email:bob@example.com",
      kind: "approved",
      client: "127.0.0.1",
      detail: { via: "mail" },
    });
  });

  test("keys, pauses, secrets and everything that a person does, and none with a secret", async () => {
    const ann = await signedIn(app);
    const { id, key } = (await app.call("POST", "/v1/keys", `{"name":"ci","role":"agent"}`)).json;
    const { id: pauseId } = (await app.call("POST", "/v1/pauses", { key_id: id })).json;
    await app.call("DELETE", `/v1/pauses/${pauseId}`);
    await app.call("DELETE", `/v1/keys/${id}?unfinished=pause`);
    const { secret } = (await app.call("GET", "/v1/signing-secret?origin=https://a.example")).json;
    await app.call("POST", "/v1/signing-secret/rotate?origin=https://a.example");
    const action = await app.engine.create({ headers: { authorization: "Bearer hidden-from-most" } });
    const hidden = await ann.hiddenOf(`/actions/${action.id}`);
    expect(await (await ann.send(`/actions/${action.id}/reveal`, hidden)).text()).toContain("hidden-from-most");
    const next = { current_password: "correct horse battery", password: "another horse battery" };
    await ann.send("/settings/password", { ...hidden, ...next });
    const [first, second, ...since] = (await kinds()).toReversed();
    // The keys of the first start.
    expect([first, second]).toEqual(["key_created", "key_created"]);
    expect(since).toEqual([
      "signed_up",
      "key_created",
      "paused",
      "resumed",
      "key_revoked",
      "paused",
      "revealed",
      "signing_secret_rotated",
      "revealed",
      "password_changed",
    ]);
    const text = JSON.stringify(await log());
    for (const one of [key, secret, "hidden-from-most", ...Object.values(next)]) expect(text).not.toContain(one);
    const { data } = await log("?kind=revealed");
    expect(data.map(({ subject, actor }) => [subject, actor])).toEqual([
      [action.id, `user:${ANN}`],
      ["https://a.example", "key:owner"],
    ]);
  });

  test("logins, those that failed one by one at first, and a flood of them as a number", async () => {
    await signedIn(app);
    for (let n = 0; n < 40; n += 1) await logIn(wrong);
    await logIn({ email: "nobody@example.com", password: "not the password" });
    await until(async () => (await kinds("?kind=sign_in_throttled")).length === 1);
    expect(await kinds("?kind=sign_in_failed")).toHaveLength(5);
    app.engine.clock.advance(60_000);
    await until(async () => (await kinds("?kind=sign_in_throttled")).length === 2);
    const { data } = await log("?actor=anonymous");
    expect(data).toHaveLength(7);
    expect(data[0]).toMatchObject({ kind: "sign_in_throttled", subject: ANN, client: null, detail: { count: 34 } });
    expect(data[1]).toMatchObject({ client: "127.0.0.1", detail: { count: 1 } });
    expect((await logIn({ ...wrong, password: "correct horse battery" })).status).toBe(200);
    expect((await log()).data[0]).toMatchObject({ kind: "signed_in", actor: `user:${ANN}`, client: "127.0.0.1" });
  });
});

describe("GET /v1/audit", () => {
  const fill = async (count: number) => {
    const { audit } = app.engine.store;
    const { accountId } = app.engine.owner;
    const entries = Array.from({ length: count }, (_, n) => anAuditEntry({ accountId, subject: String(n) }));
    await Promise.all(entries.map((entry) => audit.record(entry)));
  };

  test("has pages, and an account sees its own alone", async () => {
    const before = await subjects();
    await fill(7);
    const first = await log("?limit=5");
    const second = await log(`?limit=5&cursor=${first.next_cursor}`);
    expect([first, second].map(({ data }) => data.map(({ subject }) => subject))).toEqual([
      ["6", "5", "4", "3", "2"],
      ["1", "0", ...before],
    ]);
    expect(second.next_cursor).toBeNull();
    expect((await log("", { authorization: `Bearer ${STRANGER}` })).data).toEqual([]);
  });

  test.each([
    ["?kind=nothing"],
    ["?limit=101"],
    ["?cursor=x"],
    ["?since=2026-02-30T00:00:00Z&until=soon"],
    ["?actor="],
    ["?page=2"],
  ])("%s is refused", async (query) => {
    const { status, json } = await app.call("GET", `/v1/audit${query}`);
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_query" });
  });

  test("exports all of it as lines of JSON, in steps, also filtered", async () => {
    const count = AUDIT_STEP_ROWS + 20;
    const before = await subjects();
    await fill(count);
    const exported = async (query = "") => {
      const response = await app.ask(`/v1/audit${query}`, { headers: { accept: "application/x-ndjson" } });
      expect(response.headers.get("content-type")).toBe("application/x-ndjson");
      const lines = (await response.text()).trimEnd().split("\n");
      return lines.map((line) => (JSON.parse(line) as AuditLog["data"][number]).subject);
    };
    const all = Array.from({ length: count }, (_, n) => String(count - 1 - n));
    expect(await exported()).toEqual([...all, ...before]);
    expect(await exported("?limit=3&kind=paused")).toEqual(all.slice(0, 3));
  });

  test("an export of a key that is revoked meanwhile ends", async () => {
    await fill(3 * AUDIT_STEP_ROWS);
    const { authenticate, engine } = app;
    const caller = await authenticate(`Bearer ${KEYS.owner}`);
    const { createAuditService } = await import("../../src/audit/audit.ts");
    const asked = { kinds: [], actors: [], since: null, until: null, before: null, limit: null };
    const steps = createAuditService(engine.app).export(caller, asked);
    expect((await steps.next()).value).toHaveLength(AUDIT_STEP_ROWS);
    authenticate.forget(engine.secrets.hash(KEYS.owner));
    expect(await steps.next().catch((error: unknown) => String(error))).toContain("Send a valid API key");
  });

  test("the page is filtered by person and kind over all of the log, page by page", async () => {
    const ann = await signedIn(app);
    const { audit } = app.engine.store;
    const { accountId } = app.engine.owner;
    const actors = [
      "user:bob@example.com",
      "email:bob@example.com",
      "user:bob@example.co",
      "key:bob@example.com",
    ] as const;
    const kindsWritten = ["approved", "rejected", "paused"] as const;
    const expected: string[] = [];
    for (let n = 0; n < 150; n += 1) {
      const actor = actors[n % 4] ?? "system";
      const kind = kindsWritten[n % 3] ?? "paused";
      const subject = `act_${String(n).padStart(3, "0")}`;
      await audit.record(anAuditEntry({ accountId, actor, kind, subject, detail: { via: "api", of: "account" } }));
      // By pages and by links of mails, and nobody whose name is similar.
      if (n % 4 < 2 && kind !== "paused") expected.unshift(subject);
    }
    const first = "/audit?kind=approved&kind=rejected&actor=user%3Abob%40example.com";
    const found: string[] = [];
    let path: string | undefined = first;
    for (let pages = 0; path !== undefined && pages < 9; pages += 1) {
      const html = await ann.pageOf(path);
      const rows = [...html.matchAll(/<dt>Subject<\/dt><dd><bdi class="untrusted">(act_\d+)</g)];
      expect(rows.length).toBeGreaterThan(0);
      found.push(...rows.map(([, subject = ""]) => subject));
      path = /href="([^"]+)">Older</.exec(html)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(expected).toHaveLength(51);
    expect(found).toEqual(expected);
    // The menus keep what the other one has chosen, and a name leads to the entries of its person.
    const html = await ann.pageOf(first);
    for (const link of [
      "/audit?kind=paused&amp;actor=user%3Abob%40example.com",
      "/audit?kind=approved&amp;kind=rejected&amp;actor=user%3Aann%40example.com",
      "/audit?kind=approved&amp;kind=rejected&amp;actor=email%3Abob%40example.com",
      "/audit?actor=user%3Abob%40example.com",
    ])
      expect(html).toContain(`href="${link}"`);
  });

  test("a page that few entries match is filled from further back, in a bounded number of steps", async () => {
    const { createAuditService } = await import("../../src/audit/audit.ts");
    const asked: number[] = [];
    const service = (matches: (step: number) => number) =>
      createAuditService({
        clock: app.engine.clock,
        store: {
          audit: {
            record: () => Promise.resolve(),
            page: ({ limit }) => {
              asked.push(limit);
              const row = { ...anAuditEntry(), seq: 1_000 - asked.length };
              const rows = Array.from({ length: Math.min(limit, matches(asked.length)) }, () => row);
              return Promise.resolve({ rows, before: row.seq });
            },
          },
        },
      });
    const request = { kinds: [], actors: ["user:rare@example.com"], since: null, until: null, before: null, limit: 5 };
    const filled = await service(() => 2).list(app.engine.owner, request);
    expect([filled.rows.length, filled.before, asked]).toEqual([5, 997, [5, 3, 1]]);
    asked.length = 0;
    const none = await service(() => 0).list(app.engine.owner, request);
    expect([none.rows.length, none.before, asked.length]).toEqual([0, 1_000 - AUDIT_SCANS_MAX, AUDIT_SCANS_MAX]);
  });
});
