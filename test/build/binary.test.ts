import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "../../scripts/build/binary.ts";
import { RELEASE } from "../../src/config/config.ts";
import { MASKED_INLINE_CHARS_MAX } from "../../src/core/limits.ts";
import { outgate } from "../cli/outgate.ts";
import { connect } from "../mcp/clients.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

// The binary is built once, and its processes start on a machine that may be busy.
setDefaultTimeout(60_000);

const place = mkdtempSync(join(tmpdir(), "outgate-binary-"));
let binary = "";
beforeAll(async () => {
  chmodSync(place, 0o755);
  binary = await buildBinary(place);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

const NOBODY = 65_534;

/** Root can give a process away: then the service runs as another user, who owns nothing but its folder. */
const AS_ANOTHER =
  process.getuid?.() === 0 ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];

/** A command in an environment of these variables alone. */
const inEnvironment = (env: Readonly<Record<string, string>>) => [
  ...AS_ANOTHER,
  "env",
  "-i",
  ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  binary,
];

/** An empty folder of that user. */
function emptyFolder(name: string, mode = 0o700): string {
  const folder = join(place, name);
  mkdirSync(folder);
  if (AS_ANOTHER.length > 0) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, mode);
  return folder;
}

test("the binary starts in an empty folder as another user, delivers, serves pages, and keeps everything after kill -9", async () => {
  await using target = new Target(() => Response.json({ done: true }));
  const folder = emptyFolder("service");
  const env = { PORT: "0", BOOTSTRAP_API_KEY: OWNER_KEY, TMPDIR: emptyFolder("temporary") };
  const program = [...inEnvironment(env), "serve"];
  await using first = new Service({ folder, program });
  const url = await first.ready();
  // The binary knows its commit, wherever it lies.
  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: "ok", ...RELEASE });
  // Nothing says that Bun makes fewer calls at a time than the service may.
  expect(first.output).not.toContain("BUN_CONFIG_MAX_HTTP_REQUESTS");
  // Elysia reads the text of handlers, and says so where it can't.
  await fetch(`${url}/v1/actions`);
  expect(first.output).not.toContain("Sucrose");
  // Where it tells a command, it is called by its own name.
  const demo = Bun.spawn([...inEnvironment({}), "demo", "--port", new URL(url).port], { stderr: "pipe" });
  expect(await new Response(demo.stderr).text()).toContain("run `outgate demo --port 3002`");
  const body = { n: 1, long: "x".repeat(2 * MASKED_INLINE_CHARS_MAX) };
  const sent = await first.create({ url: target.url, sync: true, body });
  expect(sent["status"]).toBe("completed");
  expect(JSON.parse(target.received[0]?.body ?? "")).toEqual(body);

  const page = await (await fetch(`${url}/login`)).text();
  const assets = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(assets.length).toBeGreaterThanOrEqual(3);
  // The receipt is masked by a thread of its own, since it is long.
  for (const path of [
    ...assets,
    "/docs",
    "/docs/operations",
    "/docs/api",
    "/openapi.json",
    String(sent["receipt_url"]),
  ]) {
    const answer = await fetch(new URL(path, url));
    expect({ status: answer.status, isEmpty: (await answer.text()) === "" }, path).toEqual({
      status: 200,
      isEmpty: false,
    });
  }

  const held = await first.create({ url: target.url, approve: true });
  await first.end("SIGKILL");
  await using second = new Service({ folder, program });
  expect(await (await second.request(`/v1/actions/${String(sent["id"])}`)).json()).toEqual(sent);
  const id = String(held["id"]);
  expect((await second.request(`/v1/actions/${id}/approve`, { method: "POST", body: "{}" })).status).toBe(200);
  expect((await second.final(id))["status"]).toBe("completed");
  expect(await second.end()).toBe(0);
});

test("the binary speaks MCP as the service itself", async () => {
  await using target = new Target(() => Response.json({ done: true }));
  const folder = emptyFolder("mcp");
  const [command, ...args] = inEnvironment({ PORT: "0" });
  await using agent = await connect("modern", { command: command ?? "", args: [...args, "mcp"], env: {}, cwd: folder });
  const { structuredContent } = await agent.call("create", { url: target.url, sync: true });
  expect(structuredContent?.["status"]).toBe("completed");
  expect(readdirSync(folder)).toEqual(["data"]);
});

test("the binary is the command line", async () => {
  await using service = new Service();
  const env = { OUTGATE_URL: await service.ready(), OUTGATE_API_KEY: OWNER_KEY };
  const say = (...args: readonly string[]) => outgate(args, { env, program: [binary] });
  const { id } = await service.create({ url: `${env.OUTGATE_URL}/health`, method: "GET" });
  expect(await say("list", "--json")).toMatchObject({ code: 0, err: "", out: expect.stringContaining(String(id)) });
  expect((await say("completion", "bash")).out).toContain("outgate complete --");
  expect((await say("help")).out).toContain("\n  serve ");
  expect((await say("frobnicate")).code).toBe(2);
});

test("the binary says in a sentence where it can't unpack the driver of libsql://", async () => {
  const folder = emptyFolder("no-room");
  const env = {
    PORT: "0",
    DATABASE_URL: "libsql://127.0.0.1:1",
    SECRET_KEY: "5f".repeat(32),
    TMPDIR: emptyFolder("read-only", 0o500),
  };
  const child = Bun.spawn([...inEnvironment(env), "serve"], { cwd: folder, stdout: "pipe", stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe(
    `Outgate can't start. The driver of libsql:// can't be unpacked into ${env.TMPDIR}: set TMPDIR to a folder that this user can write and that is not mounted noexec.\n`,
  );
  expect(await new Response(child.stdout).text()).toBe("");
  expect(await child.exited).toBe(1);
  expect(readdirSync(folder)).toEqual([]);
});
