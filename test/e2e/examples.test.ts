import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { saidBy } from "../cli/outgate.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { shared } from "../support/shared.ts";
import { freePort } from "../support/free-port.ts";

const ROOT = join(import.meta.dir, "../..");

const EXAMPLES = join(ROOT, "examples");

const service = await shared(new Service({ env: { RETRY_BASE_MS: "1" } }));
const env = { PATH: process.env["PATH"], OUTGATE_URL: await service.ready(), OUTGATE_API_KEY: OWNER_KEY };
const start = (command: readonly string[]) => Bun.spawn([...command], { env, stdout: "pipe", stderr: "pipe" });
const example = (name: string, ...args: readonly string[]) => start([process.execPath, join(EXAMPLES, name), ...args]);

test("curl.sh sends a call, waits for its end and shows what happened", async () => {
  await using target = new Target(500, () => Response.json({ hello: "back" }));
  const { code, out, err } = await saidBy(start(["sh", join(EXAMPLES, "curl.sh"), target.url]));
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const [stored, action = "", timeline = ""] = out.trim().split("\n");
  expect(stored).toMatch(/^Stored as act_\w+/);
  expect(JSON.parse(action)).toMatchObject({ status: "completed", attempts: 2, response_body: { hello: "back" } });
  expect(timeline).toContain('"type":"attempt"');
});

test("send.ts has something done once, and tells how it went", async () => {
  await using target = new Target(() => Response.json({ ok: true }));
  expect(await saidBy(example("send.ts", target.url, "order-1"))).toEqual({
    code: 0,
    out: 'Done: {"ok":true}\n',
    err: "",
  });
  const again = await saidBy(example("send.ts", target.url, "order-1"));
  expect(again.out).toMatch(/^order-1 had been sent before, as act_\w+\.\nDone: /);
  expect(target.received).toHaveLength(1);
  await using broken = new Target(500);
  const failed = await saidBy(example("send.ts", broken.url, "order-2"));
  expect(failed.out).toStartWith("It is failed. The target answered with status 500. See http://127.0.0.1:");
  const refused = await saidBy(example("send.ts", "ftp://a.example/", "order-3"));
  expect(refused.code).toBe(1);
  expect(refused.err).toStartWith("invalid_url: ");
});

test("flaky-target.ts says what is missing: the service, or an owner key", async () => {
  const command = [process.execPath, join(EXAMPLES, "flaky-target.ts")];
  const run = (more: object) =>
    saidBy(Bun.spawn(command, { env: { ...env, ...more }, stdout: "pipe", stderr: "pipe" }));
  const alone = await run({ OUTGATE_URL: "http://127.0.0.1:1" });
  expect(alone).toEqual({
    code: 1,
    out: "",
    err: "Outgate does not answer at http://127.0.0.1:1: start it first, or set OUTGATE_URL.\n",
  });
  expect((await run({ OUTGATE_API_KEY: "og_no_key" })).err).toEndWith("(401): is this the owner key?\n");
});

test("reviewer.ts approves what is small, and leaves the rest to a person", async () => {
  await using target = new Target();
  const waiting = await service.create({ url: target.url, body: { amount: 5 }, approve: true });
  const unlimited = example("reviewer.ts", target.url, "100 EUR");
  let said = "";
  for await (const bytes of unlimited.stdout) {
    said += new TextDecoder().decode(bytes);
    if (/ is (?:left|approved)/.test(said)) break;
  }
  unlimited.kill();
  expect(said).toContain(`${String(waiting["id"])} is left to a person`);
  const reviewer = example("reviewer.ts", target.url, "100");
  let out = "";
  const listening = (async () => {
    for await (const bytes of reviewer.stdout) out += new TextDecoder().decode(bytes);
  })();
  try {
    expect((await service.final(waiting["id"]))["status"]).toBe("completed");
    const large = await service.create({ url: target.url, body: { amount: 500 }, approve: true });
    await service.create({ url: target.url, body: { amount: -5 }, approve: true });
    await service.create({ url: target.url, method: "DELETE", body: { amount: 5 }, approve: true });
    await service.create({ url: `${target.url}other`, body: { amount: 5 }, approve: true });
    const small = await service.create({ url: target.url, body: { amount: 50 }, approve: true });
    expect(await service.final(small["id"])).toMatchObject({ status: "completed", approved_by: "key:owner" });
    const seen = await service.request(`/v1/actions/${String(large["id"])}`);
    expect(await seen.json()).toMatchObject({ status: "awaiting_approval" });
    // It says so when it has its answer, and the call may be made before that.
    await until(() => out.match(/is approved\.$/gm)?.length === 2);
  } finally {
    reviewer.kill();
    await reviewer.exited;
  }
  await listening;
  expect(out).toContain("Listening.\n");
  expect(out.match(/is approved\.$/gm)).toHaveLength(2);
  expect(out.match(/is left to a person: /g)).toHaveLength(4);
});

test("every example is in the list", async () => {
  const list = await Bun.file(join(EXAMPLES, "README.md")).text();
  const files = (await readdir(EXAMPLES)).filter((name) => name !== "README.md");
  expect(files.length).toBeGreaterThan(0);
  for (const name of files) expect(list).toContain(`[${name}](${name})`);
});

test("the README's walk: a target that fails twice, a signature that its package verifies, a completed action", async () => {
  const port = await freePort();
  const target = Bun.spawn([process.execPath, join(EXAMPLES, "flaky-target.ts")], {
    env: { ...env, TARGET_PORT: String(port) },
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
