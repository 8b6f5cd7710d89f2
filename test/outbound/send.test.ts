import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../src/core/outcome.ts";
import { createSender } from "../../src/outbound/send.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { IN_TIME, sender } from "./attempt.ts";
import { policyWith, requestTo } from "./policies.ts";

const INTERRUPTED: Outcome = { kind: "unknown", fault: "interrupted" };

describe("what is not allowed", () => {
  test("is judged again at the attempt, and no connection is made", async () => {
    await using target = await openRawTarget(answers(200));
    const closed = createSender(policyWith());
    for (const host of ["127.0.0.1", "localhost", "a.localhost", "[::1]", "intranet", "billing.internal"]) {
      const outcome = await closed.send(requestTo(target.url("/", host)), IN_TIME);
      expect(outcome).toEqual({ kind: "not_sent", fault: "address_private" });
    }
    expect(target.accepted).toBe(0);
  });

  test("is refused for good where no setting opens it, and where the URL is none", async () => {
    const urls = [
      "http://169.254.169.254/",
      "http://0/",
      "http://[::ffff:127.0.0.1]/",
      "http://metadata.google.internal/",
      "file:///etc/hostname",
      "data:text/plain,x",
      "http://127.0.0.1:25/",
      "",
    ];
    const outcomes = await Promise.all(urls.map((url) => sender.send(requestTo(url), IN_TIME)));
    expect(outcomes).toEqual(urls.map(() => ({ kind: "not_sent", fault: "address_never" })));
  });

  test("is our own server, also by an address that a listed name stands for", async () => {
    await using target = await openRawTarget(answers(200));
    const ownOrigins = [`http://127.0.0.1:${target.port}`];
    const careful = createSender(
      policyWith({ loopbackAllowed: true, ownOrigins, allowedPrivateTargets: ["localhost"] }),
    );
    const refused = await careful.send(requestTo(target.url("/v1/actions", "localhost")), IN_TIME);
    expect([refused, target.accepted]).toEqual([{ kind: "not_sent", fault: "address_never" }, 0]);
    const allowed = await careful.send(requestTo(target.url("/health", "localhost")), IN_TIME);
    expect(allowed.kind).toBe("answered");
  });
});

test("a call that may no longer begin when its target has accepted a connection sends nothing", async () => {
  let mayBegin = true;
  await using target = await openRawTarget(answers(200), { onConnection: () => (mayBegin = false) });
  const limits = { ...IN_TIME, mayBegin: () => mayBegin };
  expect(await sender.send(requestTo(target.url()), limits)).toEqual({ kind: "stopped" });
  expect([target.accepted, target.connections]).toEqual([1, 0]);
});

describe("the end of an attempt", () => {
  test("a stop ends it at once: as interrupted while it waits for the answer, as stopped before it began", async () => {
    const stop = new AbortController();
    await using target = await openRawTarget(() => stop.abort());
    const limits = { timeoutMs: 10_000, stop: stop.signal };
    expect(await sender.send(requestTo(target.url()), limits)).toEqual(INTERRUPTED);
    expect(await sender.send(requestTo(target.url()), limits)).toEqual({ kind: "stopped" });
    expect(target.connections).toBe(1);
    await target.abandoned();
  });

  test("a stop after the head leaves the answer what it is", async () => {
    const stop = new AbortController();
    await using target = await openRawTarget((socket) => {
      socket.write("HTTP/1.1 202 X\r\nContent-Length: 10\r\n\r\n12345", () => setTimeout(() => stop.abort(), 250));
    });
    const outcome = await sender.send(requestTo(target.url()), { timeoutMs: 10_000, stop: stop.signal });
    expect(outcome).toMatchObject({
      kind: "answered",
      code: 202,
      body: '"12345"',
      truncated: true,
      brokenBy: "closed",
    });
    await target.abandoned();
  });

  test("nothing that listens to the stop is left behind", async () => {
    const stop = new AbortController();
    let listeners = 0;
    const { signal } = stop;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    await using target = await openRawTarget(answers(200));
    await Promise.all(
      Array.from({ length: 20 }, () => sender.send(requestTo(target.url()), { ...IN_TIME, stop: signal })),
    );
    expect(listeners).toBe(0);
  });

  test("the environment's proxy and its leave to skip certificates are not obeyed", async () => {
    await using target = await openRawTarget(answers(200));
    const script = `
      import { createSender } from "./src/outbound/send.ts";
      import { LOCAL, requestTo } from "./test/outbound/policies.ts";
      const outcome = await createSender(LOCAL).send(requestTo(${JSON.stringify(target.url())}), { timeoutMs: 10_000 });
      console.log(outcome.kind);
    `;
    const proxy = "http://127.0.0.1:1";
    const child = Bun.spawn([process.execPath, "-e", script], {
      cwd: `${import.meta.dir}/../..`,
      env: { ...process.env, http_proxy: proxy, HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: "" },
      stdout: "pipe",
    });
    expect([(await child.stdout.text()).trim(), target.connections]).toEqual(["answered", 1]);
  });
});
