import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Caller } from "../../src/core/roles.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { READY_FRESH_MS, READY_MS_MAX, REFUSAL_HELD_MS } from "../../src/core/limits.ts";
import { createReadiness } from "../../src/http/system-routes.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { stubActionService, KEYS, KNOWN_ID, openStubServer } from "./stub-server.ts";
import { exchange, request } from "./wire.ts";
import { until } from "../support/until.ts";
import { ownerOf } from "../support/owner.ts";

/** A server whose service fails at every get in this way. */
function serverThatThrows(error: unknown) {
  const get = async () => {
    throw error;
  };
  return openStubServer({ actionService: stubActionService({ get }) });
}

const CALLER: Caller = { ...ownerOf("acc_one"), keyId: "key_one", keyName: "one", actor: "key:one" };

const GET = `/v1/actions/${KNOWN_ID}`;

describe("a fault of ours", () => {
  test("is 500 without a word of what it was; the log has the place and the same id", async () => {
    await using app = serverThatThrows(new Error("s3cr3t: insert into keys values ('og_s3cr3t')"));
    const response = await app.ask(GET, { headers: { "x-request-id": "mine" } });
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({
      error: { code: "internal_error", request_id: expect.stringMatching(/^req_/) },
    });
    expect(text + JSON.stringify(app.lines)).not.toContain("s3cr3t");
    const failed = app.lines.find(({ event }) => event === "http.failed");
    expect(failed?.fields).toMatchObject({ request_id: "mine", route: "/v1/actions/{id}" });
    expect(String(failed?.fields["error"])).toContain("faults.test.ts");
    expect(text).toContain(String(failed?.fields["error_id"]));
  });

  test.each([
    ["a thrown string", "nonsense"],
    ["undefined", undefined],
    ["a TypeError", new TypeError("x is not a function")],
    ["an error that claims a status", Object.assign(new Error("x"), { status: 200, code: "NOT_FOUND" })],
    ["an error that answers for itself", Object.assign(new Error("x"), { toResponse: () => new Response("inside") })],
  ])("is 500 in the envelope whatever was thrown: %s", async (_name, thrown) => {
    await using app = serverThatThrows(thrown);
    const response = await app.ask(GET);
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { code: "internal_error" } });
  });

  test.each([
    ["the store", new StoreUnavailable("disk full: /data/x")],
    ["a decision that never wins", new DomainError("unavailable", "Try again.")],
  ])("that heals is 503 with Retry-After: %s", async (_name, error) => {
    await using app = serverThatThrows(error);
    const response = await app.ask(GET);
    const text = await response.text();
    expect({ status: response.status, wait: response.headers.get("retry-after") }).toEqual({ status: 503, wait: "1" });
    expect(text).toContain(`"code":"unavailable"`);
    expect(text).not.toContain("/data");
  });

  test("that heals is refused a second later where other nodes serve: a load balancer gives them the requests meanwhile", async () => {
    const clock = new FakeClock();
    const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
    const get = async () => {
      asked();
      throw new StoreUnavailable("away");
    };
    await using app = openStubServer({ actionService: stubActionService({ get }), clock, countNodes: () => 2 });
    const statuses: number[] = [];
    const answered = app.ask(GET).then(({ status }) => statuses.push(status));
    await isAsked;
    await Bun.sleep(50);
    expect(statuses).toEqual([]);
    clock.advance(2 * REFUSAL_HELD_MS);
    await answered;
    expect(statuses).toEqual([503]);
  });

  test("is 503 too where it is the keys that can't be read", async () => {
    const broken = () => Promise.reject(new StoreUnavailable("away"));
    await using app = openStubServer({
      authenticate: Object.assign(broken, { forget: () => {}, recheck: async () => {} }),
    });
    expect((await app.ask(GET)).status).toBe(503);
    expect((await app.ask("/health")).status).toBe(200);
  });
});

