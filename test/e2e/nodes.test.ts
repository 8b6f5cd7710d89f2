import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { NODE_LIVES_MS, SHARED_FRESH_MS } from "../../src/core/limits.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { nodeKills } from "../support/faults/node-kills.ts";

const SECRET_KEY = "5f".repeat(32);

/** Beside what a bound names: a busy machine. */
const MARGIN_MS = 5_000;

/** Processes that start, join and are missed. */
setDefaultTimeout(120_000);

interface Json {
  readonly [name: string]: unknown;
}

/** Two nodes that know of each other, on a database of their own. */
async function twoNodes() {
  const url = await createDatabase();
  const start = () => new Service({ env: { DATABASE_URL: url, SECRET_KEY, RATE_LIMIT_PER_SECOND: "0" } });
  const [a, b] = [start(), start()];
  await Promise.all([a, b].map((node) => node.ready()));
  const isJoined = (node: Service) =>
    node.log().some(({ event, count, claims }) => event === "nodes.changed" && count === 2 && claims === true);
  await within(NODE_LIVES_MS, () => isJoined(a) && isJoined(b));
  return {
    a,
    b,
    async [Symbol.asyncDispose]() {
      await Promise.all([a, b].map((node) => node[Symbol.asyncDispose]()));
      await dropDatabase(url);
    },
  };
}

/** Waits until it holds, for so long at most. */
async function within(limitMs: number, holds: () => Promise<boolean> | boolean): Promise<void> {
  const startedMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedMs > limitMs) throw new Error(`Not within ${limitMs} ms: ${String(holds)}`);
    await Bun.sleep(50);
  }
}

/** The actions that were called, each as often as it was. */
const idsIn = ({ received }: Target) => received.map(({ headers }) => headers.get("webhook-id"));

const jsonOf = async (answer: Response): Promise<Json> => (await answer.json()) as Json;

async function newKey(node: Service, name: string): Promise<{ readonly id: string; readonly key: string }> {
  const body = JSON.stringify({ name, role: "agent" });
  const { id, key } = await jsonOf(await node.request("/v1/keys", { method: "POST", body }));
  return { id: String(id), key: String(key) };
}

// They wait for nodes to join for most of the time, so they run beside each other.
describe.skipIf(!hasPostgres)("nodes on one PostgreSQL", () => {
  test.concurrent("a key that is revoked on one, and a pause, are in force on the other within five seconds", async () => {
    await using target = new Target(200);
    await using nodes = await twoNodes();
    const { a, b } = nodes;
    const agent = await newKey(a, "agent");
    const read = (key: string) => b.request("/v1/actions", { key });
    expect((await read(agent.key)).status).toBe(200);
    // A stream of the key, which sends nothing by itself, ends too.
    const stream = await b.request("/v1/events", { key: agent.key });
    const reader = stream.body?.getReader();
    const ended = (async () => {
      while (reader !== undefined && !(await reader.read()).done);
      return true;
    })();
    expect((await a.request(`/v1/keys/${agent.id}`, { method: "DELETE" })).status).toBeLessThan(300);
    await within(SHARED_FRESH_MS, async () => (await read(agent.key)).status === 401);
    expect(await Promise.race([ended, Bun.sleep(SHARED_FRESH_MS).then(() => false)])).toBe(true);

    const paused = await jsonOf(await a.request("/v1/pauses", { method: "POST", body: "{}" }));
    // At once: each claim looks at the pauses in the database.
    const { id } = await b.create({ url: target.url });
    await Bun.sleep(1_000);
    expect((await jsonOf(await b.request(`/v1/actions/${String(id)}`)))["status"]).toBe("pending");
    await a.request(`/v1/pauses/${String(paused["id"])}`, { method: "DELETE" });
    await within(SHARED_FRESH_MS + MARGIN_MS, async () => (await b.final(id))["status"] === "completed");
    expect(idsIn(target)).toEqual([String(id)]);
  });
});

/** At a small width; `npm run faults` has it at its full one, and the other faults of several nodes. */
test.skipIf(!hasPostgres)("nodes on one database are killed, and nothing is lost or sent twice", async () => {
  const width = { clients: 4, pauseMs: 100, chance: Math.random, isAlone: false };
  const { figures, problems } = await nodeKills({
    databaseUrl: await createDatabase(),
    nodes: 2,
    kills: 1,
    actions: 100,
    width,
  });
  console.log(JSON.stringify(figures));
  expect(problems).toEqual([]);
});
