import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Queue, Store } from "../../src/core/store.ts";
import type { Action } from "../../src/core/action.ts";
import { systemIds } from "../../src/core/ids.ts";
import { answering } from "../actions/senders.ts";
import { FakeClock } from "../support/clock.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered, creationOf, anAction } from "../support/factory.ts";

/** What a call of the queue does to its task the first times: nothing that anybody foresaw. */
function failing(name: keyof Queue<Action>, times: number) {
  const state = { left: 0, failed: 0 };
  const wrapStore = (store: Store): Store => {
    const call = store.actions[name] as (...args: readonly unknown[]) => Promise<unknown>;
    const fails = (...args: readonly unknown[]) => {
      if (state.left === 0) return call(...args);
      state.left -= 1;
      state.failed += 1;
      // Of a bug: at once, and not by a promise.
      throw new TypeError("x is not a function");
    };
    return { ...store, actions: { ...store.actions, [name]: fails } };
  };
  return { state, wrapStore, begin: () => (state.left = times) };
}

/** An action of which this process has not heard: only its sweep can find it. */
async function unheard({ store, owner, clock }: Engine): Promise<string> {
  const at = clock.now();
  const action = anAction({ id: systemIds.action(at), accountId: owner.accountId, createdAt: at, dueAt: at });
  await store.actions.create(creationOf(action));
  return action.id;
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    clock.advance(1_000);
    await turn();
    await turn();
  }
}

describe("an error that nobody expected ends no background task: it is logged, counted, and the task runs again", () => {
  const CASES = [
    ["lanes", "sweep"],
    ["claimDue", "claim"],
    ["orphans", "rescue"],
    ["reschedule", "clock"],
  ] as const;
  test.each(CASES)("in %s", async (name, task) => {
    const { state, wrapStore, begin } = failing(name, 3);
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    begin();
    // Whoever sees it looks at everything anew, by `reschedule` first.
    if (name === "reschedule") engine.clock.jump(-3_600_000);
    const id = await unheard(engine);
    await eventually(async () => {
      await pass(engine.clock, 5_000);
      return sender.sent.length > 0 && state.failed === 3 ? true : null;
    }, "the sweep");
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(await engine.renderMetrics()).toContain(`outgate_task_failures_total{task="actions.${task}"} 3\n`);
    const failed = engine.lines.filter(({ event }) => event === "dispatch.failed");
    expect(failed.map(({ fields }) => fields["task"])).toEqual([task, task, task]);
  });

  test("in the clock check, where even the log can't be written", async () => {
    const clock = new FakeClock();
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, clock });
    let failures = 3;
    const now = clock.now.bind(clock);
    clock.now = () => {
      if (failures === 0) return now();
      failures -= 1;
      throw new RangeError("Invalid time value");
    };
    await pass(clock, 10_000);
    expect(failures).toBe(0);
    const id = await unheard(engine);
    await eventually(async () => {
      await pass(clock, 5_000);
      return sender.sent.length === 1 ? true : null;
    }, "the sweep");
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(await engine.renderMetrics()).toMatch(/^outgate_task_failures_total\{task="actions\.clock"\} [1-3]$/m);
  });

  test("in a start: it is tried again every second, and nothing is claimed before", async () => {
    const { wrapStore, begin } = failing("orphans", 2);
    begin();
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    const { id } = await engine.create({});
    await pass(engine.clock, 1_000);
    expect(sender.sent).toEqual([]);
    await eventually(async () => {
      await pass(engine.clock, 1_000);
      return sender.sent.length === 1 ? true : null;
    }, "the start");
    await engine.saw(id, { status: "completed", attempts: 1 });
  });

  test("in the probe of a paused loop", async () => {
    const state = { probes: 0 };
    const wrapStore = (store: Store): Store => ({
      ...store,
      probe: () => {
        state.probes += 1;
        // Each of the three loops probes for itself.
        if (state.probes > 6) return store.probe();
        throw new TypeError("x is not a function");
      },
    });
    await using engine = await openEngine({ sender: answering(answered(200)), wrapStore });
    const { id } = await engine.create({});
    await eventually(async () => {
      await pass(engine.clock, 1_000);
      return state.probes > 8 ? true : null;
    }, "a probe that goes well");
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(state.probes).toBeGreaterThan(3);
  });
});
