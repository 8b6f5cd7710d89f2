import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { buildBridge } from "../../scripts/build/bridge.ts";
import { saidBy } from "../cli/outgate.ts";
import { freePort } from "../support/free-port.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { actionIn, CLIENTS, connect, type Connected, errorIn, type Launch } from "./clients.ts";
import { newFolders, shared } from "../support/shared.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const OUTGATE = [COMMAND_LINE, "mcp"];
const YES = () => ({ action: "accept", content: { decision: "approve" } });
const { PATH = "", HOME = "" } = process.env;

/** The target answers only when this has resolved. */
let answering = Promise.resolve();
const newFolder = newFolders();
const folder = newFolder();
const service = await shared(new Service());
const target = await shared(new Target(() => answering.then(() => Response.json({ done: true }))));
const [url, bundle] = await Promise.all([service.ready(), buildBridge(folder)]);
// A key each, so that one client does not find what another has created.
const made = ["modern", "legacy", "first"].map(async (name) => {
  const body = JSON.stringify({ name, role: "agent" });
  return ((await (await service.request("/v1/keys", { method: "POST", body })).json()) as { key: string }).key;
});
const agentKeys = await Promise.all(made);
const bridge = (command: string, args: readonly string[], key: string): Launch => ({
  command,
  args,
  env: { PATH, HOME, OUTGATE_URL: url, OUTGATE_API_KEY: key },
  cwd: folder,
});

/** Uses every tool once, as an agent whose person approves; decisions are written down as those of the actor. */
async function useEveryTool(
  agent: Connected,
  { to, actor }: { readonly to: string; readonly actor: string },
): Promise<void> {
  // A client forgets who listens for progress as soon as it has the answer, also where it reads both at once.
  const heard = Promise.withResolvers<void>();
  answering = heard.promise;
  const args = { url: to, body: { n: 1 }, sync: true, idempotency_key: `an intent of ${actor}` };
  const created = actionIn(await agent.call("create", args, { onprogress: () => heard.resolve() }));
  expect(created).toMatchObject({ status: "completed", attempts: 1, response_code: 200 });
  expect(actionIn(await agent.call("create", args))).toMatchObject({ id: created.id, deduplicated: true });
  expect(actionIn(await agent.call("get", { id: created.id }))).toMatchObject({ id: created.id, status: "completed" });

  const held = actionIn(await agent.call("create", { url: to, approve: true }));
  const page = (await agent.call("list", { status: ["awaiting_approval"] })).structuredContent;
  expect(page).toMatchObject({ data: [{ id: held.id }] });
  expect(actionIn(await agent.call("cancel", { id: held.id }))).toMatchObject({ status: "cancelled" });
  expect(actionIn(await agent.call("retry", { id: held.id }))).toMatchObject({ status: "awaiting_approval" });
  const decided = { decision: "approved", decided_by: actor, decided_via: "elicitation" };
  expect(actionIn(await agent.call("approve", { id: held.id }))).toMatchObject({ approved_by: actor, ...decided });
  expect(agent.questions).toHaveLength(1);
  expect(actionIn(await agent.call("wait", { id: held.id }))).toMatchObject({ status: "completed", ...decided });
  expect(errorIn(await agent.call("approve", { id: held.id })).code).toBe("not_approvable");
}

test.each(CLIENTS)(
  "a client of the kind %s uses every tool of a remote service by the bridge on Node",
  async (kind) => {
    const node = Bun.which("node");
    if (node === null) throw new Error("This test needs Node beside Bun.");
    const key = agentKeys[CLIENTS.indexOf(kind)] ?? "";
    await using agent = await connect(kind, bridge(node, [bundle], key), { answer: YES });
    await useEveryTool(agent, { to: `${target.url}${kind}`, actor: `mcp:${kind}` });
  },
);

// It relays as the bridge does, to itself: one kind is enough.
test("a client uses every tool of a service that it has started, pages included", async () => {
  const cwd = newFolder();
  const port = await freePort();
  const launch = { command: process.execPath, args: OUTGATE, env: { PATH, HOME, PORT: String(port) }, cwd };
  await using agent = await connect("legacy", launch, { answer: YES });
  await useEveryTool(agent, { to: target.url, actor: "mcp:stdio" });
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
});

