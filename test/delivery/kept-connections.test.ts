import { expect, test } from "bun:test";
import { mayUseKept } from "../../src/core/outcome.ts";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { NOTIFY_DELAYS_MS } from "../../src/core/limits.ts";
import { anAction } from "../support/factory.ts";
import { openEngine } from "../support/engine.ts";
import { answersOn, openRawTarget, type RawTarget } from "../support/raw-target.ts";
import { until } from "../support/until.ts";

const header = (request: string, name: string) =>
  new RegExp(`^${name}: *(.*)$`, "im").exec(request)?.[1]?.trim().toLowerCase() ?? null;

/** Of each request: the number of its attempt, and whether its connection was to be kept. */
const attemptsAt = ({ requests }: RawTarget) =>
  requests.map((request) => [Number(header(request, "x-outgate-attempt")), header(request, "connection") !== "close"]);

test("a kept connection is used only while attempts are left, and what is unknown is retried", () => {
  const may = (attempts: number, retries: number, onUnknown: "retry" | "stop") =>
    mayUseKept(anAction({ attempts, retries, onUnknown }));
  expect([may(1, 3, "retry"), may(2, 3, "retry"), may(3, 3, "retry")]).toEqual([true, true, false]);
  expect([may(1, 1, "retry"), may(1, 3, "stop"), may(2, 3, "stop")]).toEqual([false, false, false]);
});

test("an action goes over kept connections until its last attempt, which has a fresh one", async () => {
  await using target = await openRawTarget(answersOn(500));
  await using engine = await openEngine();
  const { id } = await engine.create({ url: target.url(), retries: 3 });
  await engine.saw(id, { status: "pending", attempts: 1 });
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "pending", attempts: 2 });
  engine.clock.advance(4_000);
  await engine.saw(id, { status: "failed", attempts: 3 });
  expect([attemptsAt(target), target.connections]).toEqual([
    [
      [1, true],
      [2, true],
      [3, false],
    ],
    2,
  ]);
});

test("the second address of a host is reached at the slowest rate, by calls and callbacks", async () => {
  await using target = await openRawTarget(answersOn(200), { address: "::1" });
  await using hooks = await openRawTarget(answersOn(200), { address: "::1" });
  await using engine = await openEngine();
  for (const { port } of [target, hooks]) {
    await engine.hostService.put(engine.owner, `localhost:${port}`, { ...NO_HOST_SETTINGS, maxPerSecond: 0.01 });
  }
  const { id } = await engine.create({ url: target.url("/", "localhost"), callback: hooks.url("/", "localhost") });
  await engine.saw(id, { status: "completed", attempts: 1 });
  expect(await engine.told(id, "callback", 1)).toMatchObject([{ delivered: true, attempts: 1 }]);
});

test("callbacks go over kept connections, and at the last attempt over a fresh one", async () => {
  await using target = await openRawTarget(answersOn(200));
  await using hooks = await openRawTarget(answersOn(500));
  await using engine = await openEngine();
  const { id } = await engine.create({ url: target.url(), callback: hooks.url() });
  await engine.saw(id, { status: "completed" });
  for (const [at, delayMs] of NOTIFY_DELAYS_MS.entries()) {
    await engine.told(id, "callback", at + 1);
    engine.clock.advance(delayMs);
  }
  await until(() => hooks.requests.length === NOTIFY_DELAYS_MS.length + 1);
  const isKept = hooks.requests.map((request) => header(request, "connection") !== "close");
  expect(isKept).toEqual([...NOTIFY_DELAYS_MS.map(() => true), false]);
});
