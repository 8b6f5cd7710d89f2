import { expect, test } from "bun:test";
import type { Caller } from "../../src/core/roles.ts";
import { anotherOwner } from "../actions/callers.ts";
import { type Engine, openEngine, requestFor } from "../support/engine.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { until } from "../support/until.ts";

const SLOW = 300;

const SLOTS = 160;

/** Three quarters: one account alone never gets more. */
const SLOTS_OF_ONE = 120;

const CREATES = 60;

const ROUNDS = 2;

/** A busy machine makes any round slow, by more than the bound; a lane that waits for others makes all of them. */
const ROUNDS_MAX = 10;

/** A few milliseconds on a machine that does nothing else; whoever waits for a slot waits for seconds. */
const COST_MS_MAX = 200;

/** From the create to the end of the delivery, for one action after another: sorted milliseconds. */
async function deliver(engine: Engine, caller: Caller, url: string): Promise<readonly number[]> {
  const timesMs: number[] = [];
  for (let count = 0; count < CREATES; count += 1) {
    const startedMs = performance.now();
    const ended = Promise.withResolvers<void>();
    const unsubscribe = engine.bus.subscribe((action) => {
      if (action.accountId === caller.accountId && action.status === "completed") ended.resolve();
    });
    await engine.actionService.create(caller, requestFor({ url }));
    await ended.promise;
    unsubscribe();
    timesMs.push(performance.now() - startedMs);
  }
  return timesMs.toSorted((a, b) => a - b);
}

const p99 = (timesMs: readonly number[]) => timesMs[Math.floor(timesMs.length * 0.99)] ?? 0;

test("300 slow targets of one account hold up no other one", async () => {
  // It takes every request and answers none, at 300 addresses.
  await using slow = await openRawTarget(() => {}, { address: "0.0.0.0" });
  await using quick = await openRawTarget(answers(200));
  await using engine = await openEngine({ env: { DISPATCH_CONCURRENCY: String(SLOTS) } });
  const other = await anotherOwner(engine);
  const alone: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) alone.push(p99(await deliver(engine, other, quick.url())));

  const addresses = Array.from({ length: SLOW }, (_, at) => `127.0.${1 + Math.floor(at / 200)}.${1 + (at % 200)}`);
  await Promise.all(addresses.map((address) => engine.create({ url: slow.url("/", address) })));
  await until(() => slow.requests.length >= SLOTS_OF_ONE);
  const beside: number[] = [];
  const costMs = () => Math.min(...beside) - Math.min(...alone);
  while (beside.length < ROUNDS || (costMs() >= COST_MS_MAX && beside.length < ROUNDS_MAX)) {
    beside.push(p99(await deliver(engine, other, quick.url())));
  }
  console.log(`300 slow targets: p99 alone ${shown(alone)} ms, beside them ${shown(beside)} ms`);
  expect(slow.requests.length).toBe(SLOTS_OF_ONE);
  expect(costMs()).toBeLessThan(COST_MS_MAX);
}, 60_000);

const shown = (timesMs: readonly number[]) => timesMs.map((ms) => ms.toFixed(1)).join(", ");
