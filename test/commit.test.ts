import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { COMMIT, commitOfCheckout } from "../src/config/commit.ts";
import { releaseText } from "../src/config/config.ts";
import { Service } from "./support/service.ts";
import { temporaryFolder } from "./support/store.ts";

const [ONE, OTHER] = ["1a2b3c4d5e6f7a8b9c0d".repeat(2), "f".repeat(40)];

test.each([
  ["a commit", { ".git/HEAD": `${ONE}\n` }, ONE],
  ["a branch", { ".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": `${ONE}\n` }, ONE],
  [
    "a packed branch",
    {
      ".git/HEAD": "ref: refs/heads/main\n",
      ".git/packed-refs": `# pack-refs\n${OTHER} refs/heads/my/refs/heads/main\n${OTHER} refs/heads/mainly\n${ONE} refs/heads/main\n`,
    },
    ONE,
  ],
  [
    "a worktree",
    {
      ".git": "gitdir: ./store/worktrees/one\n",
      "store/worktrees/one/HEAD": "ref: refs/heads/one\n",
      "store/worktrees/one/commondir": "../..\n",
      "store/refs/heads/one": `${ONE}\n`,
    },
    ONE,
  ],
  ["a branch without commits", { ".git/HEAD": "ref: refs/heads/main\n" }, null],
  ["something else", { ".git/HEAD": "what is this?\n" }, null],
  ["no checkout", {}, null],
] as const)("the commit of a folder that is at %s", async (_, files, commit) => {
  await using folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(commitOfCheckout(folder.path)).toBe(commit);
});

test("a release is told by its version, and by the beginning of its commit if that is known", () => {
  expect(releaseText({ version: "0.2.0", commit: ONE })).toBe("0.2.0 (1a2b3c4d5e6f)");
  expect(releaseText({ version: "0.2.0", commit: null })).toBe("0.2.0");
});

test("the start, /health and /ready carry version and commit", async () => {
  await using service = new Service();
  const release = { version: "0.2.0", commit: COMMIT };
  expect(manifest.version).toBe(release.version);
  expect(await service.logged("service.started")).toMatchObject(release);
  for (const path of ["/health", "/ready"]) {
    expect(await (await service.request(path)).json()).toEqual({ status: "ok", ...release });
  }
  const git = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: import.meta.dir, stderr: "ignore" });
  if (git.success) expect(COMMIT).toBe(git.stdout.toString().trim());
});
