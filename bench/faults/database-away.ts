import { boundOf, Cluster, type Width } from "../../test/support/cluster/cluster.ts";
import { type Refusal, refusalOf, worksAfter } from "./probe.ts";
import { TcpProxy } from "../../test/support/cluster/tcp-proxy.ts";
import { OwnServers } from "../parts/own-server.ts";
import { type FaultReport, withMore } from "../../test/support/faults/report.ts";

const WORKS_AGAIN_MS_MAX = 5_000;
const REFUSED_MS_MAX = 12_000;

export interface DatabaseAway {
  readonly nodes: number;
  readonly awayMs: number;
  readonly times: number;
  readonly width: Width;
}

const BUSY = 2;
const LOAD = { retries: 4, held: 0.1, twice: 0.2, callbacks: 0.2 };

/** The database is stopped in the middle of everything and started again. */
export async function databaseStopped({ nodes, awayMs, times, width }: DatabaseAway): Promise<FaultReport> {
  await using servers = await OwnServers.start();
  await using cluster = await Cluster.start({
    databaseUrl: servers.url,
    nodes,
    witness: { delay: () => 20 + width.chance() * 40 },
    follows: true,
    load: { ...LOAD, ...width },
  });
  cluster.load.begin();
  await cluster.allClaim();
  const refusals: Refusal[] = [];
  const back: number[] = [];
  for (let time = 0; time < times; time += 1) {
    await cluster.busy(BUSY);
    await servers.primary.stop("immediate");
    const untilMs = performance.now() + awayMs;
    refusals.push(...(await Promise.all(cluster.nodes.map((node) => refusalOf(node)))));
    await Bun.sleep(untilMs - performance.now());
    await servers.primary.start();
    back.push(
      Math.max(...(await Promise.all(cluster.nodes.map((node) => worksAfter(node, cluster.witness.targetUrl))))),
    );
    await cluster.load.goesOn();
  }
  return reportOf(await cluster.judge(), { refusals, back, width }, { times, awayMs });
}

/** The database's machine dies; its synchronous copy takes over, and its address moves there. */
export async function databaseFailsOver({ nodes, awayMs, width }: Omit<DatabaseAway, "times">): Promise<FaultReport> {
  await using servers = await OwnServers.start();
  const standby = await servers.follow();
  await using proxy = await TcpProxy.start(servers.primary.port);
  await using cluster = await Cluster.start({
    databaseUrl: standby.url("outgate"),
    nodes,
    nodeOf: () => ({ databaseUrl: servers.primary.url("outgate", proxy.port) }),
    witness: { delay: () => 20 + width.chance() * 40 },
    follows: true,
    load: { ...LOAD, ...width },
  });
  cluster.load.begin();
  await cluster.allClaim();
  await cluster.busy(BUSY);
  await Bun.sleep(500);
  proxy.moveTo(null);
  await servers.primary.stop("kill");
  const refusals = await Promise.all(cluster.nodes.map((node) => refusalOf(node)));
  await Bun.sleep(awayMs);
  await standby.promote();
  proxy.moveTo(standby.port);
  const works = await Promise.all(cluster.nodes.map((node) => worksAfter(node, cluster.witness.targetUrl)));
  await Bun.sleep(1_000);
  return reportOf(await cluster.judge(), { refusals, back: works, width }, { awayMs });
}

interface Seen {
  readonly refusals: readonly Refusal[];
  readonly back: readonly number[];
  readonly width: Width;
}

function reportOf(report: FaultReport, { refusals, back, width }: Seen, fault: FaultReport["figures"]): FaultReport {
  const slowestMs = Math.max(...refusals.map(({ tookMs }) => tookMs));
  const worksAgainMs = Math.max(...back);
  return withMore(
    report,
    { ...fault, refusedMs: Math.round(slowestMs), worksAgainMs: Math.round(worksAgainMs) },
    {
      [`without it every node says 503 and when to come: ${JSON.stringify(refusals)}`]: refusals.every(
        ({ status, retryAfter }) => status === 503 && Number(retryAfter) > 0,
      ),
      "and it says so soon": slowestMs < REFUSED_MS_MAX,
      [`every node works ${WORKS_AGAIN_MS_MAX / 1_000} s after it is back`]:
        worksAgainMs < boundOf(width, WORKS_AGAIN_MS_MAX),
    },
  );
}
