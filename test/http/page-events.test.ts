import { describe, expect, test } from "bun:test";
import { hiddenIn } from "../support/forms.ts";
import { createResetLink } from "../../src/accounts/welcome-links.ts";
import { EVENT_HEARTBEAT_MS, PAGE_STREAM_HEARTBEATS_MAX, SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { ann as credentials, openPeopleServer, type PeopleServer } from "./people-server.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { aCredentialRequest, anAuditEntry } from "../support/factory.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS, OWN_ORIGIN } from "./stub-server.ts";
import { Listener } from "../support/listener.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);

const create = (headers: Readonly<Record<string, string>> = {}) =>
  app.call("POST", "/v1/actions", `{"url":"http://127.0.0.1:9/?token=canary","approve":true}`, headers);

/** The stream of a page of Ann's. */
const open = (headers: Readonly<Record<string, string>> = {}) =>
  Listener.open(`${app.url}/events`, { cookie: ann.cookie, accept: "text/event-stream", ...headers });

/** A stream by a session. */
async function follow(server: PeopleServer, cookie: string): Promise<Listener> {
  const stream = await Listener.open(`${server.url}/events`, { cookie });
  expect(stream.response.status).toBe(200);
  return stream;
}

const isOver = (stream: Listener) => Bun.peek.status(stream.over()) !== "pending";

const begun = ({ lastEventId }: Listener) => lastEventId !== "";

const actionsIn = ({ events }: Listener) => events.filter(({ event }) => event.startsWith("action."));

/** What was told of the requests for credentials that wait. */
const requestsIn = ({ events }: Listener) =>
  events.flatMap(({ event, data }) => (event === "state" ? [JSON.parse(data).credential_requests] : []));

describe("the stream of our own pages", () => {
  test("tells the account's changes by the session, and nothing that is secret", async () => {
    await using stream = await open();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
    await stream.heard(begun);
    await create({ authorization: `Bearer ${STRANGER}` });
    const { json } = await create();
    await stream.heard((heard) => actionsIn(heard).length > 0);
    const [told] = actionsIn(stream);
    expect(told?.event).toBe("action.awaiting_approval");
    expect(JSON.parse(told?.data ?? "").data).toEqual({ id: json.id, status: "awaiting_approval" });
  });

  test("begins with the requests for credentials that wait, and tells when they are others", async () => {
    await using stream = await open();
    await stream.heard((heard) => requestsIn(heard).length > 0);
    const asked = await app.call(
      "POST",
      "/v1/credential-requests",
      { host: "api.example", reason: "To refund order 4711." },
      KEYS.agent,
    );
    const { id } = asked.json;
    await stream.heard((heard) => requestsIn(heard).length > 1);
    await app.call("POST", `/v1/credential-requests/${id}/decline`);
    await stream.heard((heard) => requestsIn(heard).length > 2);
    // An action is no news of them.
    await create();
    await stream.heard((heard) => actionsIn(heard).length > 0);
    expect(requestsIn(stream)).toEqual([[], [id], []]);
  });

  test("tells at a heartbeat what another node has changed", async () => {
    await using stream = await open();
    await stream.heard((heard) => requestsIn(heard).length > 0);
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
    await stream.heard((heard) => requestsIn(heard).length > 1);
    expect(requestsIn(stream)).toEqual([[], [asked.id]]);
  });

  test("ends after a minute, so that the session is judged again", async () => {
    await using stream = await open();
    await stream.heard(begun);
    for (let beat = 0; beat < PAGE_STREAM_HEARTBEATS_MAX; beat += 1) {
      expect(isOver(stream)).toBe(false);
      app.engine.clock.advance(EVENT_HEARTBEAT_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await stream.over()).toBe("closed");
  });

  test("ends at the logout, at once, and only for whoever logged out", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    const elsewhere = (await server.send("/auth/login", credentials())).cookie;
    await using other = await follow(server, elsewhere);
    const mine = [await follow(server, cookie), await follow(server, cookie)];
    await server.ask("POST", "/auth/logout", { headers: { cookie, origin: OWN_ORIGIN } });
    expect(await Promise.all(mine.map((stream) => stream.over()))).toEqual(["closed", "closed"]);
    expect(isOver(other)).toBe(false);
  });

  test("ends when a new password ends its session, and when the person has too many", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    const stream = await follow(server, cookie);
    server.engine.clock.advance(1);
    for (let at = 0; at < SESSIONS_PER_PERSON_MAX - 1; at += 1) await server.send("/auth/login", credentials());
    expect(isOver(stream)).toBe(false);
    const newest = (await server.send("/auth/login", credentials())).cookie;
    await stream.over();

    const again = await follow(server, newest);
    const { store, secrets, clock } = server.engine;
    const token = await createResetLink({ ...store, secrets, clock }, "ann@example.com");
    const { cookie: renewed } = await server.form(`/welcome/${token}`, credentials({ password: "another password" }));
    await again.over();

    const last = await follow(server, renewed);
    const html = (await server.get("/settings/password", { cookie: renewed })).text;
    const { form_token = "" } = hiddenIn(html);
    const fields = { form_token, current_password: "another password", password: "the third of them" };
    const { cookie: changed } = await server.form("/settings/password", fields, { cookie: renewed });
    await last.over();
    await (await follow(server, changed))[Symbol.asyncDispose]();
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
    await using own = await open({ origin: OWN_ORIGIN });
    expect(own.response.status).toBe(200);
    expect((await ann.context("/events?x=1")).status).toBe(400);
  });
});
