/**
 * Measures Outgate beside other systems with the same job: each accepts a call over HTTP, stores it with a flush at every
 * commit, makes the call with up to 256 at a time, and stores the result. The same load and the same target for all, in
 * turn in one run; what is printed are shares of Outgate's completed actions per second in the same round.
 *
 * The peers' packages and versions are in bench/peers, with a lock of their own, and are installed at the first run.
 * Redis, PostgreSQL, Node and Go have to be there; what needs one that is missing is left out and named.
 *
 *   bun bench/peers.ts [--only bullmq,river,restate,pg-boss,graphile-worker,plain-queue] [--schemes http,https]
 *     [--rounds 4] [--seconds 3] [--connections 64] [--json results/peers.json]
 */
import { parseArgs } from "node:util";
import { readFigures, saveFigures } from "./parts/figures.ts";
import { installPeers, PEERS_BY_NAME, type RunningPeer, startPostgresForPeers } from "./parts/peers.ts";
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
    json: { type: "string" },
  },
});
const wanted = values.only?.replaceAll("plain-queue", "plain queue").split(",") ?? Object.keys(PEERS_BY_NAME);
const schemes = values.schemes.split(",");

interface PeerFigure {
  readonly name: string;
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

const service = stack.use(await outgate({ port: await freePort(), env: { ...env, DISPATCH_PER_HOST: "256" } }));
const url = `http://127.0.0.1:${service.port}/v1/actions`;
const running: RunningPeer[] = [{ name: "Outgate", url, pids: [service.process.pid] }];
for (const name of wanted) {
  const kind = PEERS_BY_NAME[name];
  if (kind === undefined) throw new Error(`There is no peer ${name}.`);
  const missing = kind.missing();
  if (missing === null) running.push(await kind.start({ stack, env, postgres }));
  else console.log(`${name} is left out: ${missing}.`);
}

const contenders = schemes.flatMap((scheme) => running.map((peer) => contenderOf(peer, scheme)));
const rounds = await takeRounds(contenders, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
const figures: PeerFigure[] = [];
for (const scheme of schemes) {
  for (const { name } of running) {
    const pair = [`${name} ${scheme}`, `Outgate ${scheme}`] as const;
    const [completed, cpu] = [medianOf(rounds, pair[0], "completedPerS"), medianOf(rounds, pair[0], "cpuUs")];
    const share = ratioOf(rounds, pair, "completedPerS");
    figures.push({ name, scheme, completedPerS: completed, cpuUs: cpu, share });
    console.log(
      `${pair[0]}: ${completed.toFixed(0)} completed/s, ${cpu.toFixed(0)} us of the processor each; ` +
        `as a share of Outgate's: ${ratioLine(rounds, pair, "completedPerS")}`,
    );
  }
}
if (values.json !== undefined) {
  const before = readFigures(values.json) as readonly PeerFigure[];
  // One scheme may be measured after the other.
  saveFigures(values.json, [...before.filter(({ scheme }) => !schemes.includes(scheme)), ...figures]);
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
