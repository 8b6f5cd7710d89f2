import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { NODE_POLL_MS } from "../../src/core/limits.ts";
import { actionIn, connect } from "../mcp/clients.ts";
import { Balancer } from "../support/cluster/balancer.ts";
import { ClusterNode } from "../support/cluster/node.ts";
import { Listener } from "../support/listener.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { hasPooler, Pooler } from "../support/postgres/pooler.ts";
import { newFolder, OWNER_KEY } from "../support/service.ts";
import { Target } from "../support/target.ts";

// Processes that start, on a machine that may be busy.
setDefaultTimeout(60_000);

const HEADERS = { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" };

interface Shown {
  readonly id: string;
  readonly status: string;
}

const ask = async (node: ClusterNode, method: string, path: string, body?: object): Promise<Shown> => {
  const init = { method, headers: HEADERS, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const answer = await fetch(node.url + path, init);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Shown;
};

const listen = (node: ClusterNode, lastEventId?: string) =>
  Listener.open(`${node.url}/v1/events`, {
    authorization: HEADERS.authorization,
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  });

const lineOf = ({ id, event, data }: { readonly id: string; readonly event: string; readonly data: string }) =>
  `${id} ${event} ${(JSON.parse(data) as { data: Shown }).data.id}`;

const ways = [
  // A hint takes milliseconds; a second is for a machine that is busy.
  { name: "with hints", isPooled: false, withinMs: 1_000 },
  { name: "behind a pooler of transactions, by polling", isPooled: true, withinMs: NODE_POLL_MS + 1_500 },
] as const;

describe.each(ways)("two processes on one database, $name,", ({ isPooled, withinMs }) => {
  const isSkipped = !hasPostgres || (isPooled && !hasPooler);
  const stack = new AsyncDisposableStack();
  let a: ClusterNode;
  let b: ClusterNode;
  let target: Target;

  beforeAll(async () => {
    if (isSkipped) return;
    target = stack.use(new Target(200));
    const direct = await createDatabase();
    stack.defer(() => dropDatabase(direct));
    const databaseUrl = isPooled ? stack.use(await Pooler.start(direct)).url : direct;
    const folder = newFolder();
    a = await ClusterNode.create("a", { folder, databaseUrl });
    b = await ClusterNode.create("b", { folder, databaseUrl });
    for (const node of [a, b]) {
      stack.defer(() => node.end("SIGKILL"));
      node.start();
    }
    await Promise.all([a.ready(), b.ready()]);
  });

  afterAll(() => stack.disposeAsync());

  test.skipIf(isSkipped)("a wait on one is answered when a person approves on the other", async () => {
    const { id } = await ask(a, "POST", "/v1/actions", { url: target.url, approve: true });
    const waiting = ask(a, "GET", `/v1/actions/${id}?wait=60`);
    await Bun.sleep(100);
    const startedMs = performance.now();
    await ask(b, "POST", `/v1/actions/${id}/approve`);
    expect(await waiting).toMatchObject({ id, status: "completed" });
    expect(performance.now() - startedMs).toBeLessThan(withinMs);
  });

  test.skipIf(isSkipped)(
    "a client of MCP of 2025 needs no affinity, and its wait hears of the other node",
    async () => {
      await using balancer = new Balancer([a, b]);
      await using agent = await connect("first", `${balancer.url}/mcp`, { key: OWNER_KEY });
      for (let turn = 0; turn < 4; turn += 1) {
        const { id } = actionIn(await agent.call("create", { url: target.url, method: "POST", approve: true }));
        const waiting = agent.call("wait", { id, wait: 10 });
        await Bun.sleep(100);
        await ask(turn % 2 === 0 ? a : b, "POST", `/v1/actions/${id}/approve`);
        expect(actionIn(await waiting)).toMatchObject({ id, status: "completed" });
      }
    },
  );

  test.skipIf(isSkipped)(
    "streams on both show all changes of both, in one order, and go on after a restart where they were",
    async () => {
      await using onA = await listen(a);
      await using onB = await listen(b);
      for (const stream of [onA, onB]) await stream.heard(({ others }) => others.length > 0);
      const createOn = (node: ClusterNode, count: number) =>
        Promise.all(Array.from({ length: count }, () => ask(node, "POST", "/v1/actions", { url: target.url })));
      const first = (await Promise.all([createOn(a, 50), createOn(b, 50)])).flat();
      const isAllEnded = (count: number) => (stream: Listener) =>
        stream.events.filter(({ event }) => event === "action.completed").length >= count;
      await Promise.all([onA.heard(isAllEnded(100)), onB.heard(isAllEnded(100))]);
      expect(onA.events.map(lineOf)).toEqual(onB.events.map(lineOf));
      const started = onA.events.filter(({ event }) => event === "action.completed").map(lineOf);
      expect(new Set(started.map((line) => line.split(" ")[2]))).toEqual(new Set(first.map(({ id }) => id)));

      await b.end("SIGTERM");
      await onB.over();
      await createOn(a, 20);
      b.start();
      await b.ready();
      await using again = await listen(b, onB.lastEventId);
      await createOn(b, 20);
      await onA.heard(isAllEnded(140));
      await again.heard(isAllEnded(40));
      const [whole, resumed] = [onA.events.map(lineOf), [...onB.events, ...again.events].map(lineOf)];
      expect(new Set(whole).size).toBe(whole.length);
      expect(resumed).toEqual(whole);
      // For each action in the order in which things happened to it.
      const ofAction = Map.groupBy(whole, (line) => line.split(" ")[2]);
      for (const lines of ofAction.values()) {
        expect(lines.map((line) => line.split(" ")[1])).toEqual(
          ["pending", "active", "completed"].map((status) => `action.${status}`).slice(-lines.length),
        );
      }
    },
  );
});
