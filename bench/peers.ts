/**
 * Measures Outgate beside other systems with the same job: each accepts a call over HTTP, stores it with a flush at every
 * commit, makes the call, and stores the result. The same load and the same target for all, in turn in one run; what is
 * printed are shares of Outgate's completed actions per second in the same round, with its default settings. A peer runs
 * as it was fastest over the first scheme: 32, 64 or 256 jobs at a time, with a timer for each call and without.
 *
 * The peers' packages and versions are in bench/peers, with a lock of their own, and are installed at the first run.
 * Redis, PostgreSQL, Node and Go have to be there; what needs one that is missing is left out and named.
 *
 *   bun bench/peers.ts [--only bullmq,river,restate,pg-boss,graphile-worker,plain-queue] [--schemes http,https]
 *     [--rounds 4] [--seconds 3] [--connections 64] [--tuning-rounds 2] [--json results/peers.json]
 */
import { parseArgs } from "node:util";
import { readFigures, saveFigures } from "./parts/figures.ts";
import {
  installPeers,
  type PeerKind,
  PEERS_BY_NAME,
  type RunningPeer,
  startPostgresForPeers,
  type Tuning,
} from "./parts/peers.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";
import { type Contender, medianOf, ratioLine, ratioOf, takeRounds } from "./parts/rounds.ts";
import { makeTargetTls } from "./parts/tls.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    schemes: { type: "string", default: "http,https" },
    rounds: { type: "string", default: "4" },
    seconds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    "tuning-rounds": { type: "string", default: "2" },
    json: { type: "string" },
  },
});
const wanted = values.only?.replaceAll("plain-queue", "plain queue").split(",") ?? Object.keys(PEERS_BY_NAME);
const schemes = values.schemes.split(",");

const TUNING_SECONDS = 2;
const TUNING_WARM_UP_SECONDS = 4;
const TUNED_PER_HOST = "256";

type Tuned = RunningPeer & { readonly settings: string };

interface PeerFigure {
  readonly name: string;
  /** How it ran. */
  readonly settings: string;
  readonly scheme: string;
  readonly completedPerS: number;
  readonly cpuUs: number;
  readonly share: number;
}

installPeers();
await using stack = new AsyncDisposableStack();
const tls = stack.use(makeTargetTls());
const target = stack.use(await serve("target.ts", tls.targetEnv));
const statsUrl = `http://127.0.0.1:${target.port}/stats`;
const env = { ...tls.callerEnv, SSL_CERT_FILE: tls.caFile };
const postgres = await startPostgresForPeers();
if (postgres !== null) stack.use(postgres);

const [first = "http"] = schemes;
const running: Tuned[] = [
  { settings: "default settings", ...(await startOutgate("Outgate", {})) },
  {
    settings: `DISPATCH_PER_HOST=${TUNED_PER_HOST}`,
    ...(await startOutgate("Outgate, tuned", { DISPATCH_PER_HOST: TUNED_PER_HOST })),
  },
];
for (const name of wanted) {
  const kind = PEERS_BY_NAME[name];
  if (kind === undefined) throw new Error(`There is no peer ${name}.`);
  const missing = kind.missing();
  if (missing !== null) {
    console.log(`${name} is left out: ${missing}.`);
    continue;
  }
  const tuning = await fastestOf(kind);
  running.push({ settings: settingsText(tuning), ...(await kind.start({ stack, env, postgres, tuning })) });
}

const contenders = schemes.flatMap((scheme) => running.map((peer) => contenderOf(peer, scheme)));
const rounds = await takeRounds(contenders, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
const figures: PeerFigure[] = [];
for (const scheme of schemes) {
  for (const { name, settings } of running) {
    const pair = [`${name} ${scheme}`, `Outgate ${scheme}`] as const;
    const [completed, cpu] = [medianOf(rounds, pair[0], "completedPerS"), medianOf(rounds, pair[0], "cpuUs")];
    const share = ratioOf(rounds, pair, "completedPerS");
    figures.push({ name, settings, scheme, completedPerS: completed, cpuUs: cpu, share });
    console.log(
      `${pair[0]} (${settings}): ${completed.toFixed(0)} completed/s, ${cpu.toFixed(0)} us of the processor each; ` +
        `as a share of Outgate's: ${ratioLine(rounds, pair, "completedPerS")}`,
    );
  }
}
if (values.json !== undefined) {
  const before = readFigures(values.json) as readonly PeerFigure[];
  // One scheme may be measured after the other.
  saveFigures(values.json, [...before.filter(({ scheme }) => !schemes.includes(scheme)), ...figures]);
}

async function startOutgate(name: string, more: Readonly<Record<string, string>>): Promise<RunningPeer> {
  const service = stack.use(await outgate({ port: await freePort(), env: { ...env, ...more } }));
  return { name, url: `http://127.0.0.1:${service.port}/v1/actions`, pids: [service.process.pid] };
}

/** Each on its own, so that the others take no time from it. */
async function fastestOf({ tunings, start }: PeerKind): Promise<Tuning> {
  let fastest = tunings[0] ?? { concurrency: null, hasTimer: true };
  let most = 0;
  for (const tuning of tunings.length > 1 ? tunings : []) {
    await using alone = new AsyncDisposableStack();
    const peer = await start({ stack: alone, env, postgres, tuning });
    const contender = contenderOf({ ...peer, name: `${peer.name}, ${settingsText(tuning)},` }, first);
    const taken = await takeRounds([contender], {
      rounds: Number(values["tuning-rounds"]),
      seconds: TUNING_SECONDS,
      warmUpSeconds: TUNING_WARM_UP_SECONDS,
    });
    const perS = medianOf(taken, contender.name, "completedPerS");
    if (perS > most) [fastest, most] = [tuning, perS];
  }
  return fastest;
}

function settingsText({ concurrency, hasTimer }: Tuning): string {
  const jobs = concurrency === null ? "as many at a time as it likes" : `${concurrency} at a time`;
  return `${jobs}, ${hasTimer ? "a timer for each call" : "no timers"}`;
}

function contenderOf({ name, url: creates, statusUrl, pids }: RunningPeer, scheme: string): Contender {
  const port = scheme === "http" ? target.port : target.securePort;
  return {
    name: `${name} ${scheme}`,
    urls: [creates],
    ...(statusUrl === undefined ? {} : { statusUrl }),
    targetUrl: `${scheme}://127.0.0.1:${port}/`,
    statsUrl,
    connections: Number(values.connections),
    pids,
  };
}
