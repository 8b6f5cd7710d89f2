import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { NODE_LOOK_MS_MIN, NODE_POLL_MS, NODE_READ_MS_MIN } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { Listener } from "../support/listener.ts";
import { NODES_ENV, SharedStore } from "../support/nodes.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

let stack: AsyncDisposableStack;
let a: RealServer;
let b: RealServer;
let clock: FakeClock;

/** Two servers on one database; the first one has few slots if that is said. */
async function openNodes({ hasHints = true, slots = 64 } = {}): Promise<void> {
  const { path } = stack.use(await temporaryFolder());
  const shared = new SharedStore(path, { hasHints });
  clock = new FakeClock();
  const env = { ...NODES_ENV, DISPATCH_CONCURRENCY: String(slots) };
  a = stack.use(await openRealServer({ clock, env, folder: path, wrapStore: shared.of(0) }));
  b = stack.use(await openRealServer({ clock, env: NODES_ENV, wrapStore: shared.of(1) }));
}

beforeEach(() => {
  stack = new AsyncDisposableStack();
});

afterEach(() => stack.disposeAsync());

/** Real time that the servers have for each step of the clock: calls over sockets take some, whatever the clock says. */
const TURN_MS = 4;

/** Lets time pass until the work is done; resolves with how much passed. */
async function passed(work: Promise<unknown>): Promise<number> {
  const startedMs = clock.monotonicMs();
  const timer = setInterval(() => clock.advance(NODE_READ_MS_MIN), TURN_MS);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
  return clock.monotonicMs() - startedMs;
}

const create = async (server: RealServer, members: object, query = "") =>
  (await server.call("POST", `/v1/actions${query}`, JSON.stringify({ method: "POST", ...members }))).json;

/** Starts a request, and resolves when it waits. */
async function begin<T>(request: () => Promise<T>): Promise<{ readonly answer: Promise<T> }> {
  const before = clock.timers;
  const answer = request();
  await until(() => clock.timers > before);
  return { answer };
}

describe.each([true, false])("with two nodes, and hints: %s,", (hasHints) => {
  test("a GET that waits on one is answered when a person approves on the other", async () => {
    await openNodes({ hasHints });
    await using target = new Target(200);
    const { id } = await create(a, { url: target.url, approve: true });
    const { answer } = await begin(() => a.call("GET", `/v1/actions/${id}?wait=100`));
    await b.call("POST", `/v1/actions/${id}/approve`);
    expect(await passed(answer)).toBeLessThan(2 * NODE_POLL_MS);
    expect((await answer).json).toMatchObject({ id, status: "completed" });
    expect(target.received.length).toBe(1);
  });

  test("a GET that waits on one is answered when a person rejects on the other", async () => {
    await openNodes({ hasHints });
    const { id } = await create(b, { url: "http://127.0.0.1:9/", approve: true });
    const { answer } = await begin(() => a.call("GET", `/v1/actions/${id}?wait=100`));
    await b.call("POST", `/v1/actions/${id}/cancel`);
    expect(await passed(answer)).toBeLessThan(2 * NODE_POLL_MS);
    expect((await answer).json).toMatchObject({ id, status: "cancelled" });
  });

  test("a create with sync is answered when the other node has sent it", async () => {
    const held = Promise.withResolvers<Response>();
    await openNodes({ hasHints, slots: 1 });
    await using target = new Target(() => held.promise, 200);
    const blocked = await create(a, { url: target.url });
    await target.saw(1);
    const answer = create(a, { url: target.url, sync: true });
    expect(await passed(answer)).toBeLessThan(NODE_LOOK_MS_MIN + 2 * NODE_POLL_MS);
    expect(await answer).toMatchObject({ status: "completed" });
    expect((await a.call("GET", `/v1/actions/${blocked.id}`)).json.status).toBe("active");
    held.resolve(new Response());
  });

  test("a stream on one tells what happens on the other, and goes on there after its last event", async () => {
    await openNodes({ hasHints });
    await using target = new Target(200);
    const headers = { authorization: `Bearer ${KEYS.owner}` };
    await using first = await Listener.open(`${a.url}/v1/events`, headers);
    await first.heard((heard) => heard.others.length > 0);
    const created = await create(b, { url: target.url, approve: true });
    expect(await passed(first.heard(1))).toBeLessThan(2 * NODE_POLL_MS);
    await b.call("POST", `/v1/actions/${created.id}/approve`);
    await passed(first.heard((heard) => heard.events.at(-1)?.event === "action.completed"));
    const whole = first.events.map(({ id, event }) => `${id} ${event}`);
    expect(first.events.map(({ event }) => event)).toEqual(
      ["awaiting_approval", "pending", "active", "completed"].map((status) => `action.${status}`),
    );
    for (const [at, { id }] of first.events.entries()) {
      for (const node of [a, b]) {
        await using later = await Listener.open(`${node.url}/v1/events`, { ...headers, "last-event-id": id });
        await later.heard(whole.length - at - 1);
        expect(later.events.map((heard) => `${heard.id} ${heard.event}`)).toEqual(whole.slice(at + 1));
      }
    }
  });

  test("a page on one hears of a decision on the other, and its inbox has nothing any more", async () => {
    await openNodes({ hasHints });
    const ann = await signedIn(a);
    const { id } = await create(b, { url: "http://127.0.0.1:9/", approve: true });
    expect(await ann.pageOf("/approvals")).toContain(id);
    await using page = await Listener.open(`${a.url}/events`, { cookie: ann.cookie });
    await page.heard((heard) => heard.others.length > 0);
    await b.call("POST", `/v1/actions/${id}/cancel`);
    expect(await passed(page.heard(1))).toBeLessThan(2 * NODE_POLL_MS);
    expect(page.events.map(({ data }) => data)).toEqual([expect.stringContaining(`"id":"${id}","status":"cancelled"`)]);
    expect(await ann.pageOf("/approvals")).not.toContain(id);
    // The session is one of the other node too.
    expect((await fetch(`${b.url}/approvals`, { headers: { cookie: ann.cookie }, redirect: "manual" })).status).toBe(
      200,
    );
  });
});