describe("readiness", () => {
  test("follows the store; health does not", async () => {
    await using app = openStubServer();
    await using away = openStubServer({ probe: () => Promise.reject(new StoreUnavailable("disk full")) });
    const ready = async ({ url }: { readonly url: string }) => {
      const response = await fetch(`${url}/ready`);
      return [response.status, await response.json()] as const;
    };
    expect(await ready(app)).toEqual([200, { status: "ok", version: "0.0.0-test", commit: null }]);
    expect(await ready(away)).toEqual([503, { status: "unavailable", version: "0.0.0-test", commit: null }]);
    expect(await (await fetch(`${away.url}/health`)).json()).toEqual({
      status: "ok",
      version: "0.0.0-test",
      commit: null,
    });
    app.drain.abort();
    expect((await ready(app))[0]).toBe(503);
  });

  test("metrics are Prometheus text", async () => {
    await using app = openStubServer();
    const response = await fetch(`${app.url}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await response.text()).toBe("outgate_up 1\n");
  });
});

describe("the log", () => {
  test("has one line for each request: route and ids, never a query, a key or a body", async () => {
    await using app = openStubServer();
    const body = `{"url":"https://s3cr3t.example/","headers":{"authorization":"s3cr3t"},"body":{"a":"s3cr3t"}}`;
    await app.ask("/v1/actions", { method: "POST", body, headers: { "content-type": "application/json" } });
    await app.ask(GET);
    await app.ask(`${GET}?token=s3cr3t`);
    await app.ask("/r/s3cr3t");
    await fetch(`${app.url}/v1/actions?key=s3cr3t`, { headers: { cookie: "s3cr3t", authorization: "Bearer s3cr3t" } });
    const lines = app.lines.filter(({ event }) => event === "http.requested").map(({ fields }) => fields);
    const who = { account_id: "acc_one", key_id: "key_owner" };
    expect(lines).toEqual([
      expect.objectContaining({ method: "POST", route: "/v1/actions", status: 201, action_id: KNOWN_ID, ...who }),
      expect.objectContaining({ method: "GET", route: "/v1/actions/{id}", status: 200, action_id: KNOWN_ID, ...who }),
      expect.objectContaining({ method: "GET", route: "/v1/actions/{id}", status: 400, code: "invalid_query", ...who }),
      expect.objectContaining({ method: "GET", route: "/r/{token}", status: 404, code: "not_found" }),
      expect.objectContaining({ method: "GET", route: null, status: 401, code: "unauthorized" }),
    ]);
    expect(JSON.stringify(app.lines)).not.toContain("s3cr3t");
    expect(JSON.stringify(app.lines)).not.toContain(KEYS.owner);
    for (const line of lines) expect(line["duration_ms"]).toBeNumber();
  });

  test("says that a client left before its body was there, as no fault of ours", async () => {
    const asked = Promise.withResolvers<void>();
    const authenticate = async () => {
      asked.resolve();
      return CALLER;
    };
    await using app = openStubServer({
      authenticate: Object.assign(authenticate, { forget: () => {}, recheck: async () => {} }),
    });
    const head = [`Authorization: Bearer ${KEYS.owner}`, "Content-Type: application/json", "Content-Length: 100"];
    await exchange(app.port, [request("POST /v1/actions", head, `{"url"`), () => asked.promise], { leaves: true });
    await until(() => app.lines.length !== 0);
    const [line, ...others] = app.lines;
    expect(line).toMatchObject({
      level: "info",
      event: "http.requested",
      fields: { status: 499, code: "client_gone", client_gone: true },
    });
    expect(others).toEqual([]);
  });

  describe("after a client has left, says of what is thrown then what it is:", () => {
    /** Asks for an action, leaves, and lets the service throw after that. */
    const leaveBefore = async (error: Error) => {
      const left = new AbortController();
      const get = () => {
        left.abort();
        return Promise.reject(error);
      };
      await using app = openStubServer({ actionService: stubActionService({ get }) });
      const headers = { authorization: `Bearer ${KEYS.owner}` };
      await app.http.handle(new Request(`${app.url}${GET}`, { headers, signal: left.signal }));
      return app.lines;
    };

    test("a bug is an error with its name and its place", async () => {
      const lines = await leaveBefore(new TypeError("undefined is not an object"));
      expect(lines.map(({ level, event }) => [level, event])).toEqual([
        ["error", "http.failed"],
        ["info", "http.requested"],
      ]);
      expect(lines[0]?.fields["error"]).toStartWith("TypeError: undefined is not an object\n    at ");
      expect(lines[1]?.fields).toMatchObject({ status: 500, code: "internal_error", client_gone: true });
    });

    test.each([
      ["a store that is away", new StoreUnavailable("away"), 503, "unavailable"],
      ["a broken rule", new DomainError("not_found", "No."), 404, "not_found"],
      ["that it left", new DOMException("The connection was closed.", "AbortError"), 499, "client_gone"],
    ])("%s", async (_what, error, status, code) => {
      const lines = await leaveBefore(error);
      expect(lines.map(({ level, fields }) => [level, fields["status"], fields["code"]])).toEqual([
        ["info", status, code],
      ]);
    });

    test("an abort that is none of the client's doing is a bug", async () => {
      await using app = serverThatThrows(new DOMException("Ours.", "AbortError"));
      expect((await app.ask(GET)).status).toBe(500);
      expect(app.lines.map(({ event }) => event)).toEqual(["http.failed", "http.requested"]);
    });
  });
});

/** A store whose probes end as the test says, and how many there were. */
function aStore() {
  const clock = new FakeClock();
  const state = { probes: 0, probe: (): Promise<void> => Promise.resolve() };
  const isReady = createReadiness(() => {
    state.probes += 1;
    return state.probe();
  }, clock);
  return { clock, state, isReady };
}

test("however many ask, the store is written once, and again when a second is over", async () => {
  const { clock, state, isReady } = aStore();
  expect(await Promise.all(Array.from({ length: 100 }, isReady))).not.toContain(false);
  clock.advance(READY_FRESH_MS - 1);
  expect(await isReady()).toBe(true);
  expect(state.probes).toBe(1);
  state.probe = () => Promise.reject(new StoreUnavailable("away"));
  clock.advance(1);
  expect(await isReady()).toBe(false);
  expect(await isReady()).toBe(false);
  expect(state.probes).toBe(2);
  expect(clock.timers).toBe(0);
});

test("a store that does not answer is not ready, is told so in time, and is asked once", async () => {
  const { clock, state, isReady } = aStore();
  const gate = Promise.withResolvers<void>();
  state.probe = () => gate.promise;
  const first = isReady();
  clock.advance(READY_MS_MAX);
  expect(await first).toBe(false);
  const second = isReady();
  clock.advance(READY_MS_MAX);
  expect(await second).toBe(false);
  expect(state.probes).toBe(1);
  gate.resolve();
  await turn();
  expect(await isReady()).toBe(true);
  expect(clock.timers).toBe(0);
});

test("a store that has too much to write is ready", async () => {
  const { state, isReady } = aStore();
  state.probe = () => Promise.reject(new StoreBusy("full"));
  expect(await isReady()).toBe(true);
});
