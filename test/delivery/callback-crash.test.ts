import { expect, test } from "bun:test";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import type { OutboxStore, Store } from "../../src/core/store.ts";
import { answering, holding } from "../actions/senders.ts";
import { openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { runsOf } from "../support/long.ts";
import { newFolders } from "../support/shared.ts";

const HOOKS = "http://127.0.0.1:9001/hooks";

/** Many processes one after the other, on a machine that may be busy. */
const BUSY = { timeout: 60_000 };

/** Ten in `npm run test:long`. */
const TIMES = runsOf(10);

const HELD = { approve: true, callback: HOOKS };

const newFolder = newFolders();

const idOf = ({ headers }: OutboundRequest) => headers.find(([name]) => name === "webhook-id")?.[1];

/** Where a process can die while a callback is under way, and how often its receiver has it by then. */
const STOP_POINTS = [
  ["before the claim is written", 0],
  ["when the claim is written", 0],
  ["when the receiver has it", 1],
  ["when it was answered, before that is written", 1],
  ["when its end is written", 1],
] as const;

type StopPoint = (typeof STOP_POINTS)[number][0];

/** An engine that stands still for ever at the point, as if killed there. */
function dyingAt(point: StopPoint) {
  const died = Promise.withResolvers<void>();
  const sent: OutboundRequest[] = [];
  const die = () => {
    died.resolve();
    return new Promise<never>(() => {});
  };
  const sender: Sender = {
    send: async (request) => {
      sent.push(request);
      return point === "when the receiver has it" ? die() : answered(200);
    },
  };
  const wrapStore = (store: Store): Store => {
    const outbox: OutboxStore = {
      ...store.outbox,
      callbacks: {
        ...store.outbox.callbacks,
        async claimDue(claim) {
          if (point === "before the claim is written") return die();
          const won = await store.outbox.callbacks.claimDue(claim);
          return point === "when the claim is written" ? die() : won;
        },
      },
      async settle(change, at) {
        if (point === "when it was answered, before that is written") return die();
        const settled = await store.outbox.settle(change, at);
        return point === "when its end is written" ? die() : settled;
      },
    };
    return { ...store, outbox };
  };
  return { died: died.promise, sent, sender, wrapStore };
}

test.each(STOP_POINTS)(
  "a process that dies %s: the next one tells of what was interrupted and delivers what is owed, under the same id",
  async (point) => {
    for (let time = 0; time < TIMES; time += 1) {
      const folder = newFolder();
      const dying = dyingAt(point);
      const before = await openEngine({ folder, ...dying });
      const { id } = await before.create(HELD);
      await dying.died;
      await before.abandon();
      const sender = answering(answered(200));
      await using engine = await openEngine({ folder, sender });
      const told = await eventually(async () => {
        const rows = await engine.told(id, "callback", 1);
        return rows.at(-1)?.delivered === true ? rows : null;
      }, "the callback");
      const sends = [...dying.sent, ...sender.sent];
      // A repeat only where the receiver had it and nobody could write that down.
      const isWritten = point === "when its end is written";
      expect(dying.sent).toHaveLength(STOP_POINTS.find(([name]) => name === point)?.[1] ?? -1);
      expect(sender.sent).toHaveLength(isWritten ? 0 : 1);
      expect(new Set(sends.map(idOf)).size).toBe(1);
      expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
      expect(new Set(told.map(({ attempts }) => attempts)).size).toBe(told.length);
      if (point !== "before the claim is written" && !isWritten) {
        const error = "The attempt was interrupted; the target may have received it.";
        const due = { next_retry_at: engine.clock.now().toISOString() };
        expect(told).toMatchObject([{ delivered: false, attempts: 1, error, ...due }, { attempts: 2 }]);
        expect(engine.lines).toContainEqual({ level: "warn", event: "callbacks.rescued", fields: { count: 1 } });
      }
      expect(await engine.get(id)).toMatchObject({
        status: "awaiting_approval",
        revision: 1,
      });
    }
  },
  BUSY,
);

test("an answer that comes after somebody else took the callback over changes nothing", async () => {
  const { sender, began, end } = holding();
  await using engine = await openEngine({ sender });
  const { store, clock } = engine;
  const { id } = await engine.create(HELD);
  await began;
  const [frozen] = await store.outbox.callbacks.orphans(null, 1, null);
  if (frozen === undefined) throw new Error("Nothing is under way.");
  const error = "Somebody else knows better.";
  const event = {
    type: "callback",
    event: "x",
    delivered: false,
    attempts: 1,
    error,
    next_retry_at: null,
  } as const;
  const change = { before: frozen, status: "given_up", attempts: 1, dueAt: null, lastError: error, event } as const;
  expect(await store.outbox.settle(change, clock.now())).toBe(true);
  end(answered(200));
  await eventually(() => engine.lines.find((line) => line.event === "notification.fenced") ?? null, "the log line");
  expect(await engine.told(id, "callback", 1)).toMatchObject([{ delivered: false, error }]);
});

test("a stop interrupts what hangs, and the next start delivers it", async () => {
  const folder = newFolder();
  const { sender, began } = holding();
  const before = await openEngine({ folder, sender });
  const { id } = await before.create(HELD);
  await began;
  const drained = before.drain(30_000);
  before.clock.advance(30_000);
  await drained;
  expect(before.clock.timers).toBe(0);
  await before.abandon();
  await using engine = await openEngine({ folder, clock: before.clock, sender: answering(answered(200)) });
  expect(await engine.told(id, "callback", 2)).toMatchObject([{ delivered: false }, { delivered: true }]);
});
