import { afterEach, describe, expect, test } from "bun:test";
import type { ActionService } from "../../src/actions/service.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Action } from "../../src/core/action.ts";
import { whileWaiting } from "../../src/http/sse.ts";
import { anAction } from "../support/factory.ts";
import { aRequestContext, limitsServer, stubActionService, KEYS, KNOWN_ID, openStubServer } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { until } from "../support/until.ts";

type Wait = ActionService["wait"];

/** A service in which every wait hangs until it is stopped or `finish` is called. */
function hangingService() {
  const begun = Promise.withResolvers<void>();
  const over = Promise.withResolvers<Action>();
  const waits: { id: string; waitMs: number; wasStopped: boolean }[] = [];
  const wait: Wait = async (_caller, id, { waitMs, stop }) => {
    const seen = { id, waitMs, wasStopped: false };
    waits.push(seen);
    const stopped = new Promise<Action>((resolve) => {
      const end = () => {
        seen.wasStopped = true;
        resolve(anAction({ id, status: "active", attempts: 1 }));
      };
      if (stop?.aborted === true) end();
      else stop?.addEventListener("abort", end);
    });
    begun.resolve();
    return await Promise.race([stopped, over.promise]);
  };
  const finish = () => over.resolve(anAction({ id: KNOWN_ID, status: "completed", attempts: 1 }));
  return { actionService: stubActionService({ wait }), waits, begun: begun.promise, finish };
}

const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const app of open.splice(0)) await app[Symbol.asyncDispose]();
});

function openHanging() {
  const hanging = hangingService();
  const app = openStubServer({ actionService: hanging.actionService });
  open.push(app);
  return { ...hanging, app };
}

const SYNC = {
  method: "POST",
  body: `{"url":"https://api.example.com/","sync":true}`,
  headers: { "content-type": "application/json" },
};

describe("a wait", () => {
  test.each([
    ["/v1/actions", SYNC, 30_000],
    ["/v1/actions?wait=120", SYNC, 120_000],
    [`/v1/actions/${KNOWN_ID}?wait=7`, {}, 7_000],
  ])("lasts as long as it was asked for, and answers with the end: %s", async (path, init, waitMs) => {
    const { app, waits, begun, finish } = openHanging();
    const asked = app.ask(path, init);
    await begun;
    finish();
    const response = await asked;
    expect(response.ok).toBe(true);
    expect(await response.json()).toMatchObject({ id: KNOWN_ID, status: "completed" });
    expect(waits).toEqual([{ id: KNOWN_ID, waitMs, wasStopped: false }]);
  });

  test("does not happen without sync, nor when the action has ended", async () => {
    const { app, waits } = openHanging();
    const body = `{"url":"https://api.example.com/"}`;
    expect((await app.ask("/v1/actions?wait=60", { ...SYNC, body })).status).toBe(201);
    expect((await app.ask(`/v1/actions/${KNOWN_ID}`)).status).toBe(200);
    const ended = stubActionService({ get: () => Promise.resolve(anAction({ id: KNOWN_ID, status: "failed" })) });
    const other = openStubServer({ actionService: ended });
    open.push(other);
    expect(await (await other.ask(`/v1/actions/${KNOWN_ID}?wait=60`)).json()).toMatchObject({ status: "failed" });
    expect(waits).toEqual([]);
  });

  test("ends when the service stops, with what there is", async () => {
    const { app, waits, begun } = openHanging();
    const [create, get] = [app.ask("/v1/actions", SYNC), app.ask(`/v1/actions/${KNOWN_ID}?wait=100`)];
    await begun;
    await until(() => waits.length >= 2);
    app.drain.abort();
    expect(await (await create).json()).toMatchObject({ status: "active" });
    expect(await (await get).json()).toMatchObject({ status: "active" });
    // One that comes while it stops does not begin to wait.
    expect(await (await app.ask(`/v1/actions/${KNOWN_ID}?wait=100`)).json()).toMatchObject({ status: "active" });
  });

  test("ends when the client goes away", async () => {
    const { app, waits, begun } = openHanging();
    const key = `Authorization: Bearer ${KEYS.owner}`;
    await exchange(app.port, [request(`GET /v1/actions/${KNOWN_ID}?wait=100`, [key]), () => begun], { leaves: true });
    await until(() => waits[0]?.wasStopped === true);
    expect(waits).toHaveLength(1);
  });

  test("leaves the connection as it was: what follows on it is answered", async () => {
    const { app, begun, finish } = openHanging();
    const key = `Authorization: Bearer ${KEYS.owner}`;
    const get = request(`GET /v1/actions/${KNOWN_ID}?wait=100`, [key]);
    const end = async () => {
      await begun;
      finish();
    };
    const { text } = await exchange(app.port, [get, end, request("GET /v1/actions", [key])], {
      until: (soFar) => soFar.includes("next_cursor"),
    });
    expect(readAnswer(text).body).toContain(`"status":"completed"`);
  });
});

test("stopping lets what is under way end, takes nothing new, and cuts what is not done after the grace", async () => {
  const { app, begun, finish } = openHanging();
  const asked = app.ask("/v1/actions", SYNC);
  await begun;
  const stopped = app.http.stop(20_000);
  expect(
    await fetch(`${app.url}/health`).then(
      () => "answered",
      () => "refused",
    ),
  ).toBe("refused");
  finish();
  expect((await asked).status).toBe(201);
  await stopped;

  const stubborn = openHanging();
  const never = stubborn.app.ask("/v1/actions", SYNC).then(
    () => "answered",
    () => "cut",
  );
  await stubborn.begun;
  await stubborn.app.http.stop(10);
  expect(await never).toBe("cut");
});

describe("the time limit of a request", () => {
  const contextOf = (limits: number[], isBodyUnread: boolean) => {
    const body = isBodyUnread ? new ReadableStream({ start: (controller) => controller.close() }) : null;
    const asked = new Request("http://localhost/", { method: "POST", body });
    return aRequestContext({ request: asked, server: limitsServer(limits), isBodyUnread });
  };
  const deps = { clock: systemClock, draining: new AbortController().signal };

  test("is lifted only while it waits: without it a connection would stay open for good", async () => {
    const limits: number[] = [];
    const work = () => Promise.resolve(void limits.push(-1));
    await whileWaiting(contextOf(limits, false), deps, work);
    expect(limits).toEqual([0, -1, 30]);
  });

  test("comes back when the work fails, and is lifted only when the body is in", async () => {
    const limits: number[] = [];
    const context = contextOf(limits, true);
    const failing = whileWaiting(context, deps, () => Promise.reject(new Error("x")));
    expect(await failing.catch((error: unknown) => String(error))).toBe("Error: x");
    expect(limits).toEqual([0, 30]);
    expect(context.request.bodyUsed).toBe(true);
  });
});
