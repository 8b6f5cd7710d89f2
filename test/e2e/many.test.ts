import { expect, test } from "bun:test";
import { Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

const SLOW = 300;

test("three hundred silent calls in flight do not hold up one to a healthy target", async () => {
  const silent = Promise.withResolvers<void>();
  await using slow = new Target(() => silent.promise.then(() => new Response("late")));
  await using healthy = new Target();
  await using service = new Service({
    env: { DISPATCH_CONCURRENCY: "600", DISPATCH_PER_HOST: "400", RATE_LIMIT_PER_SECOND: "0" },
  });
  await service.ready();
  await Promise.all(Array.from({ length: SLOW }, () => service.create({ url: slow.url })));
  await slow.saw(SLOW);
  const done = await service.create({ url: healthy.url, sync: true }, "?wait=5");
  expect(done).toMatchObject({ status: "completed" });
  silent.resolve();
});

test("the start command lifts the engine's own limit of 256 calls", async () => {
  const { scripts } = (await Bun.file("package.json").json()) as { scripts: Record<string, string> };
  expect(scripts["start"]).toStartWith("BUN_CONFIG_MAX_HTTP_REQUESTS=1024 ");
});
