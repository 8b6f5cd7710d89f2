/**
 * Measures what a flood of one account costs a quiet one: the quiet account creates 50 actions a second, and its 99th
 * percentile is compared with the one measured alone. The flood is at the rate limit, at ten times the limit, and
 * unlimited; to see what the machine itself loses, also against an unrelated server. Every part is a process of its
 * own. Rounds are interleaved, and the first is not counted.
 *
 *   bun bench/flood.ts [--rounds 6] [--seconds 8] [--rate-limit 100]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { addAccounts } from "./parts/accounts.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";
import { now, quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "8" },
    "rate-limit": { type: "string", default: "100" },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const rateLimit = Number(values["rate-limit"]);
const QUIET_PER_SECOND = 50;
const QUIET_KEY = "og_quiet_key_of_the_flood_bench";
const FLOOD_KEY = "og_flood_key_of_the_flood_bench";

const folder = mkdtempSync(join(tmpdir(), "outgate-flood-"));
await addAccounts(folder, [QUIET_KEY, FLOOD_KEY]);
await using target = await serve("target.ts");
await using flooder = await serve("flooder.ts");
await using refuser = await serve("refuser.ts");
await using service = await outgate({
  port: await freePort(),
  folder,
  env: { RATE_LIMIT_PER_SECOND: String(rateLimit) },
});
const targetUrl = `http://127.0.0.1:${target.port}/`;
const createUrl = `http://127.0.0.1:${service.port}/v1/actions`;
const elsewhere = `http://127.0.0.1:${refuser.port}/`;

interface Variant {
  readonly name: string;
  readonly url: string;
  /** 0: unlimited; null: none. */
  readonly perSecond: number | null;
}
const ALONE: Variant = { name: "alone", url: createUrl, perSecond: null };
const VARIANTS: readonly Variant[] = [
  ALONE,
  { name: "at its limit", url: createUrl, perSecond: rateLimit },
  { name: "ten times over it", url: createUrl, perSecond: 10 * rateLimit },
  { name: "as much elsewhere", url: elsewhere, perSecond: 10 * rateLimit },
  { name: "without end", url: createUrl, perSecond: 0 },
  { name: "without end elsewhere", url: elsewhere, perSecond: 0 },
];

interface Phase {
  readonly answerMs: readonly number[];
  readonly deliveryMs: readonly number[];
  readonly statuses: Readonly<Record<string, number>>;
}

const phases = new Map<string, Phase[]>(VARIANTS.map(({ name }) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const variant of VARIANTS) {
    const phase = await measure(variant);
    if (round > 0) phases.get(variant.name)?.push(phase);
    const first = round === 0 ? " (warm-up, not counted)" : "";
    console.log(
      `${variant.name.padEnd(22)} answer p50 ${ms(phase.answerMs, 0.5)} p99 ${ms(phase.answerMs, 0.99)}  ` +
        `delivery p50 ${ms(phase.deliveryMs, 0.5)} p99 ${ms(phase.deliveryMs, 0.99)}  ` +
        `flood ${JSON.stringify(phase.statuses)}${first}`,
    );
  }
}

console.log("p99 as a share of that alone, of all rounds together (least and most of a round):");
for (const { name } of VARIANTS.slice(1)) {
  console.log(`${name.padEnd(22)} answer ${shares(name, "answerMs")}  delivery ${shares(name, "deliveryMs")}`);
}
await service[Symbol.asyncDispose]();
rmSync(folder, { recursive: true, force: true });

/** Runs the quiet account beside one kind of flood. */
async function measure({ url, perSecond }: Variant): Promise<Phase> {
  await control("start", perSecond === null ? null : { url, key: FLOOD_KEY, body: floodBody(), perSecond });
  await fetch(`${targetUrl}stats`);
  const answerMs: number[] = [];
  const startedMs = now();
  const creates: Promise<void>[] = [];
  for (let count = 0; count < QUIET_PER_SECOND * seconds; count += 1) {
    const waitMs = startedMs + (count * 1_000) / QUIET_PER_SECOND - now();
    if (waitMs > 0) await Bun.sleep(waitMs);
    creates.push(create(answerMs));
  }
  await Promise.all(creates);
  const statuses = (await control("stop", perSecond === null ? null : {})) ?? {};
  await Bun.sleep(500);
  const { underWayMs } = (await (await fetch(`${targetUrl}stats`)).json()) as { underWayMs: number[] };
  return { answerMs, deliveryMs: underWayMs, statuses };
}

async function create(answerMs: number[]): Promise<void> {
  const sentMs = now();
  const answer = await fetch(createUrl, {
    method: "POST",
    headers: { Authorization: `Bearer ${QUIET_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ url: targetUrl, body: { sentMs } }),
  });
  await answer.arrayBuffer();
  if (answer.status !== 201) throw new Error(`The quiet account was answered ${answer.status}.`);
  answerMs.push(now() - sentMs);
}

function floodBody(): string {
  return JSON.stringify({ url: targetUrl, body: { flood: true } });
}

async function control(what: "start" | "stop", body: object | null): Promise<Record<string, number> | null> {
  if (body === null) return null;
  const url = `http://127.0.0.1:${flooder.port}/${what}`;
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  return what === "stop" ? ((await answer.json()) as Record<string, number>) : null;
}

/** Of all rounds together, since one round has few samples beyond its p99; and each against the same round alone. */
function shares(name: string, of: "answerMs" | "deliveryMs"): string {
  const alone = phases.get(ALONE.name) ?? [];
  const each = (phases.get(name) ?? []).map((phase, round) => {
    return quantile(phase[of], 0.99) / quantile(alone[round]?.[of] ?? [], 0.99);
  });
  const [least, most] = [Math.min(...each), Math.max(...each)];
  const all = (kind: string) =>
    quantile(
      (phases.get(kind) ?? []).flatMap((phase) => phase[of]),
      0.99,
    );
  return `${(all(name) / all(ALONE.name)).toFixed(2)} (${least.toFixed(2)}, ${most.toFixed(2)})`;
}

function ms(times: readonly number[], share: number): string {
  return `${quantile(times, share).toFixed(1).padStart(6)} ms`;
}
