import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { ADDRESSES_TRIED_MAX, CONNECT_TIMEOUT_MS } from "../../src/core/limits.ts";
import { createSender } from "../../src/outbound/send.ts";
import { a, type DnsAnswer, NOTHING, NXDOMAIN, SERVFAIL, serveDns, SILENCE } from "../support/namespace-dns.ts";
import { slowness } from "../support/core.ts";
import { eventually } from "../support/eventually.ts";
import { besideTimer } from "../support/lateness.ts";
import { answers, openRawTarget, says } from "../support/raw-target.ts";
import { ALLOWED, FORBIDDEN, inside, PORT, runsInside, send, v4 } from "./inside.ts";
import { policyWith, requestTo } from "./policies.ts";

runsInside(import.meta.path);

const sender = createSender(policyWith({ allowedPrivateTargets: [ALLOWED] }));

inside("a resolver", () => {
  test.each<[string, DnsAnswer]>([
    ["NXDOMAIN", NXDOMAIN],
    ["SERVFAIL", SERVFAIL],
    ["an empty answer", NOTHING],
    ["an alias that leads nowhere", { kind: "records", records: [{ type: "CNAME", alias: "gone.example" }] }],
  ])("that says %s: the name could not be resolved", async (what, answer) => {
    await using _dns = await serveDns(() => answer);
    expect(await send(`${what.replaceAll(" ", "-").toLowerCase()}.example`)).toEqual({
      kind: "not_sent",
      fault: "name_not_resolved",
    });
  });

  test("that has no address for a name is asked again at the next attempt", async () => {
    await using _target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    let answer = NOTHING;
    await using _dns = await serveDns(v4(() => answer));
    expect((await send("soon.example")).kind).toBe("not_sent");
    answer = a(ALLOWED);
    expect((await send("soon.example")).kind).toBe("answered");
  });

  test("that is silent has 3 s, or until the deadline, and then nothing was sent", async () => {
    await using _dns = await serveDns(() => SILENCE);
    const until = (endMs: number, timeoutMs: number) =>
      besideTimer(endMs, () => send(`t${timeoutMs}.example`, { timeoutMs }));
    const [long, short] = await Promise.all([until(3_000, 10_000), until(300, 300)]);
    expect(long.result).toEqual({ kind: "not_sent", fault: "name_not_resolved" });
    expect(long.tookMs).toBeGreaterThan(2_990);
    expect(long.lateMs / slowness()).toBeLessThan(250);
    expect(short.result).toEqual({ kind: "not_sent", fault: "timed_out" });
    expect(short.tookMs).toBeGreaterThan(290);
    expect(short.lateMs / slowness()).toBeLessThan(250);
  });

  test("that is silent does not hold up a stop, and nothing has left by then", async () => {
    const stop = new AbortController();
    await using _dns = await serveDns(() => {
      stop.abort();
      return SILENCE;
    });
    const limits = { timeoutMs: 10_000, stop: stop.signal };
    // A name of its own: whoever asks for it meanwhile would wait for the same answer.
    expect(await sender.send(requestTo("http://stopped.example/"), limits)).toEqual({ kind: "stopped" });
  });

  test("that knows no name of mDNS, or says nothing of it, leaves it to the system", async () => {
    await using _target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    let wasAsked = false;
    const silentOnce = () => (wasAsked ? a(ALLOWED) : ((wasAsked = true), SILENCE));
    const script = new Map([
      ["cluster.local", () => a(ALLOWED)],
      ["silent.local", silentOnce],
    ]);
    await using _dns = await serveDns(v4((name) => script.get(name)?.() ?? NXDOMAIN));
    const names = ["cluster.local", "silent.local", "gone.local"];
    const ends = await Promise.all(names.map((name) => send(name, { timeoutMs: 1_800 })));
    expect(ends.map(({ kind }) => kind)).toEqual(["answered", "answered", "not_sent"]);
  });

  test("is not asked about a name of mDNS that /etc/hosts has", async () => {
    await using _target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    await using _dns = await serveDns(v4(() => a(FORBIDDEN)));
    await Bun.write(
      "/etc/hosts",
      `${ALLOWED} localhost\n${FORBIDDEN} aprinter.local # printer.local\n${ALLOWED}\tPrinter.local\n`,
    );
    expect((await send("printer.local")).kind).toBe("answered");
  });

  test("of a network that the machine has left is asked no more, whether it was silent or knew no names", async () => {
    const config = await Bun.file("/etc/resolv.conf").text();
    const moveTo = (address: string) => Bun.write("/etc/resolv.conf", config.replace("127.0.0.1", address));
    await using _target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    let [old, other] = [SILENCE, a(ALLOWED)];
    await using _old = await serveDns(v4(() => old));
    await using _other = await serveDns(
      v4(() => other),
      "127.0.0.2",
    );
    await moveTo("127.0.0.2");
    expect((await send("moved.example", { timeoutMs: 10_000 })).kind).toBe("not_sent");
    expect((await send("moved.example")).kind).toBe("answered");
    await moveTo("127.0.0.1");
    [old, other] = [a(ALLOWED), NXDOMAIN];
    expect((await send("back.example")).kind).toBe("answered");
  });

  test("that is dead for 200 names holds up nobody else", async () => {
    await using _target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    await using _dns = await serveDns(() => SILENCE);
    const stuck = Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        send(`dead-${at}.${at % 2 === 0 ? "example" : "local"}`, { timeoutMs: 1_000 }),
      ),
    );
    const times: number[] = [];
    for (let round = 0; round < 100; round += 1) {
      const began = performance.now();
      expect((await send(ALLOWED)).kind).toBe("answered");
      await readFile(import.meta.path);
      times.push(performance.now() - began);
    }
    const slowest = times.toSorted((one, other) => other - one);
    // The system's resolver would hold each of them up for a second and more; a busy machine may hold up any for a moment.
    expect(slowest[5]).toBeLessThan(900);
    expect(slowest[50]).toBeLessThan(250);
    expect(new Set((await stuck).map((outcome) => outcome.kind))).toEqual(new Set(["not_sent"]));
  });
});

