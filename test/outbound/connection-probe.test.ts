import { expect, test } from "bun:test";
import ipaddr from "ipaddr.js";
import { CONNECTABLE_FRESH_MS, CONNECTABLE_REMEMBERED_MAX } from "../../src/core/limits.ts";
import { ConnectionProbe } from "../../src/outbound/connections.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { sender } from "./attempt.ts";
import { requestTo } from "./policies.ts";

const HERE = ipaddr.parse("127.0.0.1");

const LIMITS = { limitMs: 5_000, signal: new AbortController().signal };

test("a call is preceded by a connection that carries no byte", async () => {
  await using target = await openRawTarget(answers(200));
  expect((await sender.send(requestTo(target.url()), { timeoutMs: 5_000 })).kind).toBe("answered");
  expect([target.accepted, target.connections, target.requests.length]).toEqual([2, 1, 1]);
});

test("an address that answered is not probed for a moment, and again once a call to it was not answered", async () => {
  let [nowMs, count] = [0, 0];
  const connectable = new ConnectionProbe(
    () => nowMs,
    () => Promise.resolve((count += 1) < 0),
  );
  const probes = async () => {
    const before = count;
    expect(await connectable.isSilent(HERE, 80, LIMITS)).toBe(false);
    return count - before;
  };
  expect([await probes(), await probes()]).toEqual([1, 1]);
  connectable.learn(HERE, 80, true);
  nowMs += CONNECTABLE_FRESH_MS - 1;
  expect(await probes()).toBe(0);
  expect(await connectable.isSilent(HERE, 81, LIMITS)).toBe(false);
  expect(count).toBe(3);
  nowMs += 1;
  expect(await probes()).toBe(1);
  connectable.learn(HERE, 80, true);
  connectable.learn(HERE, 80, false);
  expect(await probes()).toBe(1);

  // Of many addresses the one that answered longest ago is forgotten.
  connectable.learn(HERE, 80, true);
  const others = Array.from({ length: CONNECTABLE_REMEMBERED_MAX }, (_, other) =>
    ipaddr.fromByteArray([10, 0, other >> 8, other & 255]),
  );
  for (const other of others) connectable.learn(other, 80, true);
  expect(await probes()).toBe(1);
});

test("one that refuses is not silent, and one that the limit overtakes is", async () => {
  const target = await openRawTarget(answers(200));
  const { port } = target;
  await target[Symbol.asyncDispose]();
  expect(await new ConnectionProbe().isSilent(HERE, port, LIMITS)).toBe(false);
  const signal = AbortSignal.abort();
  expect(await new ConnectionProbe().isSilent(HERE, port, { limitMs: 5_000, signal })).toBe(true);
});

test("a pause of the event loop makes no address silent", async () => {
  await using target = await openRawTarget(answers(200));
  const limits = { limitMs: 10, signal: LIMITS.signal };
  const heard: boolean[] = [];
  for (let round = 0; round < 10; round += 1) {
    const silent = new ConnectionProbe().isSilent(HERE, target.port, limits);
    // The connection comes about meanwhile, and the limit is over: both are heard of in the turn after it.
    Bun.sleepSync(20);
    heard.push(await silent);
  }
  expect(new Set(heard)).toEqual(new Set([false]));
});