test("the bridge keeps numbers as they were written", async () => {
  const line = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create","arguments":{"url":"${target.url}numbers","sync":true,"body":{"n":1.0,"big":12345678901234567890}}}}`;
  for (const [command, ...args] of [
    ["node", bundle],
    [process.execPath, ...OUTGATE],
  ]) {
    const child = Bun.spawn([command ?? "", ...args], {
      env: { PATH, HOME, OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY },
      cwd: folder,
      stdin: "pipe",
      stdout: "pipe",
    });
    await child.stdin.write(`${line}\n`);
    await child.stdin.flush();
    const first = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(first.value)).toContain(`"body":{"n":1.0,"big":12345678901234567890}`);
    await child.stdin.end();
    expect(await child.exited).toBe(0);
  }
  expect(target.received.findLast(({ path }) => path === "/numbers")?.body).toBe(
    `{"n":1.0,"big":12345678901234567890}`,
  );
});

describe("outgate mcp", () => {
  const start = (env: Record<string, string>, cwd = folder, command = [process.execPath, ...OUTGATE]) =>
    Bun.spawn(command, { env: { PATH, HOME, ...env }, cwd, stdin: "pipe", stdout: "pipe", stderr: "pipe" });

  test("names the missing setting where it can't relay", async () => {
    for (const [child, code, complaint] of [
      [start({ OUTGATE_URL: url }), 1, "Set OUTGATE_API_KEY or OUTGATE_API_KEY_FILE"],
      [start({ OUTGATE_URL: "nowhere", OUTGATE_API_KEY: "og_x" }), 1, "OUTGATE_URL must be the address"],
      [start({}, folder, ["node", bundle]), 2, "Set OUTGATE_URL and OUTGATE_API_KEY"],
      [start({ OUTGATE_URL: "nowhere", OUTGATE_API_KEY: "og_x" }, folder, ["node", bundle]), 2, "OUTGATE_URL must be"],
    ] as const) {
      expect(await saidBy(child)).toMatchObject({ code, err: expect.stringContaining(complaint) });
    }
  });

  test("writes only protocol messages to standard output, no key and no link", async () => {
    const cwd = newFolder();
    const child = start({ PORT: "0" }, cwd);
    await child.stdin.write(`{"jsonrpc":"2.0","id":1,"method":"ping"}\n`);
    await child.stdin.flush();
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    await child.stdin.end();
    expect(await child.exited).toBe(0);
    const lines = new TextDecoder().decode(value).split("\n");
    expect(JSON.parse(lines[0] ?? "")).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
    expect(lines.slice(1)).toEqual([""]);
    expect((await reader.read()).done).toBe(true);
    const complaint = await new Response(child.stderr).text();
    expect(complaint).toContain("outgate welcome-link");
    expect(complaint).not.toMatch(/og_[0-9A-Za-z]{36}|\/welcome\//);
    expect(complaint).toContain("service.stopped");
  });

  test("starts no second service on one file, and explains how to use the first", async () => {
    const { code, err } = await saidBy(start({ PORT: "0" }, service.folder));
    expect(code).toBe(1);
    expect(err).toContain("Another Outgate has the database");
    expect(err).toContain("set OUTGATE_URL and OUTGATE_API_KEY");
  });

  test("uses OUTGATE_API_KEY in place of the agent stdio", async () => {
    const cwd = newFolder();
    const env = { PATH, HOME, PORT: "0", BOOTSTRAP_API_KEY: OWNER_KEY, OUTGATE_API_KEY: OWNER_KEY };
    await using owner = await connect("modern", { command: process.execPath, args: OUTGATE, env, cwd });
    const held = actionIn(await owner.call("create", { url: target.url, approve: true }));
    expect(actionIn(await owner.call("approve", { id: held.id }))).toMatchObject({ approved_by: "mcp:owner" });
  });
});
