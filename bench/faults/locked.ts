import { join } from "node:path";
import { startChild } from "../../test/db/processes.ts";
import { Service } from "../../test/support/service.ts";
import { Target } from "../../test/support/target.ts";
import { storedIn } from "../../test/support/faults/database.ts";
import { broken, type FaultReport, quantile } from "../../test/support/faults/report.ts";

const CREATE_EVERY_MS = 10;

/** Another process holds the write lock of the database for so long, while clients create (F6). */
export async function databaseLocked(lockMs: number): Promise<FaultReport> {
  await using target = new Target();
  await using service = new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } });
  await service.ready();
  for (let count = 0; count < 20; count += 1) await service.create({ url: target.url });
  await using child = startChild("lock", join(service.folder, "data/outgate.db"), String(lockMs));
  if ((await child.line()) !== "locked") throw new Error("The database was not locked.");

  const acknowledged: string[] = [];
  const answerMs: number[] = [];
  const other: number[] = [];
  const lookMs: number[] = [];
  const create = async () => {
    const startedMs = performance.now();
    const answer = await service.request("/v1/actions", { method: "POST", body: JSON.stringify({ url: target.url }) });
    if (answer.status === 201) acknowledged.push(((await answer.json()) as { id: string }).id);
    else other.push(answer.status);
    answerMs.push(performance.now() - startedMs);
  };
  /** How long the event loop stands still shows in what needs nothing but it. */
  const look = async () => {
    const startedMs = performance.now();
    await (await service.request("/health")).text();
    lookMs.push(performance.now() - startedMs);
  };
  const work: Promise<void>[] = [];
  const timer = setInterval(() => void work.push(create(), look()), CREATE_EVERY_MS);
  await child.line();
  clearInterval(timer);
  await Promise.all(work);

  for (const id of acknowledged) await service.final(id);
  const stored = storedIn(join(service.folder, "data"));
  const lost = acknowledged.filter((id) => stored.actions.get(id)?.status !== "completed");
  const p99Ms = Math.round(quantile(answerMs, 0.99));
  const gapMs = Math.round(Math.max(...lookMs));
  return {
    figures: { created: acknowledged.length, unavailable: other.length, lost: lost.length, p99Ms, gapMs },
    problems: broken({
      "p99 is at most the lock and half a second": p99Ms <= lockMs + 500,
      "what is not created is 503": other.every((status) => status === 503),
      "the event loop stands still for 300 ms at most": gapMs <= 300,
      "nothing acknowledged is lost": lost.length === 0 && acknowledged.length > 0 && stored.isSound,
    }),
  };
}
