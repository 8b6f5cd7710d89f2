import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder, Service } from "../../test/support/service.ts";
import { Target } from "../../test/support/target.ts";
import { broken, type FaultReport } from "../../test/support/faults/report.ts";

const LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
const BASE_MS = 1_500;
const STEP_MS_MAX = 1_800;

/** Lets the wall clock of a process be what a file says; the file's name is FAKETIME_TIMESTAMP_FILE. */
export const FAKE_TIME = { LD_PRELOAD: LIBRARY, FAKETIME_NO_CACHE: "1", DONT_FAKE_MONOTONIC: "1" };

/** The wall clock of the running service is set by so much while an action waits for its next attempt (F9). */
export async function clockJumps(by: "-1h" | "+1h"): Promise<FaultReport> {
  const folder = newFolder();
  const file = join(folder, "time");
  const set = (offset: string) => {
    // Put into place whole: it is read at every call.
    writeFileSync(`${file}.new`, `${offset}\n`);
    renameSync(`${file}.new`, file);
  };
  set("+0s");
  const times: number[] = [];
  await using target = new Target(() => {
    times.push(performance.now());
    return new Response(null, { status: times.length % 2 === 1 ? 500 : 200 });
  });
  const env = { ...FAKE_TIME, FAKETIME_TIMESTAMP_FILE: file, RETRY_BASE_MS: String(BASE_MS) };
  await using service = new Service({ folder, env });
  await service.ready();
  const { id } = await service.create({ url: target.url });
  await target.saw(1);
  await service.logged("action.attempted");
  set(by);
  const action = await service.final(id);
  const stepMs = (times[1] ?? 0) - (times[0] ?? 0);
  const jumped = service.log().some(({ event }) => event === "clock.set_back");
  const timeline = await service.request(`/v1/actions/${String(id)}/timeline`);
  const { data } = (await timeline.json()) as { data: readonly { duration_ms?: number }[] };
  const durations = data.flatMap(({ duration_ms: ms }) => (ms === undefined ? [] : [ms]));
  return {
    figures: { by, stepMs: Math.round(stepMs), sends: times.length, leastDurationMs: Math.min(...durations) },
    problems: broken({
      "it completes by its second attempt": action["status"] === "completed" && times.length === 2,
      "the retry is no later than its longest step": stepMs <= STEP_MS_MAX + 500,
      "the jump is seen where it matters": jumped === by.startsWith("-"),
      "no duration is negative": durations.every((ms) => ms >= 0),
    }),
  };
}
