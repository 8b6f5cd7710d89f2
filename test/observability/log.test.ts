import type { LogLevel } from "../../src/config/values.ts";
import { describe, expect, test } from "bun:test";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LOG_GATHERED_CHARS_MAX, LOG_GATHERED_MS } from "../../src/core/limits.ts";
import type { Clock } from "../../src/core/clock.ts";
import { createLog } from "../../src/observability/log.ts";

const AT = "2026-03-01T12:00:00.500Z";

function open(level: LogLevel = "debug") {
  const writes: string[] = [];
  const timers: (readonly [delayMs: number, end: () => void])[] = [];
  const clock: Clock = {
    now: () => new Date(AT),
    monotonicMs: () => 0,
    after(delayMs, end) {
      timers.push([delayMs, end]);
      return () => {};
    },
  };
  const log = createLog((lines) => writes.push(lines), clock, level);
  const lines = () => {
    log.flush();
    return writes
      .join("")
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
  };
  /** Lets the timers run that are set. */
  const runTimers = () => {
    for (const [, end] of timers.splice(0)) end();
  };
  return { log, writes, lines, timers, runTimers, clock };
}

test("an event is one line of JSON: time, level, name, fields, in this order", () => {
  const { log, writes } = open();
  log.info("action.attempted", { action_id: "act_1", attempt: 2, code: null, is_last: false });
  log.flush();
  expect(writes).toEqual([
    `{"at":"${AT}","level":"info","event":"action.attempted","action_id":"act_1","attempt":2,"code":null,"is_last":false}\n`,
  ]);
});

test("a field that is undefined is left out", () => {
  const { log, lines } = open();
  log.info("x", { a: undefined, b: 1 });
  expect(lines()).toEqual([{ at: AT, level: "info", event: "x", b: 1 }]);
});

test("no field takes the place of time, level or name", () => {
  const { log, lines } = open();
  log.warn("x", { at: "never", level: "none", event: "y", more: true });
  expect(lines()).toEqual([{ at: AT, level: "warn", event: "x", more: true }]);
});

test("whatever stands in a text, it stays in its line", () => {
  const { log, writes, lines } = open();
  const text = 'a\nb\r\n"c"\u2028\0\ud800{"level":"error"}';
  log.info("x", { text });
  expect(lines()).toEqual([{ at: AT, level: "info", event: "x", text }]);
  expect(writes.join("").match(/\n/g)).toHaveLength(1);
});

