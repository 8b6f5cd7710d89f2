import { expect, test } from "bun:test";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { OWNER_KEY, Service } from "../support/service.ts";

const ROOT = join(import.meta.dir, "../..");

test("the README's walk: a target that fails twice, a signature that its package verifies, a completed action", async () => {
  await using service = new Service({ env: { RETRY_BASE_MS: "20" } });
  const url = await service.ready();
  const port = await freePort();
  const target = Bun.spawn([process.execPath, join(ROOT, "examples/flaky-target.ts")], {
    env: { ...process.env, OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, TARGET_PORT: String(port) },
    stdout: "pipe",
  });
  try {
    const lines = target.stdout.getReader();
    const hello = new TextDecoder().decode((await lines.read()).value);
    expect(hello).toContain(`Listening on http://127.0.0.1:${port}`);

    const action = await service.create({
      url: `http://127.0.0.1:${port}/hello`,
      body: { hello: "world" },
      sync: true,
    });
    expect(action).toMatchObject({ status: "completed", attempts: 3, response_body: { delivered: true, attempts: 3 } });
    const forged = await fetch(`http://127.0.0.1:${port}/hello`, { method: "POST", body: "{}" });
    expect(forged.status).toBe(401);
  } finally {
    target.kill();
    await target.exited;
  }
});

test("the settings file lists nothing that the README's walk needs", async () => {
  const readme = await Bun.file(join(ROOT, "README.md")).text();
  for (const path of ["examples/flaky-target.ts", ".env.example", "src/README.md", "bench/README.md"]) {
    expect(readme).toContain(path);
    expect(await Bun.file(join(ROOT, path)).exists()).toBe(true);
  }
});
