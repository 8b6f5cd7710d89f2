import { afterAll, expect, test } from "bun:test";
import { DEADLINE_TURN_MS } from "../../src/core/limits.ts";
import { openDeadline, turnsToRead } from "../../src/outbound/connections.ts";
import { answerBytes, openRawTarget, saysAndHangs } from "../support/raw-target.ts";
import { slowness } from "../support/core.ts";
import { besideTimer } from "../support/lateness.ts";
import { eventually } from "../support/eventually.ts";
import { sender, whole, withoutHeaders } from "./attempt.ts";
import { requestTo } from "./policies.ts";

const TIMEOUT_MS = 200;
/** Of a deadline that passed so long ago. */
const TURNS = 12;

/** A target in another thread, which answers 100 ms after each request, while this one may stand still: whole, or in pieces by the path. */
const TARGET = `
  const pieces = { "/whole": ["HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n", "{}"] };
  pieces["/long"] = ["HTTP/1.1 200 OK\\r\\nContent-Length: 200000\\r\\n\\r\\n", ...Array.from({ length: 20 }, () => "x".repeat(10_000))];
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: {
    open: (socket) => { socket.data = []; },
    drain: (socket) => { pump(socket); },
    async data(socket, bytes) {
      const path = bytes.toString().split(" ")[1];
      await Bun.sleep(100);
      socket.data = (pieces[path] ?? []).map((piece) => Buffer.from(piece));
      pump(socket);
    },
  } });
  function pump(socket) {
    while (socket.data.length > 0) {
      const sent = socket.write(socket.data[0]);
      if (sent < socket.data[0].length) { socket.data[0] = socket.data[0].subarray(sent); return; }
      socket.data.shift();
    }
  }
  postMessage(server.port);
`;

const worker = new Worker(URL.createObjectURL(new Blob([TARGET], { type: "application/javascript" })));
const port = await new Promise<number>((resolve) =>
  worker.addEventListener("message", ({ data }) => resolve(Number(data)), { once: true }),
);
afterAll(() => worker.terminate());

/**
 * One call during which this thread stands still past the deadline, from the moment when the request has left: how much later than
 * so many turns of the deadline it ends, which a busy machine holds up too.
 */
async function callAndStandStill(path: string, method: "GET" | "POST") {
  const sending = sender.send(requestTo(`http://127.0.0.1:${port}${path}`, { method }), { timeoutMs: TIMEOUT_MS });
  await Bun.sleep(50);
  Bun.sleepSync(2 * TIMEOUT_MS);
  const ended = sending.then((outcome) => ({ outcome: withoutHeaders(outcome), atMs: performance.now() }));
  for (let turn = 0; turn < TURNS; turn += 1) await Bun.sleep(DEADLINE_TURN_MS);
  const turnedMs = performance.now();
  const { outcome, atMs } = await ended;
  return { outcome, lateMs: atMs - turnedMs };
}

test("an answer that came while the event loop stood still wins over the deadline", async () => {
  for (let round = 0; round < 2; round += 1) {
    expect((await callAndStandStill("/whole", "POST")).outcome).toEqual(whole(200, "{}"));
    const { outcome } = await callAndStandStill("/long", "GET");
    expect(outcome).toMatchObject({ kind: "answered", truncated: false, brokenBy: null });
  }
});

