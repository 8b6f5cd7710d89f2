/**
 * Many tries of DNS rebinding: `bun bench/rebinding.ts [tries]`, Linux, as root. In a network namespace, names change
 * their address at every lookup, over http and https. Prints counts, and fails unless the forbidden address was never
 * connected to and a certificate of another name never accepted.
 */
import { createSender } from "../src/outbound/send.ts";
import { TestAuthority } from "../test/outbound/certificates.ts";
import { policyWith, requestTo } from "../test/outbound/policies.ts";
import { isInside, isPossible, runInside } from "../test/support/namespace.ts";
import { a, type DnsAnswer, NXDOMAIN, serveDns } from "../test/support/namespace-dns.ts";
import { answers, openRawTarget, type RawTarget } from "../test/support/raw-target.ts";

const TRIES = Number(process.argv[2] ?? 10_000);

const AT_A_TIME = 32;

const ALLOWED = "127.0.0.1";

const FORBIDDEN = "127.0.0.66";

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 66];

/** The addresses of a name at one lookup. */
const LOOKUPS: readonly (readonly [v4: DnsAnswer, v6: DnsAnswer])[] = [
  [a(ALLOWED), NXDOMAIN],
  [a(FORBIDDEN), NXDOMAIN],
  [a(ALLOWED, FORBIDDEN), NXDOMAIN],
  [a(FORBIDDEN, ALLOWED), NXDOMAIN],
  [
    {
      kind: "records",
      records: [
        { type: "CNAME", alias: "inner.example" },
        { type: "A", name: "inner.example", address: FORBIDDEN },
      ],
    },
    NXDOMAIN,
  ],
  [a(ALLOWED), { kind: "records", records: [{ type: "AAAA", bytes: MAPPED }] }],
];

async function main(): Promise<number> {
  if (isInside()) return measure();
  if (!isPossible()) {
    console.log("Not measured: unshare is not permitted here.");
    return 1;
  }
  const { exitCode, output } = await runInside([process.execPath, import.meta.path, String(TRIES)], 600_000);
  console.log(output.trimEnd());
  return exitCode;
}

async function measure(): Promise<number> {
  using authority = new TestAuthority();
  const good = authority.issue("DNS:*.rebind.example");
  await using plain = await openRawTarget(answers(200, "{}"), { address: ALLOWED, port: 8_080 });
  await using secure = await openRawTarget(answers(200, "{}"), { address: ALLOWED, port: 8_443, tls: good });
  await using badPlain = await openRawTarget(answers(200, "{}"), { address: FORBIDDEN, port: 8_080 });
  // Its certificate is valid for the name too: only the address check stands in the way.
  await using badSecure = await openRawTarget(answers(200, "{}"), { address: FORBIDDEN, port: 8_443, tls: good });
  await using other = await openRawTarget(answers(200, "{}"), {
    address: ALLOWED,
    port: 9_443,
    tls: authority.issue("DNS:other.example"),
  });
  await using _dns = await serveDns((name, type) => (name.startsWith("still") ? still(type) : changing(type)));

  const sender = createSender(policyWith({ allowedPrivateTargets: [`${ALLOWED}/32`] }), { ca: authority.ca });
  const forbidden = () => badPlain.accepted + badSecure.accepted;
  const began = performance.now();
  const http = await tries("http", 8_080, sender);
  const https = await tries("https", 8_443, sender);
  const wrong = await wrongNames(sender, other);
  console.log(`${2 * TRIES} tries in ${((performance.now() - began) / 1_000).toFixed(1)} s, ${AT_A_TIME} at a time`);
  console.log(`http:  ${show(http)}; the allowed address saw ${plain.connections} connections`);
  console.log(`https: ${show(https)}; the allowed address saw ${secure.connections} connections`);
  console.log(`connections to the forbidden address: ${forbidden()}`);
  console.log(`certificate of another name: ${wrong} of 100 not accepted, ${other.requests.length} requests seen`);
  const answered = (http.get("answered") ?? 0) + (https.get("answered") ?? 0);
  const isRight = forbidden() === 0 && wrong === 100 && other.requests.length === 0 && answered > TRIES / 20;
  return isRight ? 0 : 1;
}

/** Random addresses for every query. */
function changing(type: "A" | "AAAA"): DnsAnswer {
  const lookup = LOOKUPS[Math.floor(Math.random() * LOOKUPS.length)] ?? [NXDOMAIN, NXDOMAIN];
  return lookup[type === "A" ? 0 : 1];
}

function still(type: "A" | "AAAA"): DnsAnswer {
  return type === "A" ? a(ALLOWED) : NXDOMAIN;
}

async function tries(
  scheme: string,
  port: number,
  sender: ReturnType<typeof createSender>,
): Promise<Map<string, number>> {
  const ends = new Map<string, number>();
  let next = 0;
  const worker = async () => {
    while (next < TRIES) {
      next += 1;
      // Names repeat, as in retries; simultaneous lookups of one name are one query.
      const url = `${scheme}://n${next % 100}.rebind.example:${port}/`;
      const outcome = await sender.send(requestTo(url), { timeoutMs: 5_000 });
      const end = "fault" in outcome ? outcome.fault : outcome.kind;
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  return ends;
}

async function wrongNames(sender: ReturnType<typeof createSender>, target: RawTarget): Promise<number> {
  let refused = 0;
  for (let round = 0; round < 100; round += 1) {
    const outcome = await sender.send(requestTo(target.url("/", "still.rebind.example")), { timeoutMs: 5_000 });
    if (outcome.kind === "not_sent" && outcome.fault === "certificate") refused += 1;
  }
  return refused;
}

function show(ends: ReadonlyMap<string, number>): string {
  return [...ends].map(([end, count]) => `${count} ${end}`).join(", ");
}

process.exit(await main());
