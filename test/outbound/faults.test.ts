import { describe, expect, test } from "bun:test";
import { describeOutcome as sentence, type Fault, isSuccess, type Outcome } from "../../src/core/outcome.ts";
import { answers, type Behaviour, drips, floods, openRawTarget, resets, says } from "../support/raw-target.ts";
import { answer, attempt, CUT_OFF, IN_TIME, OK, sender, whole } from "./attempt.ts";
import { requestTo } from "./policies.ts";
import { SEED } from "../support/long.ts";
import { retryAfterMs } from "../../src/core/retry.ts";

const unknown = (fault: Fault): Outcome => ({ kind: "unknown", fault });

describe("a target that is slow", () => {
  test.each<[string, Behaviour]>([
    ["silent", () => {}],
    ["dripping its head", drips("HTTP/1.1 200 OK\r\nX-A: ", "x")],
    ["dripping headers for ever", drips(OK, "X-A: b\r\n")],
    ["sending 1xx for ever", drips("", "HTTP/1.1 103 Early Hints\r\n\r\n")],
  ])("%s: unknown, timed out", async (_name, behaviour) => {
    expect(await attempt(behaviour, CUT_OFF.timeoutMs)).toEqual(unknown("timed_out"));
  });

  test("never answering the TLS hello: unknown, timed out", async () => {
    await using target = await openRawTarget(() => {}, { onConnect: () => {} });
    const url = target.url().replace("http:", "https:");
    expect(await sender.send(requestTo(url), CUT_OFF)).toEqual({ kind: "unknown", fault: "timed_out" });
    await target.abandoned();
    expect(target.connections).toBe(1);
  });

  test("with its body: what was read is kept, the status stands, only a GET is no success", async () => {
    const success = await answer(drips(`${OK}Content-Length: 999\r\n\r\n`, "ab"), CUT_OFF.timeoutMs);
    expect(success).toMatchObject({ code: 200, truncated: true, brokenBy: "timed_out" });
    expect(success.body).toMatch(/^"(ab)+"$/);
    expect([isSuccess(success, "POST"), isSuccess(success, "GET")]).toEqual([true, false]);
    const failure = await answer(drips("HTTP/1.1 500 X\r\n\r\n", "ab"), CUT_OFF.timeoutMs);
    expect(failure).toMatchObject({ code: 500, truncated: true, brokenBy: "timed_out" });
    expect(sentence(failure, 200)).toBe("The target answered with status 500.");
  });
});

describe("a target that sends too much", () => {
  test("257 KiB: the first 256 KiB, cut at a character", async () => {
    const cut = await answer(answers(200, `xy${"€".repeat(90_000)}`));
    expect([cut.code, cut.truncated, cut.brokenBy]).toEqual([200, true, null]);
    expect(JSON.parse(cut.body ?? "")).toBe(`xy${"€".repeat(87_380)}`);
  });

  test("exactly 262,144 bytes are kept whole, one more is cut; a cut text is no JSON value", async () => {
    const digits = "1".repeat(262_144);
    expect(await answer(answers(200, digits))).toEqual(whole(200, digits));
    expect(await answer(answers(200, `${digits}1`))).toEqual({
      ...whole(200, JSON.stringify(digits)),
      truncated: true,
    });
  });

  test("a body without end: cut, the connection dropped at once", async () => {
    const before = process.memoryUsage.rss();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => answer(floods(`${OK}\r\n`, Buffer.alloc(65_536, "a")), 10_000)),
    );
    const grown = process.memoryUsage.rss() - before;
    expect(outcomes.map(({ code, truncated, body, brokenBy }) => [code, truncated, body?.length, brokenBy])).toEqual(
      // Who read on would read to the deadline, which would break it.
      outcomes.map(() => [200, true, 262_146, null]),
    );
    console.log(
      `endless bodies, 20 at a time: +${Math.round(grown / 1_048_576)} MB with the targets in the same process`,
    );
    expect(grown).toBeLessThan(200 * 1_048_576);
  });

  test("headers: 5,000, one of 300 KB, one without end, headers without end", async () => {
    expect(await attempt(says(`${OK}${"X-A: b\r\n".repeat(5_000)}\r\n`))).toEqual(unknown("not_http"));
    expect(await attempt(floods(OK, "X-A: b\r\n".repeat(1_000)))).toEqual(unknown("not_http"));
    expect(await attempt(floods(`${OK}X-A: `, "b".repeat(65_536)))).toEqual(unknown("headers_too_large"));
    expect(await attempt(says(`${OK}X-A: ${"b".repeat(300_000)}\r\nContent-Length: 2\r\n\r\n{}`))).toEqual(
      whole(200, "{}"),
    );
  });

  test("a Location or Retry-After of 300 KB is cut, a number too large is the largest allowed", async () => {
    const headers = [`Location: /${"x".repeat(300_000)}`, `Retry-After: ${"9".repeat(10_000)}`];
    const { location, retryAfter } = await answer(answers(503, "", headers));
    expect(location?.length).toBe(2_048);
    expect(retryAfterMs(retryAfter, new Date(0))).toBe(86_400_000);
  });
});

