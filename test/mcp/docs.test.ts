import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { buildBridge } from "../../scripts/build/bridge.ts";
import { VERSION } from "../../src/config/config.ts";
import { TOOLS } from "../../mcp/tools.ts";
import { newFolder, OWNER_KEY, Service } from "../support/service.ts";
import { connect } from "./clients.ts";
import { shared, sharedFolder } from "../support/shared.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const ROOT = join(import.meta.dir, "../..");

const README = await Bun.file(join(ROOT, "mcp/README.md")).text();

const NAMES = Object.keys(TOOLS);

const { PATH = "", HOME = "" } = process.env;

/** The blocks of one language under a heading, in their order. */
function blocks(heading: string, language: string): readonly string[] {
  const section = README.split(/^### /m).find((part) => part.startsWith(heading)) ?? "";
  const own = section.split(/^## /m)[0] ?? "";
  return [...own.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, code = ""]) => code);
}

const folder = sharedFolder();

const service = await shared(new Service());
const url = await service.ready();

interface Remote {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Connects as a file of settings says, with the key in place of its variable. */
async function toolsAt({ url: address, headers }: Remote): Promise<readonly string[]> {
  const field = headers?.["Authorization"] ?? "";
  expect(field).toMatch(/^Bearer \$\{[\w:-]+\}$/);
  expect(address).toBe("http://127.0.0.1:3000/mcp");
  await using client = await connect("first", address.replace("http://127.0.0.1:3000", url), { key: OWNER_KEY });
  return (await client.client.listTools()).tools.map(({ name }) => name);
}

describe("the settings of programs that are not run in tests", () => {
  test.each([
    ["Claude Code", "mcpServers"],
    ["Cursor", "mcpServers"],
    ["VS Code", "servers"],
  ])("lead %s to the tools", async (heading, member) => {
    const settings = JSON.parse(blocks(heading, "json")[0] ?? "");
    expect(await toolsAt(settings[member].outgate)).toEqual(NAMES);
  });

  test("connect Codex to the tools", async () => {
    const { mcp_servers: servers } = Bun.TOML.parse(blocks("Codex", "toml")[0] ?? "") as {
      mcp_servers: { outgate: { url: string; bearer_token_env_var: string } };
    };
    const { url: address, bearer_token_env_var: variable } = servers.outgate;
    expect(await toolsAt({ url: address, headers: { Authorization: `Bearer \${${variable}}` } })).toEqual(NAMES);
  });

  test("are the same for Claude Code in both READMEs and at the first start", async () => {
    const root = await Bun.file(join(ROOT, "README.md")).text();
    const line =
      "claude mcp add --transport http outgate http://127.0.0.1:3000/mcp --scope project " +
      "--header 'Authorization: Bearer ${OUTGATE_API_KEY}'";
    expect(root).toContain(line);
    expect(README).toContain(line);
  });
});

describe("examples that are run in tests work as written", () => {
  test.each([["Vercel AI SDK"], ["MCP TypeScript SDK"]])("%s", async (heading) => {
    const code = (blocks(heading, "ts")[0] ?? "").replace("http://127.0.0.1:3000", url);
    const shown = heading.startsWith("Vercel") ? "Object.keys(tools)" : "tools.map(({ name }) => name)";
    const child = Bun.spawn([process.execPath, "-e", `${code}\nconsole.log(${shown}.join());\nprocess.exit(0);`], {
      cwd: ROOT,
      env: { PATH, HOME, OUTGATE_API_KEY: OWNER_KEY },
      stdout: "pipe",
    });
    expect((await new Response(child.stdout).text()).trim()).toBe(NAMES.join());
  });

  test("Claude Desktop: the bridge in one file, and the whole service", async () => {
    const [bridge, whole] = blocks("Claude Desktop", "json").map((text) => JSON.parse(text).mcpServers.outgate);
    const dist = await buildBridge(folder);
    const places = [
      {
        command: bridge.command,
        args: bridge.args.map((path: string) => path.replace("/path/to/outgate/dist/outgate-mcp.mjs", dist)),
        env: { ...bridge.env, PATH, HOME, OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY },
        cwd: folder,
      },
      {
        command: whole.command === "bun" ? process.execPath : "",
        args: whole.args.map((path: string) => path.replace("/path/to/outgate", ROOT)),
        env: { PATH, HOME, PORT: "0", DATABASE_URL: whole.env.DATABASE_URL.replace("/path/to/outgate", newFolder()) },
        cwd: "/",
      },
    ];
    expect(Object.keys(bridge.env)).toEqual(["OUTGATE_URL", "OUTGATE_API_KEY"]);
    for (const place of places) {
      await using client = await connect("first", place);
      expect((await client.client.listTools()).tools.map(({ name }) => name)).toEqual(NAMES);
    }
  });
});

test("mcp/README.md says what every tool does", () => {
  expect(NAMES.filter((name) => !README.includes(`\`${name}\``))).toEqual([]);
});

test("server.json connects to the tools once its variables are filled in", async () => {
  const server = await Bun.file(join(ROOT, "server.json")).json();
  expect(server.version).toBe(VERSION);
  expect(server.description.length).toBeLessThanOrEqual(100);
  expect(server.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  const [remote] = server.remotes;
  const [header] = remote.headers;
  expect([header.name, header.value, header.isSecret]).toEqual(["Authorization", "Bearer {api_key}", true]);
  const address = remote.url.replace("{base_url}", url);
  await using client = await connect("modern", address, { key: OWNER_KEY });
  expect((await client.client.listTools()).tools).toHaveLength(NAMES.length);
});
