import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { GUIDES } from "../../src/pages/docs/guides.ts";
import { actionIn, connect } from "../mcp/clients.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { shared } from "../support/shared.ts";
import { openGuideShell } from "./guide-shell.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

/** Those of the others have tests of their own: people, operations, deploy. */
const RUN = new Set(["start", "delivery", "verify", "extensions", "approvals", "rules", "cli", "find", "recipes"]);

const RECIPES = GUIDES.find(({ name }) => name === "recipes")?.text ?? "";

const blocksOf = (text: string, language = "sh") =>
  [...text.matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, "gm"))].map(([, block = ""]) => block);

const [, targets = ""] = /^ALLOWED_PRIVATE_TARGETS=(.+)$/m.exec(RECIPES) ?? [];
const service = await shared(new Service({ env: { ALLOWED_PRIVATE_TARGETS: targets } }));
const url = await service.ready();
// Nothing is sent to the targets of the guides.
expect((await service.request("/v1/pauses", { method: "POST", body: "{}" })).status).toBe(201);
const held = String((await service.create({ url: "https://api.example.com/orders", approve: true }))["id"]);
writeFileSync(join(service.folder, "order.json"), '{"order":7}');
const rules = GUIDES.find(({ name }) => name === "rules")?.text ?? "";
writeFileSync(join(service.folder, "rules.json"), /^```json\n([\s\S]*?)^```/m.exec(rules)?.[1] ?? "");
const run = openGuideShell(service, url);

test("every guide begins with three lines in short", () => {
  const without = GUIDES.filter(({ text }) => !/^# .+\n\n\*\*In short\*\*\n\n(?:- .+\n){3}\n/.test(text));
  expect(without.map(({ name }) => name)).toEqual([]);
});

test("the commands of the guides are as a reader has them: of a checkout, of this service, with one name for the key", () => {
  const found = GUIDES.flatMap(({ name, text }) =>
    blocksOf(text).flatMap((block) =>
      block.split("\n").flatMap((line) => {
        const isBare = name !== "deploy" && /(?:^|[|;(] *)outgate /.test(line);
        const isElsewhere = line.startsWith("curl") && !line.includes("http://127.0.0.1:3000") && line.includes("/v1/");
        return isBare || isElsewhere || /\b(?:OWNER|AGENT)_KEY\b/.test(line) ? [`${name}: ${line}`] : [];
      }),
    ),
  );
  expect(found).toEqual([]);
});

describe("a command of the guides", () => {
  const commands = GUIDES.filter(({ name }) => RUN.has(name)).flatMap(({ name, text }) =>
    blocksOf(text)
      .flatMap((block) => block.split(/\n(?=curl|npm)/))
      .map((command) => command.trim())
      .filter((command) => /^(?:curl|npm)/.test(command))
      // It has no end, and the path of a receipt is no path of an action.
      .filter((command) => !command.endsWith("watch") && !command.includes("<receipt_token>"))
      .map((command): [string, string] => [name, command]),
  );

  test.each(commands)("of %s runs as it is printed: %s", async (_guide, command) => {
    const own = command
      .replaceAll("https://app.example.com", "http://127.0.0.1:9")
      .replaceAll("act_…", held)
      .replace(/--wait \d+|wait=\d+/, (wait) => wait.replace(/\d+/, "1"));
    const tokens = Object.fromEntries(["STRIPE_KEY", "GITHUB_TOKEN", "SLACK_TOKEN"].map((name) => [name, "k"]));
    const { code, output, errors } = await run(own, tokens);
    // 3: not ended within --wait, 4: it is held.
    expect([0, 3, 4], errors).toContain(code);
    expect(output).not.toContain('"error":{"code"');
  });

  test("over MCP of the recipes is taken as it is written", async () => {
    const [create, wait] = blocksOf(RECIPES, "json").map((text) => JSON.parse(text));
    await using mcp = await connect("first", `${url}/mcp`, { key: OWNER_KEY });
    const made = actionIn(await mcp.call(create.params.name, create.params.arguments));
    expect(made.status).toBe("awaiting_approval");
    expect(Object.keys(wait.params.arguments)).toEqual(["id", "wait"]);
    const waited = await mcp.call(wait.params.name, { id: made.id, wait: 1 });
    expect(actionIn(waited)).toMatchObject({ id: made.id, status: "awaiting_approval" });
  });
});