test("an answer that came while the process was stopped wins over the deadline", async () => {
  const path = new URL("../../src/outbound/send.ts", import.meta.url).pathname;
  const policies = new URL("policies.ts", import.meta.url).pathname;
  const asked = Promise.withResolvers<void>();
  await using target = await openRawTarget((socket) => {
    child.kill("SIGSTOP");
    socket.write(answerBytes(200, "{}"));
    asked.resolve();
  });
  // Long enough for a new process on a busy machine to have asked: at the deadline it would not be stopped, but done.
  const timeoutMs = 10 * TIMEOUT_MS;
  const script = `
    import { createSender } from ${JSON.stringify(path)};
    import { LOCAL, requestTo } from ${JSON.stringify(policies)};
    const outcome = await createSender(LOCAL).send(requestTo("${target.url()}"), { timeoutMs: ${timeoutMs} });
    console.log(JSON.stringify(outcome));
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  await asked.promise;
  await Bun.sleep(1.1 * timeoutMs);
  child.kill("SIGCONT");
  expect(withoutHeaders(JSON.parse(await new Response(child.stdout).text()))).toEqual(whole(200, "{}"));
});

test("a target that is silent gains little time, also after the event loop stood still", async () => {
  const { outcome, lateMs } = await callAndStandStill("/silent", "POST");
  expect(outcome).toEqual({ kind: "unknown", fault: "timed_out" });
  expect(lateMs).toBeLessThan(380);
});

test("a deadline that passed while the process stood still is over at once, and aborts once the loop has read", async () => {
  const deadline = openDeadline({ timeoutMs: 20 });
  expect([deadline.endedBy(), deadline.signal.aborted]).toEqual([null, false]);
  Bun.sleepSync(30);
  expect([deadline.endedBy(), deadline.signal.aborted, deadline.leftMs()]).toEqual(["timed_out", false, 0]);
  await eventually(async () => (deadline.signal.aborted ? true : null), "the signal");
  deadline.close();
});

test("the longer a process stood still, the longer its sockets are read before a deadline ends anything, 2 s at most", () => {
  const ms = [0, 20, 21, 1_200, 5_000, 20_000, 3_600_000].map((lateMs) => turnsToRead(lateMs) * DEADLINE_TURN_MS);
  expect(ms).toEqual([20, 20, 120, 120, 500, 2_000, 2_000]);
});

test("a deadline that was interrupted stays so", () => {
  const stop = new AbortController();
  const deadline = openDeadline({ timeoutMs: 20, stop: stop.signal });
  stop.abort();
  Bun.sleepSync(30);
  expect(deadline.endedBy()).toBe("interrupted");
  deadline.close();
});

test("the deadline is kept within 250 ms, at its start, in its middle and while the body comes", async () => {
  const hangs = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{"];
  const late = await Promise.all(
    hangs.map(async (text) => {
      await using target = await openRawTarget(saysAndHangs(text));
      const timed = await besideTimer(300, () => sender.send(requestTo(target.url()), { timeoutMs: 300 }));
      await target.abandoned();
      return timed;
    }),
  );
  for (const { tookMs, lateMs } of late) {
    expect(tookMs).toBeGreaterThan(298);
    expect(lateMs / slowness()).toBeLessThan(250);
  }
});

test("a thousand silent and dripping targets end at the deadline, and leave neither sockets nor memory", async () => {
  await using silent = await openRawTarget(() => {});
  await using dripping = await openRawTarget(saysAndHangs("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"));
  const late: number[] = [];
  const wave = async (count: number) => {
    const targets = Array.from({ length: count }, (_, at) => (at % 2 === 0 ? silent : dripping));
    const { result: outcomes, lateMs } = await besideTimer(300, () =>
      Promise.all(targets.map((target) => sender.send(requestTo(target.url()), { timeoutMs: 300 }))),
    );
    late.push(lateMs);
    return outcomes.map((outcome) => ("fault" in outcome ? outcome.fault : "brokenBy" in outcome && outcome.brokenBy));
  };
  await wave(200);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  const ends = (await Promise.all([1, 2, 3, 4, 5].map(() => wave(40)))).flat();
  for (let round = 0; round < 4; round += 1) ends.push(...(await wave(200)));
  expect([ends.length, ...new Set(ends)]).toEqual([1_000, "timed_out"]);
  await Promise.all([silent.abandoned(), dripping.abandoned()]);
  Bun.gc(true);
  expect(process.memoryUsage.rss() - before).toBeLessThan(30 * 1_048_576);
  // Asked last, since it takes memory, and would hold up other waves.
  expect(Math.max(...late) / slowness()).toBeLessThan(250);
});
