import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";
import { ROLES } from "../src/core/roles.ts";
import { madeKeyPage } from "../src/pages/settings/new-key.tsx";
import { firstKeysText } from "../src/app/first-keys.ts";

const ROOT = join(import.meta.dir, "..");

const KEY = "og_the_key_itself_0123456789abcdefghij";

/**
 * A key, or a variable that the shell puts in, where it becomes an argument of a program: then it stands in the list of
 * processes. Behind `echo` and `read`, which are the shell's own, and in single quotes, which it leaves alone, it does not.
 */
const ON_A_LINE = [
  /(?:-H|--header)[ =]"[^"\n]*(?:Bearer|api-key)[^"\n]*\$/i,
  /(?:-H|--header)[ =]'[^'\n]*Bearer (?!\\?\$\{OUTGATE_API_KEY\}')/i,
  /(?:SECRET_KEY|API_KEY|PASSWORD)=(?:<|og_|whsec_)[^ \n]* +\w/,
  /--(?:api-)?(?:key|password|token)[ =](?!file)["']?(?:og_|<|\$)/,
  /\bcurl\b[^\n]*(?: -u |--user )/,
];

const found = (text: string) =>
  text
    .split("\n")
    .flatMap((line, at) => (ON_A_LINE.some((pattern) => pattern.test(line)) ? [`${at + 1}: ${line}`] : []));

test("what is looked for is found", () => {
  for (const line of [
    `curl -s http://x -H "Authorization: Bearer $KEY"`,
    `curl -s http://x -H 'Authorization: Bearer og_1'`,
    `claude mcp add x http://x --header "Authorization: Bearer $KEY"`,
    "OUTGATE_API_KEY=<owner key> npm start",
    "SECRET_KEY=<old> NEW_SECRET_KEY=<new> outgate rotate-secret-key",
    "outgate list --api-key og_1",
    "curl -u api:key https://x",
  ]) {
    expect(found(line).length === 1, line).toBe(true);
  }
});

test("no example puts a secret on a command line", async () => {
  const globs = ["README.md", ".env.example", "docs/**", "mcp/**", "examples/**", "src/**"];
  const files = globs.flatMap((glob) => [...new Glob(glob).scanSync({ cwd: ROOT, dot: true })]);
  const texts = files.filter((path) => /\.(?:md|tsx?|sh|js|example)$/.test(path));
  expect(texts.length).toBeGreaterThan(150);
  for (const path of texts) {
    const text = await Bun.file(join(ROOT, path)).text();
    expect(found(text), path).toEqual([]);
  }
});

test("no line that is printed or shown with a key puts it on a command line", () => {
  const keys = { ownerKey: KEY, agentKey: KEY, welcomeToken: null };
  const user = { email: "ann@example.com", role: "owner", hasOthers: false, formToken: "t" } as Parameters<
    typeof madeKeyPage
  >[1];
  const limits = { hosts: null, methods: null, dailyActions: null, expiresAt: null };
  const made = {
    id: "key_1",
    name: "k",
    hold: "none",
    last4: "ghij",
    createdAt: new Date(0),
    revokedAt: null,
    ...limits,
  };
  const pages = ROLES.map((role) => {
    const key = { ...made, role, lastUsedAt: null } as unknown as Parameters<typeof madeKeyPage>[2];
    return madeKeyPage({ baseUrl: "http://127.0.0.1:3000" }, user, key, { key: KEY, closesSignUps: true });
  });
  for (const text of [firstKeysText({ baseUrl: "http://127.0.0.1:3000" }, keys), ...pages]) {
    const shown = text
      .replaceAll(/<\/?[a-z][^>]*>/g, "\n")
      .replaceAll("&#39;", "'")
      .replaceAll("&quot;", '"')
      .replaceAll("&lt;", "<");
    const commands = shown.split("\n").filter((line) => /\b(?:curl|claude|outgate|npm|export)\b/.test(line));
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.filter((line) => line.includes(KEY))).toEqual([]);
    expect(shown).toContain("read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY");
  }
});
