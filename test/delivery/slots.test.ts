import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../src/actions/outcome.ts";
import { type Candidate, Lanes } from "../../src/delivery/lanes.ts";
import { Slots } from "../../src/delivery/slots.ts";
import type { Sender } from "../../src/outbound/deadline.ts";
import { LANES_MAX } from "../../src/config/limits.ts";
import type { ActionStore, Store } from "../../db/store.ts";
import { holding } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openEngine } from "../support/engine.ts";

const NOW = 1_000_000;

const due = (id: string, atMs = NOW) => ({ id, revision: 1, dueAt: new Date(atMs) });

const lane = (accountId: string, host: string, keyId = "key_one") => ({ accountId, host, keyId });

function takeAll(lanes: Lanes): string[] {
  const taken: string[] = [];
  for (let next = lanes.next(); next !== null; next = lanes.next()) taken.push(next.due.id);
  return taken;
}

test("accounts take turns, and in each its hosts", () => {
  const lanes = new Lanes(new Slots({ total: 100, perHost: 100 }));
  for (const n of [1, 2, 3]) lanes.add(lane("a", "x"), due(`ax${n}`), NOW);
  lanes.add(lane("a", "y"), due("ay1"), NOW);
  lanes.add(lane("b", "x"), due("bx1"), NOW);
  expect(takeAll(lanes)).toEqual(["ax1", "bx1", "ay1", "ax2", "ax3"]);
});

test("a lane takes no more than its slots, and goes on when one is given back", () => {
  const lanes = new Lanes(new Slots({ total: 100, perHost: 2 }));
  for (const n of [1, 2, 3]) lanes.add(lane("a", "x"), due(`${n}`), NOW);
  const first = lanes.next();
  expect(takeAll(lanes)).toEqual(["2"]);
  if (first !== null) lanes.release(first);
  expect(takeAll(lanes)).toEqual(["3"]);
});

test("an account alone gets three quarters of the slots, and a newcomer always finds one", () => {
  const lanes = new Lanes(new Slots({ total: 256, perHost: 256 }));
  for (let n = 0; n < 256; n += 1) lanes.add(lane("a", `${n}`), due(`a${n}`), NOW);
  expect(takeAll(lanes)).toHaveLength(192);
  for (let n = 0; n < 100; n += 1) lanes.add(lane("b", `${n}`), due(`b${n}`), NOW);
  expect(takeAll(lanes)).toHaveLength(48);
  lanes.add(lane("c", "x"), due("c"), NOW);
  expect(takeAll(lanes)).toEqual(["c"]);
});

describe("of the keys of an account", () => {
  const fill = (lanes: Lanes, key: string, count: number, hosts = 1) => {
    for (let n = 0; n < count; n += 1) lanes.add(lane("a", `${n % hosts}`, key), due(`${key}${n}`), NOW);
  };
  /** What is taken until nothing may go any more, by key. */
  const takenBy = (lanes: Lanes) => {
    const taken: Candidate[] = [];
    for (let next = lanes.next(); next !== null; next = lanes.next()) taken.push(next);
    return { taken, of: (key: string) => taken.filter((one) => one.lane.keyId === key).length };
  };

  test("one alone takes all slots of the account; another one goes at once all the same, and a third one", () => {
    const lanes = new Lanes(new Slots({ total: 256, perHost: 64 }));
    fill(lanes, "flood", 600, 10);
    expect(takenBy(lanes).of("flood")).toBe(192);
    for (const key of ["second", "third"]) {
      fill(lanes, key, 1, 1);
      expect(takenBy(lanes).of(key)).toBe(1);
    }
    // What is left is for other accounts.
    for (let n = 0; n < 300; n += 1) fill(lanes, `more${n}`, 1);
    expect(takenBy(lanes).taken.length).toBeWithin(1, 14);
    lanes.add(lane("b", "x"), due("b"), NOW);
    expect(takeAll(lanes)).toEqual(["b"]);
  });

  test("one that calls a host with all of its slots leaves two of 64 to others", () => {
    const lanes = new Lanes(new Slots({ total: 256, perHost: 64 }));
    fill(lanes, "flood", 192);
    expect(takenBy(lanes).of("flood")).toBe(62);
    for (const key of ["second", "third", "fourth"]) fill(lanes, key, 5);
    const others = takenBy(lanes);
    expect([others.of("second"), others.of("third"), others.of("fourth")]).toEqual([1, 1, 0]);
    // A key of another account has the host's slots for itself.
    lanes.add(lane("b", "0"), due("b"), NOW);
    expect(takeAll(lanes)).toEqual(["b"]);
  });

  test("the one with the fewest in flight gets each slot that is given back, until they have the same", () => {
    for (const limits of [
      { total: 1_000, perHost: 64, hosts: 1 },
      { total: 85, perHost: 64, hosts: 40 },
    ]) {
      const lanes = new Lanes(new Slots(limits));
      fill(lanes, "flood", 200, limits.hosts);
      const { taken } = takenBy(lanes);
      fill(lanes, "second", 200, limits.hosts);
      let second = takenBy(lanes).of("second");
      for (const slot of taken.splice(0, 20)) {
        lanes.release(slot);
        second += takenBy(lanes).of("second");
      }
      expect(second).toBeGreaterThanOrEqual(20);
      const flood = taken.length;
      for (const slot of taken) lanes.release(slot);
      const last = takenBy(lanes);
      // All that the first one had is shared by now.
      expect(Math.abs(last.of("flood") - (second + last.of("second")))).toBeLessThanOrEqual(2);
      expect(flood).toBeGreaterThan(last.of("flood"));
    }
  });

  test("one that waits for nothing takes nothing away: a slot is never left free for it", () => {
    const lanes = new Lanes(new Slots({ total: 256, perHost: 4 }));
    fill(lanes, "second", 1);
    expect(takenBy(lanes).of("second")).toBe(1);
    fill(lanes, "flood", 9);
    expect(takenBy(lanes).of("flood")).toBe(3);
  });
});

