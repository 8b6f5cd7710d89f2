import { expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { READY_FRESH_MS, READY_MS_MAX } from "../../src/core/limits.ts";
import { createReadiness } from "../../src/http/system-routes.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";

/** A store whose probes end as the test says, and how many there were. */
function aStore() {
  const clock = new FakeClock();
  const state = { probes: 0, probe: (): Promise<void> => Promise.resolve() };
  const isReady = createReadiness({
    clock,
    probe() {
      state.probes += 1;
      return state.probe();
    },
  });
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
