import { SQLiteError } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startChild } from "../../test/db/processes.ts";
import { askAsOwner, newFolder, Service } from "../../test/support/service.ts";
import { Target } from "../../test/support/target.ts";
import { readRows } from "../../test/support/cluster/rows.ts";
import { storedIn } from "../../test/support/faults/database.ts";
import { type Called, judgeRows } from "../../test/support/faults/history.ts";
import { type FaultReport, withMore } from "../../test/support/faults/report.ts";

const CLIENTS = 8;
const CALLS_MIN = 10;
const SETTLE_MS_MAX = 90_000;
const ENV = { RATE_LIMIT_PER_SECOND: "0", ATTEMPT_TIMEOUT_MS: "1000", RETRY_BASE_MS: "20", RETRY_CAP_MS: "200" };

/**
 * Everything at once for so long (F27): clients create and decide, targets misbehave, and the process is killed, stopped,
 * frozen and locked out of its database, in an order that the seed decides. Then the rows are held against the target's
 * own log.
 */
export async function mixedFaults(forMs: number, chance: () => number): Promise<FaultReport> {
  const folder = newFolder();
  const called: Called[] = [];
  await using target = new Target(async ({ headers }) => {
    const kind = Math.floor(chance() * 8);
    if (kind === 0) await Bun.sleep(1_500);
    const status = [200, 500, 429][kind] ?? 200;
    called.push({ id: headers.get("webhook-id") ?? "", status });
    return new Response(kind === 3 ? "x".repeat(400_000) : "{}", { status });
  });
  await using receiver = new Target(200);
  const acknowledged = new Set<string>();
  const faults: Record<string, number> = {};
  const state = { isOver: false, url: "" };

  const ask = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(5_000);
    const answer = await askAsOwner(state.url + path, { method: "POST", signal, ...init });
    if (answer?.status === 201) acknowledged.add(((await answer.json()) as { id: string }).id);
    else await answer?.text().catch(() => "");
    if (answer === null) await Bun.sleep(20);
  };
  const client = async () => {
    while (!state.isOver) {
      const some = [...acknowledged][Math.floor(chance() * acknowledged.size)] ?? "act_none";
      const what = chance();
      if (what < 0.7) {
        const approve = chance() < 0.3;
        const dedupe = chance() < 0.1 ? { dedupe: `d${Math.floor(chance() * 20)}` } : {};
        await ask("/v1/actions", { url: target.url, callback: receiver.url, approve, retries: 3, ...dedupe });
      } else await ask(`/v1/actions/${some}/${["approve", "cancel", "retry"][Math.floor(chance() * 3)]}`);
    }
  };

  let service = await start();
  const again = async (signal: "SIGKILL" | "SIGTERM") => {
    await service.end(signal);
    service = await start();
  };
  const acts: Readonly<Record<string, () => Promise<unknown>>> = {
    killed: () => again("SIGKILL"),
    stopped: () => again("SIGTERM"),
    async frozen() {
      service.process.kill("SIGSTOP");
      await Bun.sleep(200 + chance() * 3_000);
      service.process.kill("SIGCONT");
    },
    async locked() {
      await using child = startChild("lock", join(folder, "data/outgate.db"), String(Math.round(chance() * 1_500)));
      await child.exited;
    },
  };
  const clients = Array.from({ length: CLIENTS }, client);
  const endMs = performance.now() + forMs;
  // On a busy machine until there was something to go wrong.
  while (performance.now() < endMs || called.length < CALLS_MIN) {
    await Bun.sleep(100 + chance() * 600);
    const [name = "", act] = Object.entries(acts)[Math.floor(chance() * 4)] ?? [];
    await act?.();
    faults[name] = (faults[name] ?? 0) + 1;
  }
  state.isOver = true;
  await Promise.all(clients);
  const settledMs = performance.now() + SETTLE_MS_MAX;
  await using rows = readRows(`file:${folder}/data/outgate.db`);
  while (!(await isSettled(rows)) && performance.now() < settledMs) await Bun.sleep(200);
  await service.end("SIGTERM");
  const stuck = await rows.openCount();
  const history = judgeRows(await rows.history(), acknowledged, called);
  const { isSound } = storedIn(join(folder, "data"));
  rmSync(folder, { recursive: true });
  return withMore(
    history,
    { ...faults, acknowledged: acknowledged.size, called: called.length, stuck },
    { "the file is sound": isSound, "nothing is stuck": stuck === 0, "it had work": called.length > 0 },
  );

  async function start(): Promise<Service> {
    const fresh = new Service({ folder, env: ENV });
    state.url = await fresh.ready();
    return fresh;
  }
}

/** Whether nothing is under way in the database of a running service. */
async function isSettled(rows: ReturnType<typeof readRows>): Promise<boolean> {
  try {
    return (await rows.openCount()) === 0;
  } catch (error) {
    // A checkpoint came between the copies of the two files. What a crash leaves is judged once the service has stopped.
    if (error instanceof SQLiteError && error.code === "SQLITE_CORRUPT") return false;
    throw error;
  }
}
