import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "../../src/client/client.ts";
import { outgate, saidBy, start } from "../cli/outgate.ts";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/store.ts";

const HOUR_MS = 3_600_000;

interface DemoOptions {
  readonly port: number;
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

function startDemo({ port, folder, env = {} }: DemoOptions) {
  const own = { TMPDIR: join(folder, "tmp"), BUN_CONFIG_MAX_HTTP_REQUESTS: "1024" };
  return start(["demo", "--port", String(port)], { folder, env: { ...own, ...env } });
}

/** What it prints until the day is over. */
async function playedBy({ stdout }: ReturnType<typeof startDemo>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("Ctrl-C ends the demo")) break;
  }
  return text;
}

test("the demo plays a day in a database of its own, lets its reader in, and leaves nothing behind", async () => {
  await using folder = await temporaryFolder();
  const port = await freePort();
  mkdirSync(join(folder.path, "tmp"));
  // The reader's own: not opened, not written, not obeyed.
  const own = { DATABASE_URL: "file:own.db", SECRET_KEY: "not a key", MAILGUN_API_KEY: "mine", RETENTION_DAYS: "1" };
  writeFileSync(join(folder.path, "own.db"), "mine");
  writeFileSync(join(folder.path, ".env"), "PORT=1\nBASE_URL=https://outgate.example.com\n");
  const demo = startDemo({ port, folder: folder.path, env: own });
  try {
    const text = await playedBy(demo);
    const url = `http://localhost:${port}`;
    expect(text).toContain(`${url}/approvals`);
    const [place = ""] = /\/\S+outgate-demo-\w+/.exec(text) ?? [];
    expect(existsSync(join(place, "outgate.db"))).toBe(true);

    const password = /Password +(\S+)/.exec(text)?.[1] ?? "";
    for (const email of ["dana@acme.example", "marcus@acme.example"]) {
      const body = JSON.stringify({ email, password });
      const headers = { "content-type": "application/json", origin: url };
      expect((await fetch(`${url}/auth/login`, { method: "POST", headers, body })).status).toBe(200);
    }

    const client = createClient({ url, apiKey: /og_\w+/.exec(text)?.[0] ?? "" });
    const { data } = await client.countActions();
    expect(Object.fromEntries(data.map(({ status, count }) => [status, count]))).toMatchObject({
      awaiting_approval: 6,
      cancelled: 1,
      pending: 2,
    });
    const actions = await Array.fromAsync(client.actions());
    const nowMs = Date.now();
    const ages = actions.map((action) => nowMs - Date.parse(action.created_at));
    expect(Math.max(...ages)).toBeGreaterThan(23 * HOUR_MS);
    expect(Math.min(...ages)).toBeGreaterThanOrEqual(0);
    // Each call was made at its time: none took longer than the delays between its attempts.
    const ended = actions.filter(
      (one) => one.approved_at === null && one.started_at !== null && one.finished_at !== null,
    );
    const spans = ended.map((one) => Date.parse(one.finished_at ?? "") - Date.parse(one.started_at ?? ""));
    expect(Math.max(...spans)).toBeLessThan(60_000);
    expect(actions.filter(({ status }) => status === "failed").map(({ attempts }) => attempts)).toContain(3);
    expect(new Set(actions.flatMap((one) => one.approved_by ?? []))).toEqual(
      new Set(["user:dana@acme.example", "user:marcus@acme.example"]),
    );

    expect(new Set(actions.map(({ policy }) => policy?.by))).toEqual(new Set([undefined, "key", "rule", "grant"]));
    expect(await client.listCredentials()).toMatchObject({ data: [{ name: "stripe-live", uses_last_week: 10 }] });

    // What its reader approves goes to the target of the demo.
    const held = actions.find(({ status, url: called }) => status === "awaiting_approval" && called.includes("stripe"));
    await client.approveAction(held?.id ?? "");
    expect(await client.waitFor(held?.id ?? "")).toMatchObject({ status: "completed", response_code: 200 });

    // So does everything else: a name that nobody has is answered.
    const request = { url: "https://nowhere.invalid/orders", body: { order: 7 }, sync: true };
    expect(await client.create(request)).toMatchObject({ status: "completed", response_code: 200 });

    demo.kill("SIGINT");
    expect(await demo.exited).toBe(0);
    expect(await new Response(demo.stderr).text()).toBe("");
    expect(existsSync(place)).toBe(false);
    expect(readdirSync(folder.path).toSorted()).toEqual([".env", "own.db", "tmp"]);
    expect(await Bun.file(join(folder.path, "own.db")).text()).toBe("mine");
  } finally {
    demo.kill("SIGKILL");
    await demo.exited;
  }
}, 120_000);

test("where the port of the demo is taken, it says how to choose another one", async () => {
  await using folder = await temporaryFolder();
  mkdirSync(join(folder.path, "tmp"));
  using taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const demo = startDemo({ port: taken.port ?? 0, folder: folder.path });
  expect(await saidBy(demo)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/`(npm run outgate --|outgate) demo --port 3002`/),
  });
  expect(readdirSync(join(folder.path, "tmp"))).toEqual([]);
});

test("a port that is none is refused before anything is made", async () => {
  expect(await outgate(["demo", "--port", "70000"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("--port takes a port from 1 to 65535, not 70000."),
  });
});
