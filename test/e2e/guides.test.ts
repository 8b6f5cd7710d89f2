import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { GUIDES } from "../../src/pages/docs/guides.ts";
import { actionIn, connect } from "../mcp/clients.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { shared } from "../support/shared.ts";
import { openGuideShell } from "./guide-shell.ts";
import { outgateAt } from "../cli/outgate.ts";

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
        // To zsh, as it comes, a comment is arguments. Servers have bash, and settings are lines of a file.
        const isCommented = name !== "deploy" && !/^[A-Z_]+=/.test(line) && / # /.test(line);
        return isBare || isElsewhere || isCommented || /\b(?:OWNER|AGENT)_KEY\b/.test(line) ? [`${name}: ${line}`] : [];
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

const OPERATIONS = await Bun.file(join(import.meta.dir, "../../docs/operations.md")).text();

const GUIDE = await Bun.file(join(import.meta.dir, "../../docs/people.md")).text();

const say = outgateAt(url);

test("the example of the guide invites somebody, and the commands manage them", async () => {
  const [, example = ""] = /```sh\n(curl[\s\S]*?)```/.exec(GUIDE) ?? [];
  const { output } = await run(example);
  const invited = JSON.parse(output) as { readonly id: string; readonly link: string };
  expect(invited).toMatchObject({ email: "bob@example.com", role: "approver", mailed: false });
  const people = (...args: string[]) => say(["people", ...args]);

  const listed = JSON.parse((await people("invitations", "--json")).out) as { readonly data: readonly object[] };
  expect(listed.data).toMatchObject([{ id: invited.id, email: "bob@example.com" }]);
  expect(JSON.stringify(listed)).not.toContain("link");
  expect((await people("withdraw", invited.id)).code).toBe(0);
  expect((await fetch(invited.link)).status).toBe(404);

  const second = await people("invite", "bob@example.com", "--role", "owner");
  expect([second.code, second.out.trim()]).toEqual([0, expect.stringMatching(/\/join\/[0-9a-f]{64}$/)]);
  const joined = await fetch(second.out.trim(), {
    method: "POST",
    redirect: "manual",
    headers: { origin: new URL(url).origin },
    body: new URLSearchParams({ password: "a password of Bob" }),
  });
  expect(joined.status).toBe(303);
  const members = JSON.parse((await people("--json")).out) as { readonly data: readonly { readonly id: string }[] };
  const bob = members.data[0]?.id ?? "";
  const lowered = await people("role", bob, "reader");
  expect([lowered.code, lowered.err]).toEqual([1, expect.stringContaining("only owner of the account")]);
  expect((await people("remove", bob)).code).toBe(1);
  expect((await people("role", bob, "agent")).code).toBe(2);
  expect((await people("invite", "x@example.com")).err).toContain("--role is missing");
  expect((await people("remove", "per_nobody")).err).toContain("no such person");
});

test("the examples of keys with limits make such keys", async () => {
  const section = OPERATIONS.slice(OPERATIONS.indexOf("## Keys with limits"));
  const [curl = "", command = ""] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
  const { output } = await run(curl);
  const limits = { methods: ["GET", "POST"], daily_actions: 200 };
  expect(JSON.parse(output)).toMatchObject({ ...limits, expires_at: "2035-01-01T00:00:00.000Z" });
  const words = command.trim().split(" ").slice("npm run outgate --".split(" ").length);
  const made = await say(words);
  expect([made.code, made.out.trim()]).toEqual([0, expect.stringMatching(/^og_/)]);
  const listed = JSON.parse((await say(["keys", "--json"])).out) as { readonly data: readonly object[] };
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const cli = listed.data.find((key) => Reflect.get(key, "hosts")?.length === 1);
  expect(cli).toMatchObject({ ...limits, hosts: ["api.stripe.com"], expires_at: expect.stringContaining(inDays(90)) });
  const wrong = await say(["keys", "create", "x", "--role", "agent", "--method", "HEAD"]);
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("methods")]);
});
