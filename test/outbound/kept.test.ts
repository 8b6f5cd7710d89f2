import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { KEPT_CONNECTION_IDLE_MS } from "../../src/core/limits.ts";
import { createSender } from "../../src/outbound/send.ts";
import { FakeClock } from "../support/clock.ts";
import { answerBytes, answersOn, openRawTarget, type RawTarget, resets } from "../support/raw-target.ts";
import { CUT_OFF, IN_TIME } from "./attempt.ts";
import { TestAuthority } from "./certificates.ts";
import { LOCAL, policyWith, requestTo } from "./policies.ts";

const authority = new TestAuthority();

const certificate = authority.issue("DNS:a.localhost,DNS:b.localhost,IP:127.0.0.1");

afterAll(() => authority[Symbol.dispose]());

/** A sender of its own, with a clock that the test moves. */
function opened() {
  const clock = new FakeClock();
  const sender = createSender(LOCAL, { ca: authority.ca, clock });
  return {
    clock,
    sender,
    post: (
      url: string,
      { keepFor = "acc_one", ...more }: Parameters<typeof requestTo>[1] & { keepFor?: string } = {},
    ) => sender.send(requestTo(url, more), { ...IN_TIME, keepFor }),
    patch: (url: string) => sender.send(requestTo(url, { method: "PATCH" }), { ...IN_TIME, keepFor: "acc_one" }),
  };
}

/** Resolves when no connection is open at the target. */
async function deserted(target: RawTarget): Promise<number> {
  await target.abandoned();
  return target.connections;
}

describe.each([
  ["http", {}],
  ["https", { tls: certificate }],
])("over %s", (_scheme, options) => {
  test("calls of one account to one origin go over one connection, and the target sees no other", async () => {
    const { clock, sender, post, patch } = opened();
    await using target = await openRawTarget(answersOn(200, "{}"), options);
    for (let n = 0; n < 10; n += 1) {
      clock.advance(1_000);
      expect(await post(target.url("/", "a.localhost"))).toMatchObject({ kind: "answered", code: 200, body: "{}" });
      expect((await patch(target.url("/", "a.localhost"))).kind).toBe("answered");
    }
    // Only the first call was preceded by an empty connection, which looks whether the address responds.
    expect([target.requests.length, target.connections, target.accepted]).toEqual([20, 1, 2]);
    expect(target.requests.join("")).not.toMatch(/connection: *close/i);
    sender.close();
    expect(await deserted(target)).toBe(1);
  });

  test("another account, origin or address never gets that connection", async () => {
    const { post } = opened();
    await using target = await openRawTarget(answersOn(200, "{}"), options);
    const hosts = ["a.localhost", "b.localhost", "127.0.0.1"];
    for (let round = 0; round < 3; round += 1) {
      for (const host of hosts) {
        for (const keepFor of ["acc_one", "acc_two"]) {
          await post(target.url("/", host), { keepFor, headers: [["X-Account", keepFor]] });
        }
      }
    }
    expect([target.requests.length, target.connections]).toEqual([18, 6]);
  });

  test.each(["GET", "PUT", "DELETE"] as const)("a %s has a connection of its own", async (method) => {
    const { post } = opened();
    await using target = await openRawTarget(answersOn(200, "{}"), options);
    const url = target.url("/", "a.localhost");
    await post(url);
    for (let n = 0; n < 3; n += 1) await post(url, { method });
    expect(target.connections).toBe(4);
    expect(target.requests.filter((request) => /^connection: close$/im.test(request))).toHaveLength(3);
    await post(url);
    expect([target.requests.length, target.connections]).toEqual([5, 4]);
  });

  test.each<[string, (socket: Socket) => void]>([
    ["says that it closes", answersWith("Connection: close")],
    ["says so among other words", answersWith("Connection: TE, Close")],
    ["would close too soon", answersWith("Keep-Alive: max=9, timeout=2")],
    ["closes without saying so", (socket) => socket.end(answerBytes(200, "{}"))],
    ["speaks HTTP/1.0", (socket) => socket.write("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")],
    ["sends more than its answer", (socket) => socket.write(`${answerBytes(200, "{}").toString()}more`)],
  ])("a target that %s: each call has a connection, none is repeated", async (_name, behaviour) => {
    const { post } = opened();
    await using target = await openRawTarget(behaviour, options);
    for (let n = 1; n <= 3; n += 1) {
      expect(await post(target.url("/", "a.localhost"))).toMatchObject({ kind: "answered", code: 200, body: "{}" });
      expect([target.requests.length, await deserted(target)]).toEqual([n, n]);
    }
  });

  test("an answer that is cut at the limit, late or of no valid status ends its connection", async () => {
    const { sender, post } = opened();
    let answer = answerBytes(200, "x".repeat(300_000)).toString();
    await using target = await openRawTarget((socket) => void socket.write(answer), options);
    const url = target.url("/", "a.localhost");
    expect(await post(url)).toMatchObject({ kind: "answered", truncated: true, brokenBy: null });
    expect(await deserted(target)).toBe(1);
    answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123";
    const late = await sender.send(requestTo(url), { ...CUT_OFF, keepFor: "acc_one" });
    expect(late).toMatchObject({ kind: "answered", brokenBy: "timed_out" });
    expect(await deserted(target)).toBe(2);
    answer = "HTTP/1.1 600 X\r\nContent-Length: 2\r\n\r\n{}";
    expect(await post(url)).toEqual({ kind: "unknown", fault: "not_http" });
    expect(await deserted(target)).toBe(3);
    answer = "";
    const silent = await sender.send(requestTo(url), { ...CUT_OFF, keepFor: "acc_one" });
    expect(silent).toEqual({ kind: "unknown", fault: "timed_out" });
    expect([await deserted(target), target.requests.length]).toEqual([4, 4]);
  });

  test("a stop while a later call waits: interrupted; before it is sent: stopped", async () => {
    const { sender, post } = opened();
    const stop = new AbortController();
    let isOver = false;
    await using target = await openRawTarget((socket) => {
      if (isOver) stop.abort();
      else socket.write(answerBytes(200, "{}"));
    }, options);
    const url = target.url("/", "a.localhost");
    await post(url);
    isOver = true;
    const limits = { timeoutMs: 10_000, stop: stop.signal, keepFor: "acc_one" };
    expect(await sender.send(requestTo(url), limits)).toEqual({ kind: "unknown", fault: "interrupted" });
    expect(await sender.send(requestTo(url), limits)).toEqual({ kind: "stopped" });
    expect([await deserted(target), target.requests.length]).toEqual([1, 2]);
  });

  test("a reset in place of a later answer is unknown, and then the target gets fresh connections", async () => {
    const { post } = opened();
    await using target = await openRawTarget((socket, request) => {
      const behave = target.requests.length === 2 ? resets() : answersOn(200, "{}");
      behave(socket, request);
    }, options);
    const url = target.url("/", "a.localhost");
    const ends = [];
    for (let n = 0; n < 4; n += 1) ends.push(await post(url));
    expect(ends.map(({ kind }) => kind)).toEqual(["answered", "unknown", "answered", "answered"]);
    expect([target.requests.length, target.connections]).toEqual([4, 3]);
    expect(target.requests.slice(2).every((request) => /^connection: close$/im.test(request))).toBe(true);
  });

  test("a target that was restarted gets the next call on a new connection; one that is gone got nothing", async () => {
    const { post } = opened();
    const first = await openRawTarget(answersOn(200, "{}"), options);
    const url = first.url("/", "a.localhost");
    await post(url);
    await first[Symbol.asyncDispose]();
    expect(await post(url)).toEqual({ kind: "not_sent", fault: "refused" });
    await using second = await openRawTarget(answersOn(201, "{}"), { ...options, port: Number(new URL(url).port) });
    expect(await post(url)).toMatchObject({ kind: "answered", code: 201 });
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
  });
});

