import { describe, expect, test } from "bun:test";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { RATE_SECOND_MS } from "../../src/core/limits.ts";
import { holding } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openEngine } from "../support/engine.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

describe("the limits of a host", () => {
  test("let so many calls begin in a second, by the clock that no jump changes, over a restart too", async () => {
    await using target = new Target(200);
    const { host } = new URL(target.url);
    const first = await openEngine();
    await first.hostService.put(first.owner, host, { ...NO_HOST_SETTINGS, maxPerSecond: 2 });
    const made = [];
    for (let n = 0; n < 5; n += 1) made.push(await first.create({ url: target.url }));
    await target.saw(1);
    for (let count = 2; count <= 3; count += 1) {
      first.clock.jump(3_600_000);
      first.clock.advance(499);
      expect(target.received).toHaveLength(count - 1);
      first.clock.advance(RATE_SECOND_MS / 2 - 499);
      await target.saw(count);
    }
    // What is not recorded would be sent again after the restart.
    await until(() => first.loop.inFlight === 0);
    await first.abandon();
    await using second = await openEngine({ folder: first.folder, clock: first.clock });
    await target.saw(4);
    expect(target.received).toHaveLength(4);
    second.clock.advance(RATE_SECOND_MS / 2);
    await target.saw(5);
    for (const { id } of made) await second.saw(id, { status: "completed" });
  });

  test("count callbacks to it, too", async () => {
    await using target = new Target(200);
    const { host } = new URL(target.url);
    await using engine = await openEngine();
    await engine.hostService.put(engine.owner, host, { ...NO_HOST_SETTINGS, maxPerSecond: 2 });
    await engine.create({ url: target.url, callback: `${target.url}done` });
    await target.saw(1);
    await until(() => engine.loop.inFlight === 0);
    engine.clock.advance(RATE_SECOND_MS / 2 - 20);
    await Bun.sleep(50);
    expect(target.received.map(({ path }) => path)).toEqual(["/"]);
    await until(() => {
      engine.clock.advance(1);
      return target.received.length === 2;
    });
    expect(target.received[1]?.path).toBe("/done");
  });

  test("that end let a call leave that waits for its turn", async () => {
    await using target = new Target(200);
    const { host } = new URL(target.url);
    await using engine = await openEngine();
    await engine.hostService.put(engine.owner, host, { ...NO_HOST_SETTINGS, maxPerSecond: 100 });
    await Promise.all([engine.create({ url: target.url }), engine.create({ url: target.url })]);
    await target.saw(1);
    await until(() => engine.loop.inFlight === 1);
    await Bun.sleep(20);
    expect(target.received).toHaveLength(1);
    await engine.hostService.remove(engine.owner, host);
    engine.clock.advance(1);
    await target.saw(2);
  });

  test("let so many calls be under way, and what is set anew applies to what waits", async () => {
    const { sender, end } = holding();
    const started = () => sender.sent.length;
    await using engine = await openEngine({ sender });
    const { hostService, owner } = engine;
    await hostService.put(owner, "127.0.0.1:9", { ...NO_HOST_SETTINGS, maxConcurrent: 1 });
    for (let n = 0; n < 3; n += 1) await engine.create({});
    await until(() => started() === 1);
    await Bun.sleep(20);
    expect(started()).toBe(1);
    await hostService.put(owner, "127.0.0.1:9", { ...NO_HOST_SETTINGS, maxConcurrent: 2 });
    await until(() => started() === 2);
    await hostService.remove(owner, "127.0.0.1:9");
    await until(() => started() === 3);
    end(answered(200));
  });
});
