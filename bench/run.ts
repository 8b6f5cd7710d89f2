/**
 * Runs benches by name, one after the other; each compares what it measures in one run. Without a name: the short set,
 * about three minutes.
 *
 *   npm run bench [-- <name> …] [-- <name> <flags of that bench>]
 */
import { join } from "node:path";

interface Bench {
  readonly about: string;
  readonly command: readonly string[];
}

/** Short rounds, and many: other work on the machine disturbs some of them. */
const PAIRS = ["--no-relays", "--no-latency", "--rounds", "12", "--seconds", "1"];

const BENCHES: Readonly<Record<string, Bench>> = {
  throughput: {
    about: "http and https as shares of bare relays and of each other",
    command: ["throughput.ts", "--https", "--rounds", "8", "--seconds", "1"],
  },
  burst: {
    about: "256 callers beside 64 on one host, with default settings",
    command: ["throughput.ts", "--burst", ...PAIRS],
  },
  log: { about: "with the log of every action and with errors only", command: ["throughput.ts", "--log", ...PAIRS] },
  latency: {
    about: "from the caller to the target, near and 10 ms away, at several rates",
    command: ["latency.ts", "--json", "results/latency.json"],
  },
  peers: {
    about: "beside BullMQ, River, Restate, pg-boss, graphile-worker and a plain queue",
    command: ["peers.ts", "--json", "results/peers.json"],
  },
  growth: { about: "what 1,000,000 rows cost", command: ["growth.ts", "--json", "results/growth.json"] },
  hosts: { about: "many hosts, a slow one, mixed calls", command: ["hosts.ts"] },
  large: { about: "192 actions of 1 MB that become due at once", command: ["large.ts"] },
  "slow-disk": {
    about: "with 4 ms more for each fsync (needs strace)",
    command: ["throughput.ts", "--fsync-delay-ms", "4", "--rounds", "6", "--seconds", "1"],
  },
  cost: {
    about: "statements, bytes and processor time of an action, on a file and on PostgreSQL",
    command: ["cost.ts"],
  },
  cluster: { about: "one, two and four nodes on PostgreSQL", command: ["cluster.ts"] },
  remote: { about: "a libSQL server near, and 30 ms away and back", command: ["remote.ts"] },
  store: { about: "each operation of the store by the size of its table", command: ["store.ts"] },
  search: { about: "lists and searches of one account with 1,000,000 actions", command: ["search.ts"] },
  charts: { about: "draws the charts from the figures that latency, peers and growth kept", command: ["charts.ts"] },
};
const SHORT = ["throughput", "burst", "latency"];

const args = process.argv.slice(2);
const flagsAt = args.findIndex((arg) => arg.startsWith("-"));
const names = flagsAt === -1 ? args : args.slice(0, flagsAt);
const flags = flagsAt === -1 ? [] : args.slice(flagsAt);
const unknown = names.find((name) => BENCHES[name] === undefined);
if (unknown !== undefined || flags.includes("--help") || (flags.length > 0 && names.length !== 1)) {
  if (unknown !== undefined) console.log(`There is no bench ${unknown}.`);
  console.log(
    "npm run bench [-- <name> …], or one name and flags of that bench. Without a name: throughput, burst and latency.",
  );
  for (const [name, { about }] of Object.entries(BENCHES)) console.log(`  ${name.padEnd(12)}${about}`);
  process.exit(unknown === undefined && flags.includes("--help") ? 0 : 2);
}
for (const name of names.length === 0 ? SHORT : names) {
  const { command } = BENCHES[name] ?? { command: [] };
  const [file = "", ...own] = command;
  console.log(`== ${name}`);
  const child = Bun.spawn(["bun", join(import.meta.dir, file), ...own, ...flags], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "1024" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if ((await child.exited) !== 0) process.exitCode = 1;
}
