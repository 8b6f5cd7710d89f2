import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { boundOf, Cluster, type Width } from "../../test/support/cluster/cluster.ts";
import { FAKE_TIME } from "./clock-jump.ts";
import { type FaultReport, withMore } from "../../test/support/faults/report.ts";

/** Of the first too: it jumps from there. */
const OFFSETS = ["+0s", "-30s", "+30s"] as const;
const JUMPS = ["+1h", "-1h", "+0s"] as const;
/** Between the database's clock and what a node takes for it. */
const WRONG_MS_MAX = 1_000;
const SETTLED_MS_MAX = 15_000;

export interface NodeClocks {
  readonly databaseUrl: string;
  /** Two or three. */
  readonly nodes: number;
  readonly eachMs: number;
  readonly width: Width;
}

/** Nodes whose wall clocks are 30 s apart; that of the first jumps by an hour, forth and back, under load. */
export async function nodeClocks({ databaseUrl, nodes, eachMs, width }: NodeClocks): Promise<FaultReport> {
  const { chance } = width;
  const folder = mkdtempSync(join(tmpdir(), "outgate-clocks-"));
  const set = (index: number, offset: string) => {
    // Put into place whole: it is read at every call.
    const file = join(folder, `time-${index}`);
    writeFileSync(`${file}.new`, `${offset}\n`);
    renameSync(`${file}.new`, file);
    return file;
  };
  const startedAt = Date.now();
  await using cluster = await Cluster.start({
    databaseUrl,
    nodes,
    nodeOf: (index) => {
      const file = set(index, OFFSETS[index] ?? "+0s");
      return { env: { ...FAKE_TIME, FAKETIME_TIMESTAMP_FILE: file } };
    },
    // At most two failures: the waits before further attempts are longer than what is measured at the end.
    witness: {
      delay: () => 20 + chance() * 40,
      status: ({ attempt }) => (attempt <= 2 && chance() < 0.1 ? 500 : 200),
    },
    follows: true,
    load: { ...width, retries: 5, held: 0.1, twice: 0.2, callbacks: 0.2 },
  });
  cluster.load.begin();
  await cluster.allClaim();
  await cluster.busy(2);
  for (const jump of JUMPS) {
    await Bun.sleep(eachMs);
    set(0, jump);
  }
  await Bun.sleep(eachMs);
  const report = await cluster.judge();
  const wrong = await wrongTimes(databaseUrl, startedAt - WRONG_MS_MAX, Date.now() + WRONG_MS_MAX);
  rmSync(folder, { recursive: true });
  const { settledMs, doubles } = report.figures;
  return withMore(
    report,
    { wrongTimes: wrong },
    {
      "nothing waits for a clock that was set back": Number(settledMs) < boundOf(width, SETTLED_MS_MAX),
      "no call was taken for one of a dead node": doubles === 0,
      "every time that is stored is the database's": wrong === 0,
    },
  );
}

/** How many times are stored that were not while it ran. */
async function wrongTimes(databaseUrl: string, fromMs: number, untilMs: number): Promise<number> {
  await using sql = new SQL(databaseUrl, { max: 1 });
  const rows = (await sql`
    SELECT (SELECT count(*) FROM timeline WHERE at NOT BETWEEN ${fromMs} AND ${untilMs})
      + (SELECT count(*) FROM actions WHERE created_at NOT BETWEEN ${fromMs} AND ${untilMs}
          OR finished_at NOT BETWEEN ${fromMs} AND ${untilMs}) AS n`) as readonly { n: unknown }[];
  return Number(rows[0]?.n);
}
