import { getEventListeners } from "node:events";
import { aRequestContext, limitsServer } from "./stub-server.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { EVENT_BACKLOG_BYTES_MAX, EVENT_HEARTBEAT_MS } from "../../src/core/limits.ts";
import { answerEvents, type SseEnd, type SsePart } from "../../src/http/sse.ts";
import { FakeClock } from "../support/clock.ts";

const clock = new FakeClock();

const signals: AbortSignal[] = [];

afterEach(() => {
  // Whoever has ended leaves nothing behind.
  expect(clock.timers).toBe(0);
  expect(signals.splice(0).flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
});

/** An answer whose source does what the test says, and what became of it. */
function open({ isGone = false, isStopping = false, isRevoked = false } = {}) {
  const gone = new AbortController();
  const draining = new AbortController();
  const revoked = new AbortController();
  if (isGone) gone.abort();
  if (isStopping) draining.abort();
  if (isRevoked) revoked.abort();
  const limits: number[] = [];
  const ends: (SseEnd | Error)[] = [];
  const seen = { sourceEnds: 0 };
  let told = Promise.withResolvers<SsePart | null>();
  const request = new Request("http://localhost/", { signal: gone.signal });
  const context = aRequestContext({ request, server: limitsServer(limits) });
  signals.push(request.signal, draining.signal, revoked.signal);
  const source = { next: () => told.promise, beat: () => ":\n\n", end: () => void (seen.sourceEnds += 1) };
  const ended = (why: SseEnd | Error) => void ends.push(why);
  const late: unknown[] = [];
  const response = answerEvents(context, source, {
    clock,
    draining: draining.signal,
    revoked: revoked.signal,
    ended,
    failedLate: (error) => void late.push(error),
  });
  return {
    response,
    limits,
    ends,
    late,
    seen,
    release: () => gone.abort(),
    stop: () => draining.abort(),
    revoke: () => revoked.abort(),
    fail: (error: unknown) => told.reject(error),
    tell(part: SsePart | null) {
      const { resolve } = told;
      told = Promise.withResolvers();
      resolve(part);
    },
  };
}

describe("an answer of events", () => {
  test("lifts the time limit of its request, and gives it one again when it ends", async () => {
    const stream = open();
    stream.tell({ text: "data: 1\n\n", isLive: true });
    stream.tell({ text: "", isLive: true });
    await Bun.sleep(0);
    clock.advance(EVENT_HEARTBEAT_MS);
    stream.tell(null);
    expect(await stream.response.text()).toBe("data: 1\n\n:\n\n");
    expect({ ...stream.seen, limits: stream.limits, ends: stream.ends }).toEqual({
      sourceEnds: 1,
      limits: [0, 1],
      ends: ["over"],
    });
  });

  test.each([
    ["whose reader left before it began", { isGone: true }, "left"],
    ["that begins while the service stops", { isStopping: true }, "stopped"],
    ["whose reader may not listen any more", { isRevoked: true }, "over"],
  ])("%s has ended at once", async (_what, how, why) => {
    const stream = open(how);
    expect({ ...stream.seen, ends: stream.ends }).toEqual({ sourceEnds: 1, ends: [why as SseEnd] });
    if (why !== "left") expect(await stream.response.text()).toBe("");
  });

  test("ends once, whatever else happens afterwards", async () => {
    const stream = open();
    stream.release();
    stream.stop();
    await stream.response.body?.cancel();
    stream.tell(null);
    await Bun.sleep(0);
    expect({ ...stream.seen, ends: stream.ends }).toEqual({ sourceEnds: 1, ends: ["left"] });
  });

  test("is told nothing more once its reader may not listen, also where it waited for the reader", async () => {
    const stream = open();
    const part = { text: "x".repeat(EVENT_BACKLOG_BYTES_MAX), isLive: false };
    stream.tell(part);
    await Bun.sleep(0);
    stream.tell({ ...part, text: "late" });
    await Bun.sleep(0);
    clock.advance(EVENT_HEARTBEAT_MS);
    stream.revoke();
    expect({ ...stream.seen, ends: stream.ends }).toEqual({ sourceEnds: 1, ends: ["over"] });
    expect(await stream.response.text()).toBe(part.text);
  });

  test("ends when something happens while its reader is far behind", async () => {
    const stream = open();
    stream.tell({ text: "x".repeat(EVENT_BACKLOG_BYTES_MAX), isLive: true });
    await Bun.sleep(0);
    stream.tell({ text: "late", isLive: true });
    await Bun.sleep(0);
    expect(stream.ends).toEqual(["slow"]);
  });

  test("ends when its source fails, and says of what", async () => {
    const stream = open();
    stream.fail(new RangeError("away"));
    expect(await stream.response.text()).toBe("");
    expect(stream.ends).toEqual([new RangeError("away")]);
  });

  test("tells of a source that fails after its reader has left, once, and not as an end", async () => {
    const stream = open();
    stream.release();
    stream.fail(new RangeError("a defect"));
    await Bun.sleep(0);
    expect({ ends: stream.ends, late: stream.late }).toEqual({ ends: ["left"], late: [new RangeError("a defect")] });
  });

  test("whose reader takes a little with each heartbeat is not given up", async () => {
    const stream = open();
    const reader = stream.response.body?.getReader();
    const part = { text: "x".repeat(EVENT_BACKLOG_BYTES_MAX / 2 + 1), isLive: false };
    for (let beat = 0; beat < 5; beat += 1) {
      stream.tell(part);
      await Bun.sleep(0);
      stream.tell(part);
      await Bun.sleep(0);
      clock.advance(EVENT_HEARTBEAT_MS);
      await reader?.read();
    }
    expect(stream.ends).toEqual([]);
    clock.advance(2 * EVENT_HEARTBEAT_MS);
    expect(stream.ends).toEqual(["slow"]);
  });
});
