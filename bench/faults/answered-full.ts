import { rmSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../test/support/free-port.ts";
import { newFolder, Service } from "../../test/support/service.ts";
import { Target } from "../../test/support/target.ts";
import { storedIn } from "../../test/support/faults/database.ts";
import { fillUp } from "../../test/support/faults/disk-full.ts";
import { broken, type FaultReport } from "../../test/support/faults/report.ts";

const DISK_BYTES = 8 * 1_048_576;
const ACTIONS = 5;
/** Of an answer, so that no room that is left in the log can take it. */
const ANSWER_CHARS = 200_000;
/** An attempt of one second has a lease of sixteen. */
export const LEASE_MS = 16_000;
const LOOK_EVERY_MS = 20;
const LOOK_MS_MAX = 10_000;

/**
 * Targets answer while the disk is full, and it stays full for so long. What they have answered must be written when there
 * is room again, however long that took: sent once, never called unknown.
 */
export async function answeredWhileFull(fullMs: number): Promise<FaultReport> {
  const folder = newFolder();
  const mount = `mount -t tmpfs -o size=${DISK_BYTES} tmpfs "$0" && cd "$0" && exec "$@"`;
  const port = await freePort();
  const answer = Promise.withResolvers<void>();
  await using target = new Target(async () => {
    await answer.promise;
    return Response.json("x".repeat(ANSWER_CHARS));
  });
  await using service = new Service({
    folder,
    wrapper: ["unshare", "-m", "sh", "-c", mount, folder],
    env: { PORT: String(port), ATTEMPT_TIMEOUT_MS: "1000" },
  });
  await service.ready();
  const root = `/proc/${service.process.pid}/root`;
  const ballast = join(root, folder, "ballast");
  const kept = async (): Promise<number> => {
    const text = await (await service.request("/metrics")).text();
    return Number(/^outgate_results_kept (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
  };
  const keeps = async (count: number): Promise<boolean> => {
    const startedMs = performance.now();
    while ((await kept()) !== count) {
      if (performance.now() - startedMs > LOOK_MS_MAX) return false;
      await Bun.sleep(LOOK_EVERY_MS);
    }
    return true;
  };

  const body = { url: target.url, retries: 3, on_unknown: "stop" };
  const created = await Promise.all(Array.from({ length: ACTIONS }, () => service.create(body)));
  await target.saw(ACTIONS);
  fillUp(ballast);
  answer.resolve();
  const isKept = await keeps(ACTIONS);
  await Bun.sleep(fullMs);
  const isStillKept = (await kept()) === ACTIONS;
  rmSync(ballast);
  const ends = await Promise.all(created.map(({ id }) => service.final(id)));
  const isEmpty = await keeps(0);
  const stored = storedIn(join(root, folder, "data"));
  return {
    figures: { actions: ACTIONS, sends: target.received.length, fullMs },
    problems: broken({
      "every answer is kept, and shown in /metrics": isKept && isStillKept && isEmpty,
      "each is sent once": target.received.length === ACTIONS,
      "each is completed by its first attempt": ends.every(
        ({ status, attempts }) => status === "completed" && attempts === 1,
      ),
      "the database is sound": stored.isSound,
    }),
  };
}