test("one slot in all is enough to go on", () => {
  const lanes = new Lanes(new Slots({ total: 1, perHost: 1 }));
  lanes.add(lane("a", "x"), due("1"), NOW);
  expect(takeAll(lanes)).toEqual(["1"]);
});

test("what memory can't hold is asked of the store, oldest first", () => {
  const lanes = new Lanes(new Slots({ total: 10_000, perHost: 10_000 }));
  for (let n = 0; n < 300; n += 1) lanes.add(lane("a", "x"), due(`${n}`), NOW);
  expect(takeAll(lanes)).toHaveLength(256);
  const [needsLoad] = lanes.takeNeedingLoad(10);
  expect(needsLoad?.host).toBe("x");
  if (needsLoad !== undefined) lanes.loaded(needsLoad, [due("256"), due("later", NOW + 500)], 256, NOW);
  expect(takeAll(lanes)).toEqual(["256"]);
  expect(lanes.earliestMs).toBe(NOW + 500);
});

test("what comes while the store is asked is asked for again: it may not be in the answer", () => {
  for (const hear of ["add", "hint", "wake"] as const) {
    const lanes = new Lanes(new Slots({ total: 10, perHost: 10 }));
    if (hear === "wake") lanes.add(lane("a", "x"), due("late", NOW + 500), NOW);
    lanes.hint(lane("a", "x"), NOW, NOW);
    const [asked] = lanes.takeNeedingLoad(1);
    if (hear === "add") lanes.add(lane("a", "x"), due("late"), NOW);
    if (hear === "hint") lanes.hint(lane("a", "x"), NOW, NOW);
    if (hear === "wake") lanes.wake(NOW + 500);
    if (asked !== undefined) lanes.loaded(asked, [due("early")], 256, NOW);
    expect(takeAll(lanes)).toEqual(["early"]);
    const [again] = lanes.takeNeedingLoad(1);
    expect(again?.host).toBe("x");
    if (again !== undefined) lanes.loaded(again, [due("late")], 256, NOW + 500);
    expect(takeAll(lanes)).toEqual(["late"]);
    expect(lanes.takeNeedingLoad(1)).toEqual([]);
  }
});

test("a sleeping action wakes its lane at its time", () => {
  const lanes = new Lanes(new Slots({ total: 10, perHost: 10 }));
  lanes.add(lane("a", "x"), due("later", NOW + 500), NOW);
  lanes.wake(NOW + 499);
  expect(lanes.takeNeedingLoad(1)).toEqual([]);
  lanes.wake(NOW + 500);
  expect(lanes.takeNeedingLoad(1).map(({ host }) => host)).toEqual(["x"]);
});

