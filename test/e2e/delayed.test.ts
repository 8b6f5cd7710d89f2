import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { newFolder, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const folder = newFolder();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const COUNT = 40;

/** What is left of an action. */
interface Left {
  readonly id: string;
  readonly status: string;
  readonly run_at: string;
  readonly started_at: string;
  readonly [name: string]: unknown;
}

test("kill -9 with delayed actions: each is sent once, none early; what expired meanwhile is cancelled and not sent", async () => {
  await using target = new Target(200);
  const first = new Service({ folder });
  await first.ready();
  const runAt = new Date(Date.now() + 4_000).toISOString();
  const expiresAt = new Date(Date.now() + 4_500).toISOString();
  const delayed = await Promise.all(
    Array.from({ length: COUNT }, () => first.create({ url: `${target.url}sent`, run_at: runAt })),
  );
  const expiring = await Promise.all(
    Array.from({ length: COUNT }, (_, n) =>
      first.create({ url: `${target.url}expired`, delay_seconds: 4, expires_at: expiresAt, approve: n % 2 === 0 }),
    ),
  );
  const soon = await first.create({ url: `${target.url}now`, delay_seconds: 3_600, timeout_ms: 120_000 });
  await first.end("SIGKILL");
  expect(target.received).toHaveLength(0);
  await Bun.sleep(Math.max(0, Date.parse(expiresAt) - Date.now()) + 100);

  await using second = new Service({ folder });
  await second.request(`/v1/actions/${String(soon["id"])}/send-now`, { method: "POST" });
  const ended = async (made: readonly { readonly id?: unknown }[]) =>
    (await Promise.all(made.map(({ id }) => second.final(String(id))))) as unknown as readonly Left[];
  for (const action of await ended(delayed)) {
    expect(action).toMatchObject({ status: "completed", run_at: runAt, attempts: 1 });
    expect(Date.parse(action.started_at)).toBeGreaterThanOrEqual(Date.parse(runAt));
  }
  for (const action of await ended(expiring)) expect(action).toMatchObject({ status: "cancelled", attempts: 0 });
  expect((await ended([soon]))[0]).toMatchObject({ status: "completed" });
  const paths = target.received.map(({ path }) => path);
  expect([paths.filter((path) => path === "/sent").length, paths.includes("/expired")]).toEqual([COUNT, false]);
});
