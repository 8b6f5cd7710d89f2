import { expect, test } from "bun:test";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Sender } from "../../src/outbound/deadline.ts";
import type { Claim, Queue, Store } from "../../src/core/store.ts";
import { openEngine } from "../support/engine.ts";
import { FakeClock } from "../support/clock.ts";

const TIMED_OUT: Outcome = { kind: "unknown", fault: "timed_out" };

/** A store whose commits take so long by the wall clock, and a sender that tells how long its calls may take. */
function slowCommits(slowMs: number) {
  const clock = new FakeClock();
  const timeouts: number[] = [];
  const sender: Sender = {
    async send(_request, { timeoutMs }) {
      timeouts.push(timeoutMs);
      return TIMED_OUT;
    },
  };
  const slow = async <T>(written: Promise<T>): Promise<T> => {
    const result = await written;
    clock.advance(slowMs);
    return result;
  };
  const slowly = <Row, Q extends Queue<Row>>(queue: Q): Q => ({
    ...queue,
    claimDue: (claim: Claim) => slow(queue.claimDue(claim)),
  });
  const wrapStore = (store: Store): Store => ({
    ...store,
    actions: { ...slowly(store.actions), create: (creation) => slow(store.actions.create(creation)) },
    outbox: { ...store.outbox, callbacks: slowly(store.outbox.callbacks) },
  });
  return { clock, sender, wrapStore, timeouts };
}

test("an attempt whose claim took long to commit is cut by its lease, and says after how long", async () => {
  const { timeouts, ...options } = slowCommits(12_000);
  await using engine = await openEngine(options);
  const { id } = await engine.create({ retries: 2 });
  const first = await engine.saw(id, { status: "pending", attempts: 1 });
  expect(first.result?.lastError).toBe("The target did not answer within 28 seconds.");
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "failed", attempts: 2 });
  // The first was claimed with its create, the second by a claim of its own.
  expect(timeouts).toEqual([28_000, 28_000]);
});

test("so is that of a callback", async () => {
  const { timeouts, ...options } = slowCommits(12_000);
  await using engine = await openEngine(options);
  const { id } = await engine.create({ approve: true, callback: "http://127.0.0.1:9/done" });
  const [told] = await engine.told(id, "callback", 1);
  expect(told).toMatchObject({ error: "The target did not answer within 28 seconds." });
  expect(timeouts).toEqual([28_000]);
});