describe("a target that breaks off", () => {
  test.each<[string, Behaviour]>([
    ["a length that does not come", says(`${OK}Content-Length: 9\r\n\r\n12`)],
    ["a chunk that does not come", says(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n12`)],
    ["a chunk that is none", says(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nab`)],
    ["a chunk beyond every number", says(`${OK}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab`)],
    ["RST in the middle", resets(`${OK}Content-Length: 9\r\n\r\n12`)],
  ])("%s: answered, broken", async (_name, behaviour) => {
    const broken = await answer(behaviour);
    expect(broken).toMatchObject({ code: 200, truncated: true, brokenBy: "closed" });
    expect([null, '"12"']).toContain(broken.body);
  });

  test("after the TLS hello, or at once: one call an attempt, unknown", async () => {
    const ends: [string, (socket: { end(): unknown; resetAndDestroy(): unknown }) => unknown][] = [
      ["end", (socket) => socket.end()],
      ["reset", (socket) => socket.resetAndDestroy()],
    ];
    for (const [, end] of ends) {
      for (const when of ["data", "connect"]) {
        const onConnect = (socket: Parameters<Behaviour>[0]) =>
          when === "data" ? socket.once("data", () => end(socket)) : end(socket);
        await using target = await openRawTarget(() => {}, { onConnect });
        for (const scheme of ["http:", "https:"]) {
          const outcome = await sender.send(requestTo(target.url().replace("http:", scheme)), IN_TIME);
          expect(outcome).toEqual({ kind: "unknown", fault: "closed" });
        }
        // One of each two is the probe, which carries no byte.
        expect(target.accepted).toBe(4);
      }
    }
  });

  test("by speaking no TLS where TLS was asked for: the handshake failed, nothing of the request was sent", async () => {
    await using target = await openRawTarget(() => {}, {
      onConnect: (socket) => socket.once("data", () => socket.end(`${OK}\r\n`)),
    });
    const outcome = await sender.send(requestTo(target.url().replace("http:", "https:")), IN_TIME);
    expect(outcome).toEqual({ kind: "unknown", fault: "tls_handshake" });
  });
});

describe("a target that speaks something else", () => {
  test.each([
    ["two lengths", `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ["a negative length", `${OK}Content-Length: -1\r\n\r\n{}`],
    ["a length of 20 digits", `${OK}Content-Length: 99999999999999999999\r\n\r\n{}`],
    ["a signed length", `${OK}Content-Length: +2\r\n\r\n{}`],
  ])("%s: not valid HTTP", async (_name, text) => {
    expect(await attempt(says(text))).toEqual(unknown("not_http"));
  });

  test.each([
    ["folded headers", `${OK}X-A: a\r\n b\r\n\r\n`],
    ["NUL in a header", `${OK}X-A: a\0b\r\n\r\n`],
    ["a control character in a header", `${OK}X-A: a\u001b[31m\r\n\r\n`],
    ["an SSH banner", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"],
    ["TLS bytes", Buffer.from(`160303004a020000460303${"00".repeat(40)}`, "hex")],
    ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["a web page without a head", "<!doctype html><html><body>no head</body></html>"],
  ])("%s: not valid HTTP", async (_name, text) => {
    expect(await attempt(says(text))).toEqual(unknown("not_http"));
  });

  test.each([0, 1, 20, 99, "099", 101, 600, 999, 1_000, "abc", "-200", "20x"])(
    "status %s: not valid HTTP",
    async (status) => {
      const outcome = await attempt(says(`HTTP/1.1 ${status} X\r\nContent-Length: 2\r\n\r\n{}`));
      expect(outcome).toEqual(unknown("not_http"));
    },
  );

  test("an endless body behind a bad status is dropped too", async () => {
    expect(await attempt(floods("HTTP/1.1 600 X\r\n\r\n", "x".repeat(65_536)))).toEqual(unknown("not_http"));
  });

  test("40 kinds of garbage: each a sentence, none with a word of the engine's or the address in it", async () => {
    console.log(`garbage: seed ${SEED}`);
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, kind) => attempt(says(garbage(SEED, kind)), 300)),
    );
    for (const outcome of outcomes) {
      expect(sentence(outcome, 300)).toMatch(/^The (target|headers|attempt)[A-Za-z0-9 .,;'()]+$/);
      expect(JSON.stringify({ ...outcome, body: null, location: null })).not.toMatch(
        /127\.0|ECONN|Malformed|verbose|fetch/,
      );
    }
  });
});

/** A valid answer with some of its bytes replaced, added or cut. */
function garbage(seed: number, kind: number): Uint8Array {
  const bytes = [
    ...Buffer.from(`${OK}Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
  ];
  let state = (seed + kind * 7_919) | 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  for (let change = 0; change <= kind % 5; change += 1) bytes.splice(random(bytes.length), random(3), random(256));
  return Uint8Array.from(kind % 3 === 0 ? bytes.slice(0, random(bytes.length) + 1) : bytes);
}