inside("several addresses", () => {
  const open = createSender(policyWith({ allowedPrivateTargets: ["127.0.0.0/16"] }));

  test("the next one is tried when one refuses or can't be reached: one attempt", async () => {
    await using target = await openRawTarget(answers(200), { address: "127.0.0.3", port: PORT });
    await using _dns = await serveDns(v4(() => a("127.0.0.2", "8.8.8.8", "127.0.0.3")));
    expect((await send("www.example", { by: open })).kind).toBe("answered");
    expect(target.requests.length).toBe(1);
  });

  test("the next one is not tried once a connection came about", async () => {
    await using first = await openRawTarget(says(""), { address: "127.0.0.2", port: PORT });
    await using second = await openRawTarget(answers(200), { address: "127.0.0.3", port: PORT });
    await using _dns = await serveDns(v4(() => a("127.0.0.2", "127.0.0.3")));
    expect(await send("www.example", { by: open })).toEqual({ kind: "unknown", fault: "closed" });
    expect([first.connections, second.accepted]).toEqual([1, 0]);
  });

  test("all are judged, sixteen are tried", async () => {
    const many = Array.from({ length: 20 }, (_, at) => `127.0.1.${at + 1}`);
    const at = (place: number) => ({ address: many[place] ?? "", port: PORT });
    let answer = a(...many);
    await using _dns = await serveDns(v4(() => answer));
    {
      await using last = await openRawTarget(answers(200), at(ADDRESSES_TRIED_MAX));
      expect([await send("www.example", { by: open }), last.accepted]).toEqual([
        { kind: "not_sent", fault: "refused" },
        0,
      ]);
    }
    await using _sixteenth = await openRawTarget(answers(200), at(ADDRESSES_TRIED_MAX - 1));
    expect((await send("www.example", { by: open })).kind).toBe("answered");
    answer = a(...many, "10.0.0.1");
    expect(await send("www.example", { by: open })).toEqual({ kind: "not_sent", fault: "address_private" });
  });

  test("all out of reach: could not be reached", async () => {
    await using _dns = await serveDns(v4(() => a("8.8.8.8", "9.9.9.9")));
    expect(await send("www.example")).toEqual({ kind: "not_sent", fault: "unreachable" });
    expect(await send("[2606:4700:4700::1111]")).toEqual({ kind: "not_sent", fault: "unreachable" });
  });
});

