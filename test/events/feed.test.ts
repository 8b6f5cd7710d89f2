import { describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Caller } from "../../src/core/roles.ts";
import { EVENT_STREAMS_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { createBus } from "../../src/core/bus.ts";
import { createFeed, type EventStream, positionText } from "../../src/events/feed.ts";
import type { ActionStore, ChangePage, ActionChange } from "../../src/core/store.ts";
import { as, refusalOf } from "../actions/callers.ts";
import { openEngine } from "../support/engine.ts";
import { anAction, answered, NOON } from "../support/factory.ts";
import { shared } from "../support/shared.ts";

// Every call is answered at once, most of them well.
let sent = 0;
const send = async () => answered((sent += 1) % 5 === 0 ? 500 : 200);
const engine = await shared(openEngine({ sender: { send } }));

/** Settled lives of so many actions, ten at a time. */
async function lives(count: number): Promise<void> {
  const one = async (_: unknown, at: number) => {
    const { id } = await engine.create({ retries: 1, approve: at % 3 === 0 });
    const action = await engine.get(id);
    if (action.status === "awaiting_approval") await engine.actionService.approve(engine.owner, id, null);
    await Promise.race([engine.saw(id, { status: "completed" }), engine.saw(id, { status: "failed" })]);
  };
  for (let left = count; left > 0; left -= 10) await Promise.all(Array.from({ length: Math.min(10, left) }, one));
}

const lineOf = ({ seq, action }: ActionChange) => `${seq} ${action.id} ${action.status} ${action.attempts}`;

/** Everything of the account behind a position, asked of the store itself. */
async function changesAfter(after: number): Promise<readonly ActionChange[]> {
  const told: ActionChange[] = [];
  for (let position = after; ;) {
    const page = await engine.store.actions.changes(engine.owner.accountId, position);
    told.push(...page.changes);
    if (page.isLast) return told;
    position = page.position;
  }
}

/** Takes what the stream tells until it has told of this position. */
async function readUntil(stream: EventStream, position: number): Promise<readonly ActionChange[]> {
  const told: ActionChange[] = [];
  while ((told.at(-1)?.seq ?? 0) < position) {
    const page = await stream.next();
    if (page === null) break;
    told.push(...page.changes);
  }
  return told;
}

describe("a stream of events", () => {
  test("tells every change once and in the order of the commits, however many write, come and go", async () => {
    const from = await engine.store.actions.position();
    const early = await engine.feed.open(engine.owner, null);
    const writing = lives(200);
    // These come in the middle of it, each from behind the last event that the one before it has seen, and leave again.
    const relay = (async () => {
      const told: ActionChange[] = [];
      for (let turn = 0; turn < 25; turn += 1) {
        const stream = await engine.feed.open(engine.owner, positionText(told.at(-1)?.seq ?? from));
        const page = await stream.next();
        told.push(...(page?.changes ?? []));
        stream.end();
        await nextTurn();
      }
      return told;
    })();
    const [, relayed] = await Promise.all([writing, relay]);
    const late = await engine.feed.open(engine.owner, positionText(from));
    const expected = (await changesAfter(from)).map(lineOf);
    const last = Number(expected.at(-1)?.split(" ")[0]);
    expect(expected.length).toBeGreaterThan(600);
    for (const stream of [early, late]) {
      expect((await readUntil(stream, last)).map(lineOf)).toEqual(expected);
      stream.end();
    }
    expect(relayed.length).toBeGreaterThan(0);
    expect(relayed.map(lineOf)).toEqual(expected.slice(0, relayed.length));
  });

  test("begins now, and says so of what happens from then on", async () => {
    await lives(1);
    const stream = await engine.feed.open(engine.owner, null);
    expect(stream.position).toBe(positionText(await engine.store.actions.position()));
    const { id } = await engine.create({ approve: true });
    const page = await stream.next();
    expect(page?.changes.map(({ action }) => `${action.id} ${action.status}`)).toEqual([`${id} awaiting_approval`]);
    stream.end();
  });

  test("that goes on from an earlier event tells what lies behind apart from what happens", async () => {
    const from = await engine.store.actions.position();
    const first = await engine.create({ approve: true });
    const stream = await engine.feed.open(engine.owner, positionText(from));
    const behind = await stream.next();
    expect(behind).toMatchObject({ changes: [{ action: { id: first.id } }], isLive: false });
    expect(behind?.position).toBe(positionText(await engine.store.actions.position()));
    const second = await engine.create({ approve: true });
    expect(await stream.next()).toMatchObject({ changes: [{ action: { id: second.id } }], isLive: true });
    stream.end();
  });

  test("is over for whoever waits as soon as it is ended", async () => {
    const stream = await engine.feed.open(engine.owner, null);
    const waiting = stream.next();
    stream.end();
    stream.end();
    expect(await waiting).toBeNull();
    expect(await stream.next()).toBeNull();
  });

  test("is not opened by a key that is revoked", async () => {
    const caller: Caller = { ...engine.owner, revoked: AbortSignal.abort() };
    expect(await refusalOf(engine.feed.open(caller, null))).toMatchObject({ code: "unauthorized" });
    const revoking = new AbortController();
    const opening = engine.feed.open({ ...engine.owner, revoked: revoking.signal }, null);
    revoking.abort();
    expect(await refusalOf(opening)).toMatchObject({ code: "unauthorized" });
  });

  test.each(["garbage", "MTIz=", "MTIz ", "LTE", "MQ==", positionText(10 ** 14), positionText(2 ** 60), "%00", "12"])(
    "does not go on from an id that none of its events has: %s",
    async (id) => {
      expect(await refusalOf(engine.feed.open(engine.owner, id))).toMatchObject({ code: "invalid_query" });
    },
  );

  test("is one of a hundred at most; whoever ends one makes room, and other accounts have their own", async () => {
    const open = () => engine.feed.open(engine.owner, null);
    const streams = await Promise.all(Array.from({ length: EVENT_STREAMS_PER_ACCOUNT_MAX }, open));
    expect(await refusalOf(open())).toMatchObject({ code: "rate_limited" });
    const other = await engine.feed.open({ ...engine.owner, accountId: "acc_other" }, null);
    streams[7]?.end();
    streams.push(await open());
    expect(await refusalOf(open())).toMatchObject({ code: "rate_limited" });
    for (const stream of [...streams, other]) stream.end();
    (await open()).end();
  });

  test("makes room for another key where one has them all: its newest ends", async () => {
    const open = (caller: Caller) => engine.feed.open(caller, null);
    const [flood, ann] = [as("agent", engine.owner), { ...engine.owner, keyId: null, personId: "per_ann" }];
    const streams: EventStream[] = [];
    for (let count = 0; count < EVENT_STREAMS_PER_ACCOUNT_MAX; count += 1) streams.push(await open(flood));
    const isOver = async (stream: EventStream | undefined) => {
      const next = stream?.next() ?? Promise.resolve(null);
      await new Promise((resolve) => setImmediate(resolve));
      return Bun.peek.status(next) === "fulfilled";
    };
    const mine = [await open(engine.owner), await open(ann)];
    expect(await Promise.all([...mine, ...streams.slice(0, 98)].map(isOver))).not.toContain(true);
    expect(await Promise.all(streams.slice(98).map(isOver))).toEqual([true, true]);
    // Who has the most gets no further one for it.
    expect(await refusalOf(open(flood))).toMatchObject({ code: "rate_limited" });
    for (const stream of [...mine, ...streams]) stream.end();
  });
});

/** A store of which the test lets each answer go; what it says was so when it was asked. */
function slowStore() {
  const answers: (() => void)[] = [];
  const asked: number[] = [];
  let newest = 0;
  const actions: Pick<ActionStore, "changes" | "position" | "knowsPosition"> = {
    changes(_accountId, after) {
      asked.push(after);
      const position = newest;
      const changes = Array.from({ length: position - after }, (_, at) => ({ seq: after + at + 1, at: NOON, action }));
      const { promise, resolve } = Promise.withResolvers<ChangePage>();
      answers.push(() => resolve({ changes, position, isLast: true }));
      return promise;
    },
    position: async () => newest,
    knowsPosition: async () => true,
  };
  const bus = createBus();
  const feed = createFeed(actions);
  bus.subscribe(feed.changed);
  const action = anAction();
  return {
    asked,
    open: () => feed.open({ ...engine.owner, accountId: action.accountId }, null),
    commit() {
      newest += 1;
      bus.publish(action);
    },
    async answer() {
      await nextTurn();
      for (const answer of answers.splice(0)) answer();
      await nextTurn();
    },
  };
}

test("what is committed while the store is being asked is told, whenever the news comes", async () => {
  const store = slowStore();
  const streams = await Promise.all([store.open(), store.open(), store.open()]);
  const told = streams.map((): number[] => []);
  const reading = streams.map(async (stream, at) => {
    for (let page = await stream.next(); page !== null; page = await stream.next()) {
      told[at]?.push(...page.changes.map(({ seq }) => seq));
      // They fall out of step, and into it again.
      await turns(at);
    }
  });
  const STEPS = 300;
  for (let step = 0; step < STEPS; step += 1) {
    store.commit();
    await turns((step * 7) % 4);
    if ((step * 5) % 3 === 0) await store.answer();
  }
  for (let step = 0; step < 10; step += 1) await store.answer();
  const all = Array.from({ length: STEPS }, (_, at) => at + 1);
  expect(told).toEqual([all, all, all]);
  for (const stream of streams) stream.end();
  await Promise.all(reading);
});

test("what a read finds that ends after its stream is told to nobody", async () => {
  const store = slowStore();
  const stream = await store.open();
  store.commit();
  const reading = stream.next();
  stream.end();
  await store.answer();
  expect(await reading).toBeNull();
});

test("what another stream asked for before the news is no answer to the news", async () => {
  const store = slowStore();
  const idle = await store.open();
  const first = idle.next();
  await store.answer();
  const late = await store.open();
  const second = late.next();
  await nextTurn();
  store.commit();
  for (let step = 0; step < 4; step += 1) await store.answer();
  const pages = await Promise.all([first, second]);
  expect(pages.map((page) => page?.changes.map(({ seq }) => seq))).toEqual([[1], [1]]);
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

test("streams of one account that stand at the same place ask the store once", async () => {
  const store = slowStore();
  const streams = await Promise.all(Array.from({ length: 50 }, () => store.open()));
  const waiting = streams.map((stream) => stream.next());
  await store.answer();
  for (let news = 0; news < 3; news += 1) store.commit();
  await store.answer();
  const pages = await Promise.all(waiting);
  expect(store.asked).toEqual([0, 0]);
  expect(pages[0]?.changes.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(new Set(pages.map((page) => page?.changes)).size).toBe(1);
});

test("a stream whose store can't be read says so to whoever asks", async () => {
  const actions = {
    changes: () => Promise.reject(new Error("away")),
    position: async () => 0,
    knowsPosition: async () => true,
  };
  const stream = await createFeed(actions).open(engine.owner, null);
  expect(await stream.next().catch(String)).toBe("Error: away");
});