test("one account's lanes, due or asleep, never take the room of all others", () => {
  const lanes = new Lanes(new Slots({ total: 10, perHost: 1 }));
  for (let n = 0; n < LANES_MAX; n += 1) lanes.add(lane("a", `${n}`), due(`a${n}`, NOW + 500), NOW);
  lanes.add(lane("b", "x"), due("b"), NOW);
  expect(takeAll(lanes)).toEqual(["b"]);
  // Nor do those of one key the room of the account's others.
  lanes.add(lane("a", "x", "key_two"), due("two"), NOW);
  expect(takeAll(lanes)).toEqual(["two"]);
});

test("a lane that was asked for a slot in vain is not kept", () => {
  const lanes = new Lanes(new Slots({ total: 1, perHost: 1 }));
  const taken = lanes.reserve(lane("a", "x"));
  for (let n = 0; n < LANES_MAX; n += 1) lanes.reserve(lane("a", `${n}`));
  if (taken !== null) lanes.release(taken);
  for (const host of ["y", "z"]) lanes.add(lane("a", host), due(host), NOW);
  const first = lanes.next();
  expect(first?.due.id).toBe("y");
  if (first !== null) lanes.release(first);
  expect(takeAll(lanes)).toEqual(["z"]);
});

test("a slot whose action was cancelled before its claim goes to the next one at once", async () => {
  const [asked, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wrapStore = (store: Store): Store => {
    const claim: ActionStore["claim"] = async (rows, at) => {
      asked.resolve();
      await cancelled.promise;
      return store.actions.claim(rows, at);
    };
    return { ...store, actions: { ...store.actions, claim } };
  };
  const { sender, began, end } = holding();
  await using engine = await openEngine({ sender, wrapStore, env: { DISPATCH_PER_HOST: "1" } });
  await engine.create({});
  await began;
  const second = await engine.create({});
  const third = await engine.create({});
  end(answered(200));
  await asked.promise;
  await engine.actionService.cancel(engine.owner, second.id, null);
  cancelled.resolve();
  await engine.saw(third.id, { status: "completed" });
});

test("100,000 due actions of one full host add under a millisecond to another's claim", () => {
  const lanes = new Lanes(new Slots({ total: 256, perHost: 64 }));
  const time = (count: number) => {
    const times = Array.from({ length: count }, (_, n) => {
      const started = performance.now();
      lanes.add(lane("b", "healthy"), due(`b${n}`), NOW);
      const candidate = lanes.next();
      const tookMs = performance.now() - started;
      expect(candidate?.lane.host).toBe("healthy");
      if (candidate !== null) lanes.release(candidate);
      return tookMs;
    });
    return times.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? 0;
  };
  const aloneMs = time(200);
  for (let n = 0; n < 100_000; n += 1) lanes.add(lane("a", "slow"), due(`a${n}`), NOW);
  for (let next = lanes.next(); next !== null; next = lanes.next());
  expect(time(200) - aloneMs).toBeLessThan(1);
});

test("never more in flight than the settings allow, in all and to one host", async () => {
  const flying = new Map<string, number>();
  let most = 0;
  let mostOfOne = 0;
  const ends: (() => void)[] = [];
  const sender: Sender = {
    send: async ({ url }): Promise<Outcome> => {
      const count = (flying.get(url) ?? 0) + 1;
      flying.set(url, count);
      mostOfOne = Math.max(mostOfOne, count);
      most = Math.max(
        most,
        [...flying.values()].reduce((sum, one) => sum + one, 0),
      );
      await new Promise<void>((resolve) => void ends.push(resolve));
      flying.set(url, (flying.get(url) ?? 1) - 1);
      return {
        kind: "answered",
        code: 200,
        body: null,
        truncated: false,
        brokenBy: null,
        retryAfter: null,
        location: null,
      };
    },
  };
  await using engine = await openEngine({ sender, env: { DISPATCH_CONCURRENCY: "8", DISPATCH_PER_HOST: "3" } });
  const urls = ["http://127.0.0.1:1001/", "http://127.0.0.1:1002/"];
  const created = await Promise.all(Array.from({ length: 60 }, (_, n) => engine.create({ url: urls[n % 2] ?? "" })));
  let done = false;
  const allDone = Promise.all(created.map(({ id }) => engine.saw(id, { status: "completed" }))).then(
    () => (done = true),
  );
  while (!done) {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await allDone;
  expect(mostOfOne).toBe(3);
  expect(most).toBe(6);
});