inside("a connection that never comes about", () => {
  const open = createSender(policyWith({ allowedPrivateTargets: ["127.0.0.0/8"] }));
  const UNREACHABLE = { kind: "not_sent", fault: "unreachable" } as const;
  const children: Bun.Subprocess[] = [];
  afterAll(() => children.forEach((child) => child.kill()));

  async function endsAtDeadline(port: number): Promise<void> {
    const { result, tookMs, lateMs } = await besideTimer(300, () => send(ALLOWED, { timeoutMs: 300, port }));
    expect(result).toEqual(UNREACHABLE);
    expect(tookMs).toBeGreaterThan(290);
    expect(lateMs / slowness()).toBeLessThan(250);
  }

  test("the target's backlog is full: not sent, at the deadline", async () => {
    await Bun.write("/proc/sys/net/core/somaxconn", "1");
    const script = `Bun.listen({ hostname: "${ALLOWED}", port: 9105, socket: { data() {} } }); console.log("up"); Bun.sleepSync(60_000);`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    children.push(child);
    await child.stdout.getReader().read();
    const taken = Array.from({ length: 4 }, () => connect({ host: ALLOWED, port: 9_105 }).on("error", () => {}));
    await endsAtDeadline(9_105);
    for (const socket of taken) socket.destroy();
  });

  describe.skipIf(Bun.which("nft") === null)("SYN is dropped", () => {
    beforeAll(() => {
      const rules =
        "add table inet f; add chain inet f i { type filter hook input priority 0; }; add rule inet f i ip daddr 127.0.7.0/24 drop; add rule inet f i tcp dport 9001 drop";
      expect(Bun.spawnSync(["nft", rules]).exitCode).toBe(0);
    });

    test("not sent, at the deadline", () => endsAtDeadline(9_001));

    test("the HTTP client ends as where the request was sent: only a connection before it tells the two apart", async () => {
      await using target = await openRawTarget(() => {}, { address: ALLOWED, port: PORT });
      const errorOf = async (port: number) => {
        const signal = AbortSignal.timeout(300);
        const error: unknown = await fetch(`http://${ALLOWED}:${port}/`, { signal, keepalive: false }).then(
          () => null,
          (thrown: unknown) => thrown,
        );
        const { name, message } = error instanceof Error ? error : new Error("It was answered.");
        return { name, message, members: Object.getOwnPropertyNames(error).toSorted() };
      };
      expect(await errorOf(9_001)).toEqual(await errorOf(PORT));
      expect(target.requests).toHaveLength(1);
    });

    test("one address has 3 s of a long deadline, and a share of a short one; then the next is called", async () => {
      await using target = await openRawTarget(answers(200), { address: "127.0.0.3", port: PORT });
      const names: Readonly<Record<string, DnsAnswer>> = {
        "silent.example": a("127.0.7.1"),
        "half.example": a("127.0.7.1", "127.0.0.3"),
        "many.example": a(...Array.from({ length: ADDRESSES_TRIED_MAX }, (_, at) => `127.0.7.${at + 1}`)),
      };
      await using _dns = await serveDns(v4((name) => names[name] ?? NXDOMAIN));
      const timed = (host: string, endMs: number, timeoutMs: number) =>
        besideTimer(endMs, () => send(host, { by: open, timeoutMs }));
      const [silent, half, shortHalf, many] = await Promise.all([
        timed("silent.example", CONNECT_TIMEOUT_MS, 10_000),
        timed("half.example", CONNECT_TIMEOUT_MS, 10_000),
        timed("half.example", 500, 1_000),
        timed("many.example", 800, 800),
      ]);
      expect([silent.result, many.result]).toEqual([UNREACHABLE, UNREACHABLE]);
      expect([half.result.kind, shortHalf.result.kind]).toEqual(["answered", "answered"]);
      expect(target.requests.length).toBe(2);
      for (const [{ tookMs, lateMs }, endMs] of [
        [silent, CONNECT_TIMEOUT_MS],
        [half, CONNECT_TIMEOUT_MS],
        [shortHalf, 500],
        [many, 780],
      ] as const) {
        expect(tookMs).toBeGreaterThan(endMs - 10);
        expect(lateMs / slowness()).toBeLessThan(250);
      }
    });

    test("a stop while it is waited for ends it at once, and no half-open connection is left", async () => {
      const stop = new AbortController();
      const limits = { timeoutMs: 10_000, stop: stop.signal };
      const began = performance.now();
      const stopped = open.send(requestTo("http://127.0.7.9:9001/"), limits);
      const asked = await eventually(() => Promise.resolve(halfOpen() || null), "a SYN");
      stop.abort();
      await stopped;
      expect([asked, performance.now() - began < 2_000, halfOpen()]).toEqual([1, true, 0]);
    });
  });
});

/** Connections of this network that have asked and heard nothing (state SYN_SENT). */
function halfOpen(): number {
  const lines = readFileSync("/proc/self/net/tcp", "utf8").split("\n");
  return lines.filter((line) => line.trim().split(/\s+/)[3] === "02").length;
}
