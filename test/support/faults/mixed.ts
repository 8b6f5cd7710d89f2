import { SQLiteError } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startChild } from "../../db/processes.ts";
import { newFolder, OWNER_KEY, Service } from "../service.ts";
import { Target } from "../target.ts";
import { aliveNow, type Called, judgeHistory } from "./history.ts";
import { broken, type FaultReport } from "./report.ts";

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
    const headers = { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json" };
    const init = { method: "POST", headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = await fetch(state.url + path, { ...init, signal: AbortSignal.timeout(5_000) }).catch(() => null);
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
  while (!isSettled(join(folder, "data")) && performance.now() < settledMs) await Bun.sleep(200);
  await service.end("SIGTERM");
  const stuck = aliveNow(join(folder, "data"));
  const history = judgeHistory(join(folder, "data"), acknowledged, called);
  rmSync(folder, { recursive: true });
  return {
    figures: { ...faults, acknowledged: acknowledged.size, called: called.length, ...history.figures, stuck },
    problems: [...history.problems, ...broken({ "nothing is stuck": stuck === 0, "it had work": called.length > 0 })],
  };

  async function start(): Promise<Service> {
    const fresh = new Service({ folder, env: ENV });
    state.url = await fresh.ready();
    return fresh;
  }
}

/** Whether nothing is under way in the folder of a running service. */
function isSettled(folder: string): boolean {
  try {
    return aliveNow(folder) === 0;
  } catch (error) {
    // A checkpoint came between the copies of the two files. What a crash leaves is judged once the service has stopped.
    if (error instanceof SQLiteError && error.code === "SQLITE_CORRUPT") return false;
    throw error;
  }
}
