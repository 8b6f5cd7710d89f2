import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "bun:test";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { Random } from "../simulation/random.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { until } from "../support/until.ts";

const SEEDS = [4, 15, 35, 36, 37];

const ACTIONS = 300;

const SLOTS = 20;

const HOSTS = ["127.0.0.1:1001", "127.0.0.1:1002"];

const KEYS = ["key_one", "key_two"];

test.each(SEEDS)(
  "no host gets more calls than it may, and no row waits for a sweep, whatever happens (%d)",
  async (seed) => {
    const random = new Random(seed);
    const one = (names: readonly string[]) => random.pick(names) ?? "";
    const ends: (() => void)[] = [];
    let hangs = false;
    const underWay = new Map<string, string>();
    const sender: Sender = {
      send: async ({ headers }) => {
        if (hangs) await new Promise<void>((resolve) => void ends.push(resolve));
        underWay.delete(headers.find(([name]) => name === "webhook-id")?.[1] ?? "");
        return answered(200);
      },
    };
    const env = { DISPATCH_CONCURRENCY: "60", DISPATCH_PER_HOST: String(SLOTS) };
    await using engine = await openEngine({ sender, env });
    const { owner, bus, hostService, pauseService, actionService } = engine;

    const tooMany: string[] = [];
    let paused = "";
    bus.subscribe(({ id, host, status }) => {
      underWay.delete(id);
      // What a pause holds back gives its slot back before that is stored.
      if (status !== "active" || host === paused) return;
      underWay.set(id, host);
      const calls = [...underWay.values()].filter((other) => other === host).length;
      if (calls > SLOTS) tooMany.push(`${calls} to ${host}`);
    });

    const ids: string[] = [];
    const create = async () => {
      const caller = { ...owner, keyId: one(KEYS) };
      ids.push((await actionService.create(caller, requestFor({ url: `http://${one(HOSTS)}/` }))).action.id);
    };
    const limit = async () => {
      const [host, maxConcurrent] = [one(HOSTS), random.pick([null, 1, 3]) ?? null];
      await hostService.put(owner, host, { ...NO_HOST_SETTINGS, maxConcurrent });
    };
    const pause = async () => {
      paused = one(HOSTS);
      const begun = await pauseService.pause(owner, { keyId: null, reason: null, host: paused });
      for (let turns = random.between(0, 20); turns > 0; turns -= 1) await nextTurn();
      await pauseService.resume(owner, begun.pause.id);
      paused = "";
    };
    const creates: Promise<void>[] = [];
    while (creates.length < ACTIONS) {
      const what = random.choose({ create: 40, end: 40, hang: 3, limit: 2, pause: 2, wait: 30 });
      if (what === "create") for (let n = random.between(1, 30); n > 0; n -= 1) creates.push(create());
      if (what === "end") for (const end of ends.splice(0, random.between(1, 20))) end();
      if (what === "hang") hangs = !hangs;
      if (what === "limit") await limit();
      if (what === "pause") await pause();
      if (what === "wait") await nextTurn();
    }
    let areCreated = false;
    const created = Promise.all(creates).finally(() => (areCreated = true));
    // The clock stands still, so creates wait for a slot until calls end.
    await until(() => {
      for (const end of ends.splice(0)) end();
      return areCreated;
    });
    await created;
    hangs = false;
    // Nothing is swept but what a pause or limit asks for.
    await until(async () => {
      for (const end of ends.splice(0)) end();
      const actions = await Promise.all(ids.map((id) => actionService.get(owner, id)));
      return actions.every(({ status }) => status === "completed");
    });
    expect(tooMany).toEqual([]);
    for (const id of ids) {
      expect((await actionService.get(owner, id)).attempts).toBe(1);
    }
  },
);
