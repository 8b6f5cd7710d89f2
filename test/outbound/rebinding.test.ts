import { expect, test } from "bun:test";
import type { Fault } from "../../src/core/outcome.ts";
import { createSender } from "../../src/outbound/send.ts";
import { a, type DnsAnswer, NOTHING, serveDns } from "../support/namespace-dns.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { ALLOWED, FORBIDDEN, inside, PORT, runsInside, send, v4 } from "./inside.ts";
import { policyWith, requestTo } from "./policies.ts";

runsInside(import.meta.path);

const alias = (name: string, address: string): DnsAnswer => ({
  kind: "records",
  records: [
    { type: "CNAME", alias: name },
    { type: "A", name, address },
  ],
});

inside("a name", () => {
  test("that changes its address between two looks: 200 tries, never a connection to the forbidden one", async () => {
    await using allowed = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    await using forbidden = await openRawTarget(answers(200), { address: FORBIDDEN, port: PORT });
    let asked = 0;
    const rounds: readonly DnsAnswer[] = [
      a(ALLOWED),
      a(FORBIDDEN),
      alias("inner.example", FORBIDDEN),
      a(ALLOWED, FORBIDDEN),
    ];
    await using _dns = await serveDns(v4(() => rounds[(asked += 1) % rounds.length] ?? NOTHING));
    const outcomes: string[] = [];
    for (let round = 0; round < 200; round += 1) {
      const outcome = await send("rebind.example");
      outcomes.push("fault" in outcome ? outcome.fault : outcome.kind);
    }
    const count = (end: string) => outcomes.filter((outcome) => outcome === end).length;
    console.log(
      `rebinding: ${count("answered")} answered, ${count("address_private")} refused, ${forbidden.accepted} forbidden`,
    );
    expect([forbidden.accepted, allowed.connections]).toEqual([0, count("answered")]);
    expect([count("answered") > 20, count("answered") + count("address_private")]).toEqual([true, 200]);
  });

  test.each<[string, DnsAnswer, Fault]>([
    ["a private address", a("10.1.2.3"), "address_private"],
    ["loopback that is not listed", a("127.0.0.2"), "address_private"],
    ["the metadata service", a("169.254.169.254"), "address_never"],
    ["the metadata service, by CNAME", alias("metadata.example", "169.254.169.254"), "address_never"],
    ["a good address and the metadata service", a(ALLOWED, "169.254.169.254"), "address_never"],
    ["a good address and a private one", a("8.8.8.8", "192.168.0.1"), "address_private"],
    ["nothing, at 0.0.0.0", a("0.0.0.0"), "address_never"],
  ])("that stands for %s is refused", async (_what, answer, fault) => {
    await using _dns = await serveDns(v4(() => answer));
    expect(await send("www.example")).toEqual({ kind: "not_sent", fault });
  });

  test("whose IPv6 address is a mapped IPv4 one is refused, though the IPv4 one beside it is good", async () => {
    const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
    await using _dns = await serveDns((_name, type) =>
      type === "A" ? a(ALLOWED) : { kind: "records", records: [{ type: "AAAA", bytes: mapped }] },
    );
    expect(await send("www.example")).toEqual({ kind: "not_sent", fault: "address_never" });
  });

  test("that leads to our own server is refused", async () => {
    await using own = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    await using _dns = await serveDns(v4(() => a(ALLOWED)));
    const ownOrigins = [`http://0.0.0.0:${PORT}`];
    const by = createSender(policyWith({ allowedPrivateTargets: [ALLOWED], ownOrigins }));
    const outcome = await by.send(requestTo(`http://www.example:${PORT}/v1/actions`), { timeoutMs: 1_000 });
    expect([outcome, own.accepted]).toEqual([{ kind: "not_sent", fault: "address_never" }, 0]);
  });

  test("that stands for an address of this machine's interfaces is refused at our port", async () => {
    expect(Bun.spawnSync(["ip", "addr", "add", "203.0.113.9/32", "dev", "lo"]).exitCode).toBe(0);
    await using own = await openRawTarget(answers(200), { address: "203.0.113.9", port: PORT });
    await using _dns = await serveDns(v4(() => a("203.0.113.9")));
    const ownOrigins = ["https://outgate.example.com", `http://0.0.0.0:${PORT}`];
    const by = createSender(policyWith({ allowedPrivateTargets: ["203.0.113.0/24"], ownOrigins }));
    const at = (path: string) => by.send(requestTo(`http://www.example:${PORT}${path}`), { timeoutMs: 1_000 });
    const refused = await Promise.all(["/v1/actions", "/auth/login", "/mcp", "/a/token", "/hooks"].map(at));
    expect(refused).toEqual(refused.map(() => ({ kind: "not_sent", fault: "address_never" })));
    expect(own.accepted).toBe(0);
    expect((await at("/health")).kind).toBe("answered");
  });

  test("that is special is not even asked for, and localhost is answered here", async () => {
    await using target = await openRawTarget(answers(200), { address: ALLOWED, port: PORT });
    await using dns = await serveDns(v4(() => a(ALLOWED)));
    const by = createSender(policyWith({ loopbackAllowed: true }));
    const faults = [];
    for (const host of ["intranet", "a.local", "a.internal", "a.home.arpa", "a.onion", "metadata.google.internal"]) {
      const outcome = await send(host, { by });
      faults.push(outcome.kind === "not_sent" ? outcome.fault : outcome.kind);
    }
    expect(faults).toEqual([...Array.from({ length: 4 }, () => "address_private"), "address_never", "address_never"]);
    expect((await send("a.b.localhost", { by })).kind).toBe("answered");
    expect([dns.asked(), target.connections]).toEqual([0, 1]);
    expect(await send("www.example", { by })).toEqual({ kind: "not_sent", fault: "address_private" });
  });
});
