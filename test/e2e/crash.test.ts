import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { newFolder, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

const KILLS = 3;
const RETRIES = 4;
const folder = newFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The long form, fifty kills with every part in a process of its own, is bench/kills.ts. */
test("kill -9 under load loses nothing that was acknowledged and never sends more often than allowed", async () => {
  await using target = new Target(async () => {
    await Bun.sleep(20);
    return new Response("ok");
  });
  const env = { RETRY_BASE_MS: "20", RETRY_CAP_MS: "100", RATE_LIMIT_PER_SECOND: "0" };
  const acknowledged: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const service = new Service({ folder, env });
    await service.ready();
    const creators = Array.from({ length: 16 }, () => createUntilDead(service, target.url, acknowledged));
    await target.saw(target.received.length + 100);
    await service.end("SIGKILL");
    await Promise.all(creators);
  }

  await using service = new Service({ folder, env });
  const actions = await Promise.all(acknowledged.map((id) => service.final(id)));
  expect(acknowledged.length).toBeGreaterThan(100);
  expect(actions.filter(({ status }) => status !== "completed")).toEqual([]);
  const sends = Map.groupBy(target.received, ({ headers }) => headers.get("webhook-id"));
  for (const [, calls] of sends) expect(calls.length).toBeLessThanOrEqual(RETRIES);
  for (const id of acknowledged) expect(sends.has(id)).toBe(true);
});

test("a create whose answer was lost is found again by its Idempotency-Key, with one delivery", async () => {
  await using target = new Target();
  const ownFolder = newFolder();
  const body = JSON.stringify({ url: target.url });
  const send = (service: Service) =>
    service.request("/v1/actions", { method: "POST", body, headers: { "Idempotency-Key": "once" } });
  const before = new Service({ folder: ownFolder });
  const first = (await (await send(before)).json()) as { id: string };
  await target.saw(1);
  await before.end("SIGKILL");

  await using after = new Service({ folder: ownFolder, env: { RETRY_BASE_MS: "1" } });
  const again = await send(after);
  expect(again.status).toBe(200);
  expect(await again.json()).toMatchObject({ id: first.id, deduplicated: true, differs: [] });
  await after.final(first.id);
  // Whether the kill came before or after the result was recorded: a second call is allowed only in the first case.
  const timeline = (await (await after.request(`/v1/actions/${first.id}/timeline`)).json()) as {
    data: { type: string; outcome?: string }[];
  };
  const unknown = timeline.data.filter(({ outcome }) => outcome === "unknown");
  expect(target.received).toHaveLength(1 + unknown.length);
  rmSync(ownFolder, { recursive: true, force: true });
});

async function createUntilDead(service: Service, url: string, acknowledged: string[]): Promise<void> {
  while (true) {
    const created = await service.create({ url, retries: RETRIES }).catch(() => null);
    if (created === null) return;
    acknowledged.push(String(created["id"]));
  }
}