test.each([
  ["debug", ["debug", "info", "warn", "error"]],
  ["info", ["info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["error", ["error"]],
] as const)("at level %s the lines below it are not written", (level, written) => {
  const { log, lines } = open(level);
  log.debug("debug");
  log.info("info");
  log.warn("warn");
  log.error("error");
  expect(lines()).toEqual(written.map((name) => ({ at: AT, level: name, event: name })));
});

test("lines are gathered for a moment and written together, in their order, without being asked", () => {
  const { log, writes, timers, runTimers } = open();
  log.info("one");
  log.info("two");
  expect(writes).toEqual([]);
  expect(timers.map(([delayMs]) => delayMs)).toEqual([LOG_GATHERED_MS]);
  runTimers();
  expect(writes).toHaveLength(1);
  expect(writes.join("")).toMatch(/"one".*\n.*"two".*\n$/);
  log.info("three");
  runTimers();
  expect(writes).toHaveLength(2);
});

test("an error is written at once, with what came before it", () => {
  const { log, writes } = open();
  log.info("before");
  log.error("broken");
  expect(writes).toHaveLength(1);
  expect(writes.join("")).toMatch(/"before".*\n.*"broken".*\n$/);
});

test("no more is gathered than its bound", () => {
  const { log, writes } = open();
  const longest = () => Math.max(...writes.map((lines) => lines.length));
  for (let count = 0; count < 2_500; count += 1) log.info("x", { count });
  expect(writes.length).toBeGreaterThan(1);
  expect(longest()).toBeLessThan(LOG_GATHERED_CHARS_MAX + 100);
  log.flush();
  expect(writes.join("").trimEnd().split("\n")).toHaveLength(2_500);
});

test("flush writes what is gathered once, and nothing when nothing is", () => {
  const { log, writes, runTimers } = open();
  log.info("x");
  log.flush();
  log.flush();
  runTimers();
  expect(writes).toHaveLength(1);
});

/** Runs a program whose standard output is a pipe or the file given; the log's module and its clock are at hand. */
function run<Out extends "pipe" | number>(program: string, stdout: Out) {
  return Bun.spawn([process.execPath, "-e", HEAD + program], { stdin: "pipe", stdout, stderr: "inherit" });
}

const HEAD = `
    import { createLog, writerTo } from ${JSON.stringify(join(import.meta.dir, "../../src/observability/log.ts"))};
    import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../src/core/clock.ts"))};
    const log = createLog(writerTo(1), systemClock, "info");
    const pad = "x".repeat(1_000);`;

test.each([
  ["a pipe", ""],
  // Bun makes the pipe non-blocking with the first write of its own.
  ["a pipe that others made non-blocking", 'process.stdout.write("");'],
])("at an exit nothing is lost in %s that is read slowly", async (_, before) => {
  const child = run(
    `${before}
    for (let count = 0; count < 900; count += 1) log.info("x", { count, pad });
    log.flush();
    process.exit(0);`,
    "pipe",
  );
  const reader = child.stdout.getReader();
  let text = "";
  const decoder = new TextDecoder();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true });
    await new Promise(setImmediate);
  }
  const counts = text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line).count);
  expect(counts).toEqual(Array.from({ length: 900 }, (__, count) => count));
});

test("a log that nobody reads any more does not end the program", async () => {
  const child = run(
    `
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());
    for (let count = 0; count < 2_000; count += 1) log.error("x", { count, pad });
    process.exit(7);`,
    "pipe",
  );
  await child.stdout.cancel();
  await child.stdin.end();
  expect(await child.exited).toBe(7);
});

describe("a log whose reader stands still never holds the program up while it runs", () => {
  /** A pipe that nobody reads. */
  function stalled() {
    const folder = mkdtempSync(join(tmpdir(), "outgate-log-"));
    Bun.spawnSync(["mkfifo", join(folder, "pipe")]);
    const end = openSync(join(folder, "pipe"), constants.O_RDWR | constants.O_NONBLOCK);
    const dispose = () => (closeSync(end), rmSync(folder, { recursive: true }));
    return { end, [Symbol.dispose]: dispose };
  }

  test("in a pipe", async () => {
    using pipe = stalled();
    const child = run(
      `process.stdout.write("");
      Atomics.wait = () => process.exit(3);
      for (let count = 0; count < 2_000; count += 1) log.error("x", { count, pad });
      process.exit(7);`,
      pipe.end,
    );
    expect(await child.exited).toBe(7);
  });

  test("and gets what it was too slow for as soon as it reads, up to a bound, in whole lines", async () => {
    const child = run(
      `process.stdout.write("");
      for (let count = 0; count < 2_000; count += 1) log.error("x", { count, pad });
      process.stdin.on("end", () => (log.info("last"), log.flush())).resume();`,
      "pipe",
    );
    await child.stdin.end();
    const lines = (await child.stdout.text()).trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(900);
    expect(JSON.parse(lines.at(-1) ?? "").event).toBe("last");
    expect(() => lines.map((line): unknown => JSON.parse(line))).not.toThrow();
  });
});

test("lines that a slow reader had no room for are tried again until they are written, and waited for by flush", () => {
  const tries: string[] = [];
  const { timers, runTimers, clock } = open();
  const log = createLog(
    (lines, mayWait) => (tries.push(`${lines.length} ${mayWait}`), tries.length > 2),
    clock,
    "info",
  );
  log.error("x");
  runTimers();
  log.flush();
  log.flush();
  expect(tries.map((one) => one.replace(/^[1-9]\d*/, "some"))).toEqual(["some false", "0 false", "0 true"]);
  expect(timers).toHaveLength(1);
});
