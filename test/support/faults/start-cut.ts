import { TcpProxy } from "../cluster/tcp-proxy.ts";
import { createDatabase, dropDatabase } from "../postgres.ts";
import { type LogLine, Service } from "../service.ts";
import { broken, type FaultReport } from "./report.ts";

const SECRET_KEY = "5c".repeat(32);
/** Every other start finds the database away for so long, the others can connect again at once. */
const AWAY_MS = 1_500;
const AT_ONCE = 3;
const READY_MS_MAX = 10_000;

interface Cut {
  /** Before which piece of what the process sends; null: never. */
  readonly beforePiece: number | null;
  readonly awayMs: number;
}

interface CutStart {
  readonly pieces: number;
  readonly isServing: boolean;
  readonly log: readonly LogLine[];
  readonly showsKeys: boolean;
  readonly exitCode: number;
}

/**
 * Starts on an empty database, each of which loses all its connections at another step: evenly from the first packet to the
 * last of a start that loses none.
 */
export async function startsCut(count: number): Promise<FaultReport> {
  const { pieces } = await startCut({ beforePiece: null, awayMs: 0 });
  const cuts = Array.from({ length: count }, (_, at) => ({
    beforePiece: 1 + Math.floor((at * pieces) / count),
    awayMs: at % 2 === 0 ? AWAY_MS : 0,
  }));
  const waiting = cuts.values();
  const starts: CutStart[] = [];
  const startNext = async () => {
    for (const cut of waiting) starts.push(await startCut(cut));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, startNext));
  const waited = starts.flatMap(({ log }) => log.filter(({ event }) => event === "service.waiting"));
  const reasons = [...new Set(waited.map(({ reason }) => String(reason)))];
  return {
    figures: { starts: count, pieces, waits: waited.length, reasons: reasons.join(", ") },
    problems: broken({
      "each start ends up serving": starts.every(({ isServing }) => isServing),
      "each shows the first keys, whatever was committed before the cut": starts.every(({ showsKeys }) => showsKeys),
      "each stops in order": starts.every(({ exitCode }) => exitCode === 0),
      "what waits says why": reasons.every((reason) => /could not be reached|starting or stopping/.test(reason)),
    }),
  };
}

/** One that loses its database at the last step serves what it can, and writes when the database is back. */
async function isReadySoon(address: string): Promise<boolean> {
  const untilMs = performance.now() + READY_MS_MAX;
  while (performance.now() < untilMs) {
    if ((await fetch(`${address}/ready`)).ok) return true;
    await Bun.sleep(50);
  }
  return false;
}

async function startCut({ beforePiece, awayMs }: Cut): Promise<CutStart> {
  const url = new URL(await createDatabase());
  const port = Number(url.port);
  await using proxy = await TcpProxy.start(port);
  const way = new URL(url);
  way.hostname = "127.0.0.1";
  way.port = String(proxy.port);
  let pieces = 0;
  proxy.passes = (_, from) => {
    if (from === "server") return true;
    pieces += 1;
    if (pieces !== beforePiece) return true;
    proxy.moveTo(null);
    setTimeout(() => proxy.moveTo(port), awayMs);
    return false;
  };
  const service = new Service({ env: { DATABASE_URL: way.href, SECRET_KEY } });
  try {
    const isServing = await service.ready().then(isReadySoon, () => false);
    const exitCode = await service.end();
    const log = service.log();
    const showsKeys = log.some(({ event }) => event === "service.first_keys");
    return { pieces, isServing, log, showsKeys, exitCode };
  } finally {
    await service[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
    await dropDatabase(url.href);
  }
}
