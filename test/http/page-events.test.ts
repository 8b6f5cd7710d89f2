import { describe, expect, test } from "bun:test";
import { hiddenIn } from "../support/forms.ts";
import { createResetLink } from "../../src/admin/access.ts";
import { EVENT_HEARTBEAT_MS, PAGE_STREAM_HEARTBEATS_MAX, SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { ann as credentials, openPeopleServer, type PeopleServer } from "./people-server.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { aCredentialRequest, anAuditEntry } from "../support/factory.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS, OWN_ORIGIN } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);

const create = (headers: Readonly<Record<string, string>> = {}) =>
  app.call("POST", "/v1/actions", `{"url":"http://127.0.0.1:9/?token=canary","approve":true}`, headers);

/** The stream of a page, read until it shows what is waited for, or to its end. */
async function open(headers: Readonly<Record<string, string>> = {}) {
  const end = new AbortController();
  const response = await ann.context("/events", {
    headers: { accept: "text/event-stream", ...headers },
    signal: end.signal,
  });
  const stream: ReadableStream<Uint8Array> | null = response.body;
  const reader = stream?.getReader();
  let text = "";
  const read = async (isEnough: (text: string) => boolean): Promise<string> => {
    while (!isEnough(text)) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done) return text;
      text += Buffer.from(value ?? []).toString();
    }
    return text;
  };
  return { response, read, close: () => end.abort() };
}

/** A stream by a session, and whether it is over. */
async function follow(server: PeopleServer, cookie: string) {
  const end = new AbortController();
  const response = await fetch(`${server.url}/events`, { headers: { cookie }, signal: end.signal });
  expect(response.status).toBe(200);
  let isOver = false;
  const over = response.text().then(
    () => (isOver = true),
    () => (isOver = true),
  );
  return { over, isOver: () => isOver, close: () => end.abort() };
}

describe("the stream of our own pages", () => {
  test("tells the account's changes by the session, and nothing that is secret", async () => {
    const stream = await open();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
    await stream.read((text) => text.includes("id: "));
    await create({ authorization: `Bearer ${STRANGER}` });
    const { json } = await create();
    const text = await stream.read((so) => so.includes("event: action."));
    expect(text).toContain("event: action.awaiting_approval\n");
    const data = JSON.parse(/^data: ({.*)$/m.exec(text)?.[1] ?? "null");
    expect(data).toMatchObject({ data: { id: json.id, status: "awaiting_approval" } });
    expect(Object.keys(data.data)).toEqual(["id", "status"]);
    stream.close();
  });

  test("goes on behind the last event that a page has heard", async () => {
    const first = await open();
    const position = /id: (\S+)/.exec(await first.read((text) => text.includes("id: ")))?.[1] ?? "";
    first.close();
    const { json } = await create();
    const second = await open({ "last-event-id": position });
    expect(await second.read((text) => text.includes("event: action."))).toContain(json.id);
    second.close();
  });

  test("begins with the requests for credentials that wait, and tells when they are others", async () => {
    const stream = await open();
    const told = (text: string) =>
      [...text.matchAll(/^event: credential_requests\ndata: (.*)$/gm)].map(([, ids]) => ids);
    expect(told(await stream.read((text) => told(text).length > 0))).toEqual(["[]"]);
    const asked = await app.call(
      "POST",
      "/v1/credential-requests",
      { host: "api.example", reason: "To refund order 4711." },
      KEYS.agent,
    );
    const { id } = asked.json;
    expect(told(await stream.read((text) => told(text).length > 1)).at(-1)).toBe(`["${id}"]`);
    await app.call("POST", `/v1/credential-requests/${id}/decline`);
    expect(told(await stream.read((text) => told(text).length > 2)).at(-1)).toBe("[]");
    // An action is no news of them.
    await create();
    const all = await stream.read((text) => text.includes("event: action."));
    expect(told(all)).toHaveLength(3);
    stream.close();
  });

  test("tells at a heartbeat what another node has changed", async () => {
    const stream = await open();
    await stream.read((text) => text.includes("data: []"));
    const now = app.engine.clock.now();
    const { accountId } = app.engine.owner;
    const [key] = await app.engine.store.accounts.keys(accountId, 1);
    const asked = aCredentialRequest({
      accountId,
      keyId: key?.id ?? "",
      createdAt: now,
      expiresAt: new Date(now.getTime() + EVENT_HEARTBEAT_MS * 2),
    });
    await app.engine.store.credentialRequests.ask(asked, now, [], anAuditEntry());
    app.engine.clock.advance(EVENT_HEARTBEAT_MS);
    expect(await stream.read((text) => text.includes(asked.id))).toContain(`data: ["${asked.id}"]`);
    stream.close();
  });

  test("ends after a minute, so that the session is judged again", async () => {
    const stream = await open();
    await stream.read((text) => text.includes("id: "));
    let isOver = false;
    const whole = stream.read(() => false).then(() => (isOver = true));
    for (let beat = 0; beat < PAGE_STREAM_HEARTBEATS_MAX; beat += 1) {
      expect(isOver).toBe(false);
      app.engine.clock.advance(EVENT_HEARTBEAT_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await whole;
    expect(isOver).toBe(true);
  });

  test("ends at the log-out, at once, and only for whoever logged out", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    const elsewhere = (await server.send("/auth/login", credentials())).cookie;
    const [mine, alsoMine, other] = [
      await follow(server, cookie),
      await follow(server, cookie),
      await follow(server, elsewhere),
    ];
    await server.ask("POST", "/auth/logout", { headers: { cookie, origin: OWN_ORIGIN } });
    await Promise.all([mine.over, alsoMine.over]);
    expect([mine.isOver(), alsoMine.isOver(), other.isOver()]).toEqual([true, true, false]);
    other.close();
  });

  test("ends when a new password ends its session, and when the person has too many", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    const stream = await follow(server, cookie);
    server.engine.clock.advance(1);
    for (let at = 0; at < SESSIONS_PER_PERSON_MAX - 1; at += 1) await server.send("/auth/login", credentials());
    expect(stream.isOver()).toBe(false);
    const newest = (await server.send("/auth/login", credentials())).cookie;
    await stream.over;

    const again = await follow(server, newest);
    const { store, secrets, clock } = server.engine;
    const token = await createResetLink({ ...store, secrets, clock }, "ann@example.com");
    const { cookie: renewed } = await server.form(`/welcome/${token}`, credentials({ password: "another password" }));
    await again.over;

    const last = await follow(server, renewed);
    const html = (await server.get("/settings/password", { cookie: renewed })).text;
    const { form_token = "" } = hiddenIn(html);
    const fields = { form_token, current_password: "another password", password: "the third of them" };
    const { cookie: changed } = await server.form("/settings/password", fields, { cookie: renewed });
    await last.over;
    (await follow(server, changed)).close();
  });

  test("is for nobody without a session, whatever key they have, nor for another site's page", async () => {
    for (const headers of [
      {},
      { authorization: `Bearer ${KEYS.owner}` },
      { cookie: `outgate_session=${"0".repeat(64)}` },
    ]) {
      expect((await fetch(`${app.url}/events`, { headers })).status).toBe(403);
    }
    for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "same-site" }]) {
      expect((await ann.context("/events", { headers })).status).toBe(403);
    }
    const own = await open({ origin: OWN_ORIGIN });
    expect(own.response.status).toBe(200);
    own.close();
    expect((await ann.context("/events?x=1")).status).toBe(400);
  });
});
