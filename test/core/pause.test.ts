import { expect, test } from "bun:test";
import { type Pause, withPauses } from "../../src/core/pause.ts";
import { ActivePauses } from "../../src/pauses/pauses.ts";
import type { ActionStatus } from "../../src/core/action.ts";
import type { TimelineEvent, TimelineEntry } from "../../src/core/timeline.ts";
import { aPause, later } from "../support/factory.ts";

const line = (seq: number, status: ActionStatus, event: TimelineEvent): TimelineEntry => ({
  seq,
  at: later(seq * 10),
  run: 1,
  status,
  event,
});

const created = line(1, "pending", { type: "created", actor: "key:agent" });

const mailed = line(2, "pending", {
  type: "mail",
  event: "action.awaiting_approval",
  delivered: true,
  attempts: 1,
  error: null,
  next_retry_at: null,
});

const started = line(3, "active", { type: "started" });

const named = (entries: readonly TimelineEntry[]) => entries.map(({ seq, event }) => `${seq} ${event.type}`);

test.each([
  ["before the action was created, and has ended", aPause({ endedAt: later(10) }), []],
  ["before it, and goes on", aPause(), ["paused after 1"]],
  ["before it, and ends while it waits", aPause({ endedAt: later(25) }), ["paused after 1", "resumed after 2"]],
  ["while it waits, once for the whole wait", aPause({ createdAt: later(15) }), ["paused after 1"]],
  ["while it waits, and ends after that", aPause({ createdAt: later(15), endedAt: later(35) }), ["paused after 1"]],
  ["after it was sent", aPause({ createdAt: later(30) }), []],
] as const)("a pause that begins %s", (_name, pause, expected) => {
  const lines = withPauses([created, mailed, started], [pause]);
  const added = lines.filter(({ event }) => event.type === "paused" || event.type === "resumed");
  expect(added.map(({ seq, event }) => `${event.type} after ${seq}`)).toEqual([...expected]);
  expect(lines.filter((entry) => !added.includes(entry))).toEqual([created, mailed, started]);
});

test("what waits still shows a pause of this very moment", () => {
  expect(named(withPauses([created], [aPause({ createdAt: created.at })]))).toEqual(["1 created", "1 paused"]);
});

test("a pause of a host covers its lanes and no key of the same name, and one of a key no such host", async () => {
  const rows = [
    aPause({ id: "pau_h", kind: "host", subject: "a.example" }),
    aPause({ id: "pau_k", kind: "key", subject: "key_b" }),
  ];
  const paused = new ActivePauses({ inForce: () => Promise.resolve(rows) });
  await paused.reload();
  const { accountId } = aPause();
  const idOf = (keyId: string, host: string) => paused.findPause({ accountId, keyId, host })?.id;
  expect([idOf("key_a", "a.example"), idOf("a.example", "b.example"), idOf("key_a", "key_b")]).toEqual([
    "pau_h",
    undefined,
    undefined,
  ]);
  // The port is part of a host; of two pauses that of the key is wider.
  expect([idOf("key_a", "a.example:8443"), idOf("key_b", "a.example")]).toEqual([undefined, "pau_k"]);
  const blocked = await paused.whilePausing({ accountId, kind: "host", subject: "c.example" }, () =>
    Promise.resolve(["c.example", "d.example"].map((host) => paused.isPaused({ accountId, keyId: "key_a", host }))),
  );
  expect(blocked).toEqual([true, false]);
});

test("a slow read of all pauses does not overwrite a newer one of an account", async () => {
  const inForce: Pause[] = [];
  const slow = Promise.withResolvers<void>();
  const reads: (string | null)[] = [];
  const paused = new ActivePauses({
    async inForce(accountId) {
      reads.push(accountId);
      const rows = [...inForce];
      if (accountId === null) await slow.promise;
      return rows;
    },
  });
  const loaded = paused.reload();
  await Promise.resolve();
  const pause = aPause();
  const written = paused.whilePausing(pause, async () => void inForce.push(pause));
  const scope = { accountId: pause.accountId, keyId: "key_any", host: "api.example.com" };
  expect(paused.isPaused(scope)).toBe(true);
  // Time for a read that does not wait for the one before it.
  await Bun.sleep(5);
  // It is written by now, but not known yet.
  expect([paused.isPaused(scope), paused.isPaused({ ...scope, accountId: "acc_other" })]).toEqual([true, false]);
  slow.resolve();
  await Promise.all([loaded, written]);
  expect(reads).toEqual([null, pause.accountId]);
  expect(paused.findPause(scope)).toEqual(pause);
});

test("a pause that could not be written stops nothing any more by the time its listener hears of it", async () => {
  const paused = new ActivePauses({ inForce: () => Promise.resolve([]) });
  const { accountId } = aPause();
  const scope = { accountId, keyId: "key_a", host: "a.example" };
  const heard: boolean[] = [];
  paused.onChange(() => void heard.push(paused.isPaused(scope)));
  const written = paused.whilePausing({ accountId, kind: "host", subject: scope.host }, () =>
    Promise.reject(new Error()),
  );
  expect(paused.isPaused(scope)).toBe(true);
  await written.catch(() => {});
  expect(heard).toEqual([false]);
});