test("an answer to half a request: the rest of it is never read as the next request", async () => {
  const { post } = opened();
  await using target = await openRawTarget(() => {}, {
    onConnect: (socket) => {
      socket.once("data", () => {
        socket.write(answerBytes(413, "{}"));
        socket.pause();
      });
    },
  });
  // More than the buffers between the two hold.
  const body = JSON.stringify("x".repeat(16_000_000));
  for (let n = 1; n <= 3; n += 1) {
    expect(await post(target.url(), { body })).toMatchObject({ kind: "answered", code: 413 });
    expect(target.connections).toBe(n);
  }
});

test("the address is judged at each call: one that is no longer allowed is not reached over an open connection", async () => {
  await using target = await openRawTarget(answersOn(200, "{}"));
  const policy = { ...policyWith({ loopbackAllowed: true }) };
  const sender = createSender(policy);
  const post = () => sender.send(requestTo(target.url()), { ...IN_TIME, keepFor: "acc_one" });
  expect((await post()).kind).toBe("answered");
  Object.assign(policy, { loopbackAllowed: false });
  expect(await post()).toEqual({ kind: "not_sent", fault: "address_private" });
  Object.assign(policy, { loopbackAllowed: true });
  expect((await post()).kind).toBe("answered");
  expect([target.requests.length, target.connections]).toEqual([2, 1]);
});

test("of several addresses, the one with an open connection comes first, then the order of the name again", async () => {
  const { clock, post } = opened();
  await using second = await openRawTarget(answersOn(200, "{}"), { address: "::1" });
  const url = second.url("/", "localhost");
  await post(url);
  await using first = await openRawTarget(answersOn(200, "{}"), { port: second.port });
  await post(url);
  expect([first.requests.length, second.requests.length, second.connections]).toEqual([0, 2, 1]);
  clock.advance(KEPT_CONNECTION_IDLE_MS);
  await post(url);
  expect([first.requests.length, second.requests.length]).toEqual([1, 2]);
});

test("a certificate is checked for the name of each origin, whatever is open to its address", async () => {
  const { post } = opened();
  await using target = await openRawTarget(answersOn(200, "{}"), { tls: certificate });
  const kinds = [];
  for (const host of ["a.localhost", "c.localhost", "127.0.0.1", "a.localhost", "localhost"]) {
    kinds.push((await post(target.url("/", host))).kind);
  }
  expect(kinds).toEqual(["answered", "not_sent", "answered", "answered", "not_sent"]);
  expect([target.requests.length, target.connections]).toEqual([3, 2]);
});

function answersWith(header: string): (socket: Socket) => void {
  return (socket) => socket.write(answerBytes(200, "{}", [header]));
}

test("KEEP_CONNECTIONS=off: each call has a connection of its own", async () => {
  const sender = createSender(LOCAL, { keepsConnections: false });
  await using target = await openRawTarget(answersOn(200, "{}"));
  for (let n = 0; n < 3; n += 1) {
    await sender.send(requestTo(target.url()), { ...IN_TIME, keepFor: "acc_one" });
  }
  expect([target.requests.length, target.connections]).toEqual([3, 3]);
});
