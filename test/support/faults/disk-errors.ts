import { join } from "node:path";
import { newFolder, Service } from "../service.ts";
import { Target } from "../target.ts";
import { storedIn } from "./database.ts";
import { broken, type FaultReport } from "./report.ts";

const CREATORS = 8;
const CREATES_MAX = 150;
const EXIT_MS_MAX = 1_000;
const NEVER_MS = 10_000;

/** A call of the service to its disk and how it fails. */
export interface DiskError {
  readonly call: "fsync" | "fdatasync" | "pwrite64";
  readonly error: "EIO" | "ENOSPC";
  /** The first of the calls that fail, and how many do. */
  readonly from: number;
  readonly count: number;
  /** Where others use the machine too, nobody can say how long an end takes. */
  readonly isAlone: boolean;
}

/**
 * A disk that refuses to write or to make durable while clients create (F4). What could not be made durable ends the
 * process within a second; what could not be written is refused. Afterwards every acknowledged action is there.
 */
export async function diskErrors({ call, error, from, count, isAlone }: DiskError): Promise<FaultReport> {
  const isSync = call !== "pwrite64";
  const folder = newFolder();
  await using target = new Target();
  const env = { RATE_LIMIT_PER_SECOND: "0", RETRY_BASE_MS: "20", RETRY_CAP_MS: "100" };
  const acknowledged: string[] = [];
  const refused: number[] = [];
  const seen = { lastMs: 0, exitMs: 0, exitCode: -1 };
  {
    await using service = new Service({ folder, env });
    await service.ready();
    const inject = `inject=${call}:error=${error}:when=${from}..${from + count - 1}`;
    const tracer = await attach(service.process.pid, ["-e", `trace=${call}`, "-e", inject]);
    const creator = async () => {
      while (acknowledged.length + refused.length < CREATES_MAX) {
        const body = JSON.stringify({ url: target.url, body: { filler: "x".repeat(4_000) } });
        const answer = await service.request("/v1/actions", { method: "POST", body }).catch(() => null);
        if (answer === null) return;
        seen.lastMs = performance.now();
        const json = (await answer.json()) as { id: string };
        if (answer.status === 201) acknowledged.push(json.id);
        else refused.push(answer.status);
      }
    };
    const creators = Promise.all(Array.from({ length: CREATORS }, creator));
    await creators;
    // Nobody is answered any more; it has ended, or will, or goes on as if nothing had been.
    const isOver = [service.process.exited, Bun.sleep(NEVER_MS).then(() => -1)];
    if (isSync) seen.exitCode = await Promise.race(isOver);
    seen.exitMs = Math.max(0, performance.now() - seen.lastMs);
    tracer.kill("SIGKILL");
    await service.end("SIGKILL");
  }

  await using after = new Service({ folder, env });
  await after.ready();
  const finals = await Promise.all(acknowledged.map((id) => after.final(id)));
  const stored = storedIn(join(folder, "data"));
  const lost = acknowledged.filter((id) => !stored.actions.has(id));
  const unsent = finals.filter(({ status }) => status !== "completed");
  return {
    figures: {
      acknowledged: acknowledged.length,
      refused: refused.length,
      lost: lost.length,
      exitMs: isSync ? Math.round(seen.exitMs) : "",
    },
    problems: broken({
      "something was acknowledged": acknowledged.length > 0,
      "no acknowledged action is lost or unsent": lost.length === 0 && unsent.length === 0 && stored.isSound,
      "what was refused was 503": refused.every((status) => status === 503),
      "the fault was met": isSync ? seen.exitCode === 1 : refused.length > 0,
      "after a failed fsync it ends within a second": !isSync || !isAlone || seen.exitMs <= EXIT_MS_MAX,
    }),
  };
}

/** Traces a process that runs already; resolves when it is traced. */
async function attach(pid: number, options: readonly string[]) {
  const tracer = Bun.spawn(["strace", "-f", "-o", "/dev/null", "-p", String(pid), ...options], { stderr: "pipe" });
  const reader = tracer.stderr.getReader();
  for (let said = ""; !said.includes("attached");) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`strace could not attach: ${said}`);
    said += new TextDecoder().decode(value);
  }
  // Cancelled, the pipe would end it.
  reader.releaseLock();
  return tracer;
}
