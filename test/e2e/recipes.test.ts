import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { connect } from "../mcp/clients.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { shared } from "../support/shared.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const RECIPES = await Bun.file(join(import.meta.dir, "../../docs/recipes.md")).text();

const blocks = (language: string) =>
  [...RECIPES.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, text = ""]) => text);

const COMMANDS = blocks("sh").filter((text) => text.startsWith("curl"));

const [, targets = ""] = /^ALLOWED_PRIVATE_TARGETS=(.+)$/m.exec(RECIPES) ?? [];

const service = await shared(new Service({ env: { ALLOWED_PRIVATE_TARGETS: targets } }));
const url = await service.ready();
// Nothing is sent to the targets of the recipes.
const paused = await fetch(`${url}/v1/pauses`, {
  method: "POST",
  headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
  body: "{}",
});
expect(paused.status).toBe(201);

/** The text of a recipe with the addresses of this test. */
const here = (text: string) =>
  text
    .replaceAll("http://127.0.0.1:3000", url)
    .replaceAll("https://app.example.com", "http://127.0.0.1:9")
    .replace(/wait=\d+/, "wait=1");

test("the recipes have a command for each target", () => {
  expect(COMMANDS).toHaveLength(6);
});

test.each(COMMANDS.map((text) => [/"url": "(\S+)"/.exec(text)?.[1] ?? "", text]))("%s", async (target, command) => {
  const shell = Bun.spawn(["bash", "-c", here(command)], {
    env: {
      PATH: process.env["PATH"],
      OUTGATE_API_KEY: OWNER_KEY,
      STRIPE_KEY: "k",
      GITHUB_TOKEN: "k",
      SLACK_TOKEN: "k",
    },
    stdout: "pipe",
  });
  const action = await new Response(shell.stdout).json();
  const isHeld = command.includes('"approve": true');
  expect(action).toMatchObject({ url: target, status: isHeld ? "awaiting_approval" : "pending" });
});

test("the MCP calls are taken as they are written", async () => {
  const [create, wait] = blocks("json").map((text) => JSON.parse(text));
  await using mcp = await connect("first", `${url}/mcp`, { key: OWNER_KEY });
  const made = await mcp.client.callTool(create.params, {});
  expect(made.isError).not.toBe(true);
  const action = made.structuredContent as { id: string; status: string };
  expect(action.status).toBe("awaiting_approval");
  const { name, arguments: given } = wait.params;
  expect(Object.keys(given)).toEqual(["id", "wait"]);
  const waited = await mcp.client.callTool({ name, arguments: { ...given, id: action.id, wait: 1 } }, {});
  expect(waited.structuredContent).toMatchObject({ id: action.id, status: "awaiting_approval" });
});
