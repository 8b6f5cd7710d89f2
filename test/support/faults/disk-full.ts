import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { askAsOwner, newFolder, Service } from "../service.ts";
import { Target } from "../target.ts";
import { storedIn } from "./database.ts";
import { broken, type FaultReport } from "./report.ts";

const DISK_BYTES = 8 * 1_048_576;
const HEAL_MS_MAX = 5_000;
const TRIES_MAX = 2_000;
const SETTLE_MS = 250;
const SETTLES_MAX = 8;

/**
 * A service on a disk of eight megabytes that is full at its start or while it runs, and then has room again (F5). The
 * disk is a mount of its own; from outside it is reached through the process.
 */
export async function diskFull(when: "at the start" | "while it runs"): Promise<FaultReport> {
  const isAtStart = when === "at the start";
  const folder = newFolder();
  const fill = isAtStart ? 'dd if=/dev/zero of="$0/ballast" bs=1k 2>/dev/null; ' : "";
  const mount = `mount -t tmpfs -o size=${DISK_BYTES} tmpfs "$0" && ${fill}cd "$0" && exec "$@"`;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await using target = new Target();
  await using service = new Service({
    folder,
    wrapper: ["unshare", "-m", "sh", "-c", mount, folder],
    env: { PORT: String(port), RATE_LIMIT_PER_SECOND: "0" },
  });
  const ballast = join(`/proc/${service.process.pid}/root`, folder, "ballast");
  const acknowledged: string[] = [];
  const statusOf = async (path: string) => (await fetch(url + path).catch(() => null))?.status ?? 0;
  const create = async (): Promise<number> => {
    const body = JSON.stringify({ url: target.url, body: { filler: "x".repeat(20_000) } });
    const answer = await askAsOwner(`${url}/v1/actions`, { method: "POST", body });
    if (answer?.status === 201) acknowledged.push(((await answer.json()) as { id: string }).id);
    const isPolite = answer?.status !== 503 || answer.headers.has("retry-after");
    return isPolite ? (answer?.status ?? 0) : -1;
  };

  if (!isAtStart) {
    await service.ready();
    for (let count = 0; count < 20; count += 1) await create();
    fillUp(ballast);
  }
  let refusal = await create();
  for (let tries = 0; tries < TRIES_MAX && (refusal === 201 || refusal === 0); tries += 1) {
    if (refusal === 0) await Bun.sleep(5);
    refusal = await create();
  }
  const refused = [refusal, await create(), await create()];
  // The last few kilobytes that the log has already may still take so small a write as that of a probe.
  let ready = await statusOf("/ready");
  for (let tries = 0; tries < 50 && ready === 200; tries += 1) {
    // What was found out is told for a second.
    await Bun.sleep(100);
    ready = await statusOf("/ready");
  }
  const whenFull = { ready, health: await statusOf("/health") };
  // What was claimed while there was room is still on its way, on a busy machine for longer.
  let sentWhenFull = Number.POSITIVE_INFINITY;
  for (let settles = 0; settles < SETTLES_MAX && sentWhenFull > 0; settles += 1) {
    const sentBefore = target.received.length;
    await Bun.sleep(SETTLE_MS);
    sentWhenFull = target.received.length - sentBefore;
  }

  rmSync(ballast);
  const freedMs = performance.now();
  // In this order: while the answer of a probe is a second old, creates would fill so small a disk up again.
  const isBack = async () => (await statusOf("/ready")) === 200 && (await create()) === 201;
  while (!(await isBack()) && performance.now() - freedMs < 2 * HEAL_MS_MAX) await Bun.sleep(20);
  const healedMs = Math.round(performance.now() - freedMs);
  for (const id of acknowledged) await service.final(id);
  const stored = storedIn(join(`/proc/${service.process.pid}/root`, folder, "data"));
  const lost = acknowledged.filter((id) => stored.actions.get(id)?.status !== "completed");
  const unrecorded = target.received.filter(({ headers }) => !stored.actions.has(headers.get("webhook-id") ?? ""));
  return {
    figures: { acknowledged: acknowledged.length, lost: lost.length, healedMs },
    problems: broken({
      "full: creates are answered 503 with Retry-After": refused.every((status) => status === 503),
      "full: /ready is 503, /health is 200": whenFull.ready === 503 && whenFull.health === 200,
      "full: nothing is sent, and never without a row": sentWhenFull === 0 && unrecorded.length === 0,
      "it works within five seconds of room": healedMs <= HEAL_MS_MAX,
      "nothing acknowledged is lost": lost.length === 0 && acknowledged.length > 0 && stored.isSound,
    }),
  };
}

/** Takes what room there is, to the last kilobyte. */
export function fillUp(path: string): void {
  const file = openSync(path, "w");
  const kilobyte = Buffer.alloc(1_024);
  try {
    for (;;) writeSync(file, kilobyte);
  } catch {
    // There is no room left.
  } finally {
    closeSync(file);
  }
}
