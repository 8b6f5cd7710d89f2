import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { Listener } from "../support/listener.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

test("SIGTERM with fifty in flight loses and doubles nothing, answers who waits, and exits 0", async () => {
  await using target = new Target(async () => {
    await Bun.sleep(400);
    return new Response("done");
  });
  await using service = new Service();
  const url = await service.ready();
  const created = await Promise.all(Array.from({ length: 50 }, () => service.create({ url: target.url })));
  await target.saw(50);
  // One that will not be final for a long time: its waiter is answered with what it is.
  const held = await service.create({ url: target.url, approve: true });
  const waiting = service.request(`/v1/actions/${String(held["id"])}?wait=60`);
  // So does somebody who listens.
  await using listener = await Listener.open(`${url}/v1/events`, { authorization: `Bearer ${OWNER_KEY}` });
  await service.request("/health");

  const exited = service.end("SIGTERM");
  expect(((await (await waiting).json()) as { status: string }).status).toBe("awaiting_approval");
  expect(
    await fetch(`${url}/health`).then(
      (answer) => answer.status,
      () => "refused",
    ),
  ).toBe("refused");
  expect(await listener.over()).toBe("closed");
  expect(await exited).toBe(0);
  expect(target.received).toHaveLength(50);

  await using later = new Service({ folder: service.folder });
  const statuses = await Promise.all(created.map(async ({ id }) => (await later.final(id))["status"]));
  expect(new Set(statuses)).toEqual(new Set(["completed"]));
  expect(target.received).toHaveLength(50);
});

test("a stop waits until everything is in the database file: a copy of that file alone is whole", async () => {
  await using service = new Service();
  await service.create({ url: "http://127.0.0.1:9/", approve: true });
  expect(await service.end("SIGTERM")).toBe(0);
  expect(statSync(join(service.folder, "data/outgate.db-wal"), { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  await service.logged("service.stopped");
});

test("a second signal ends it at once", async () => {
  await using target = new Target(() => new Promise<Response>(() => {}));
  await using service = new Service();
  await service.ready();
  await service.create({ url: target.url });
  await target.saw(1);
  const startedMs = performance.now();
  service.process.kill("SIGTERM");
  await service.logged("service.stopping");
  // As an impatient hand does: again and again, since what comes within a moment is taken for the same signal.
  const again = setInterval(() => service.process.kill("SIGTERM"), 50);
  expect(await service.process.exited).toBe(1);
  clearInterval(again);
  // The first alone would wait for the call, up to half a minute.
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});

test("one signal that comes twice, to a group in which timeout(1) passes it on, is one", async () => {
  await using target = new Target(async () => {
    await Bun.sleep(400);
    return new Response("done");
  });
  await using service = new Service({ wrapper: ["timeout", "60"] });
  await service.ready();
  const { id } = await service.create({ url: target.url });
  await target.saw(1);
  process.kill(-service.process.pid, "SIGTERM");
  await service.process.exited;
  await service.logged("service.stopped");
  await using later = new Service({ folder: service.folder });
  expect((await later.final(id))["status"]).toBe("completed");
  expect(target.received).toHaveLength(1);
});

test("a terminal that is closed stops it in order, unless nohup(1) started it", async () => {
  await using target = new Target(async () => {
    await Bun.sleep(400);
    return new Response("done");
  });
  await using service = new Service();
  await service.ready();
  const { id } = await service.create({ url: target.url });
  await target.saw(1);
  service.process.kill("SIGHUP");
  expect(await service.process.exited).toBe(0);
  await using later = new Service({ folder: service.folder, wrapper: ["nohup"] });
  expect((await later.final(id))["status"]).toBe("completed");
  later.process.kill("SIGHUP");
  expect(await later.create({ url: target.url })).toMatchObject({ status: "pending" });
  expect(await later.end("SIGTERM")).toBe(0);
});
