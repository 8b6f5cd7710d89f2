import { rmSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { askAsOwner, newFolder, Service } from "../service.ts";
import { Target } from "../target.ts";
import { broken, type FaultReport } from "./report.ts";

const CLI = join(import.meta.dir, "../../../src/cli/main.ts");
const DISK_BYTES = 24 * 1_048_576;
/** Long, because a busy machine takes its time. */
const WAIT_MS_MAX = 60_000;
const HEAL_MS_MAX = 5_000;

/**
 * A service ends, its disk is full when it starts again, and then has room. After a stop in order there is no file of shared
 * memory beside the database, and no room for one.
 */
export async function fullAtNextStart(end: "SIGTERM" | "SIGKILL"): Promise<FaultReport> {
  await using target = new Target();
  const before = newFolder();
  const folder = newFolder();
  const first = new Service({ folder: before });
  const { id } = await first.create({ url: target.url, body: { n: 1 } });
  await first.final(id);
  await first.end(end);
  const port = await freePort();
  const mount = `mount -t tmpfs -o size=${DISK_BYTES} tmpfs "$1" && cp -a "$0/data" "$1/" && cd "$1" && shift &&
    { dd if=/dev/zero of=ballast bs=1k 2>/dev/null; exec "$@"; }`;
  await using service = new Service({
    folder,
    wrapper: ["unshare", "-m", "sh", "-c", mount, before, folder],
    env: { PORT: String(port) },
  });
  const ask = (path: string, init?: RequestInit) => askAsOwner(`http://127.0.0.1:${port}${path}`, init);
  const create = () =>
    ask("/v1/actions", { method: "POST", body: JSON.stringify({ url: target.url, body: { n: 2 } }) });
  const within = async (ms: number, isSo: () => Promise<boolean>) => {
    const startedMs = performance.now();
    while (!(await isSo()) && performance.now() - startedMs < ms) await Bun.sleep(50);
    return Math.round(performance.now() - startedMs);
  };
  const reads = async (path: string) => (await ask(path))?.status === 200;
  await within(WAIT_MS_MAX, () => reads(`/v1/actions/${String(id)}`));
  const [one, list, health, ready] = await Promise.all(
    [`/v1/actions/${String(id)}`, "/v1/actions", "/health", "/ready"].map(async (path) => (await ask(path))?.status),
  );
  const refused = await create();
  const sentWhenFull = target.received.length - 1;
  // A command on the service's machine.
  const command = ["nsenter", "-m", "-t", String(service.process.pid), process.execPath, CLI, "new-owner-key"];
  const env = { ...process.env, DATABASE_URL: `file:${join(folder, "data/outgate.db")}` };
  const said = await new Response(Bun.spawn(command, { env, stderr: "pipe", timeout: WAIT_MS_MAX }).stderr).text();
  rmSync(join(`/proc/${service.process.pid}/root`, folder, "ballast"));
  const healedMs = await within(
    2 * HEAL_MS_MAX,
    async () => (await reads("/ready")) && (await create())?.status === 201,
  );
  await within(WAIT_MS_MAX, async () => target.received.length >= 2);
  // The service looks once a second.
  await within(WAIT_MS_MAX, async () => service.log().some(({ event }) => event === "store.back"));
  await service.end();
  const told = service.log().filter(({ event }) => event.startsWith("store."));
  rmSync(before, { recursive: true });
  return {
    figures: { statuses: [one, list, ready, refused?.status].join(), healedMs, told: JSON.stringify(told) },
    problems: broken({
      "full: what is stored is read": one === 200 && list === 200,
      "full: /ready is 503, /health is 200": ready === 503 && health === 200,
      "full: creates are answered 503 with Retry-After": refused?.status === 503 && refused.headers.has("retry-after"),
      "full: a command beside it says so": said.includes("the disk is full"),
      "full: nothing is sent": sentWhenFull === 0,
      "it works within five seconds of room": healedMs <= HEAL_MS_MAX && target.received.length >= 2,
      "the outage is told once, with its reason and how long it was":
        told.map(({ event }) => event).join() === "store.away,store.back" &&
        told[0]?.["reason"] === "the disk is full" &&
        Number(told[1]?.["away_ms"]) > 0,
    }),
  };
}
