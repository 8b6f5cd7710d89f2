import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "outgate-setup-"));
  mkdirSync(join(folder, "checkout/scripts"), { recursive: true });
  mkdirSync(join(folder, "packages/.bin"), { recursive: true });
  cpSync(join(import.meta.dir, "../scripts/setup.mjs"), join(folder, "checkout/scripts/setup.mjs"));
  symlinkSync("../packages", join(folder, "checkout/node_modules"));
  writeFileSync(join(folder, "packages/other"), "");
  // Newer than what is installed, as in a fresh checkout.
  writeFileSync(join(folder, "checkout/package-lock.json"), "{}");
});

afterEach(() => rmSync(folder, { recursive: true }));

function setUp() {
  const { exitCode, stderr } = Bun.spawnSync(["node", join(folder, "checkout/scripts/setup.mjs")]);
  return { exitCode, said: stderr.toString() };
}

test("set-up uses packages behind a symbolic link as they are", () => {
  writeFileSync(join(folder, "packages/.bin/bun"), "");
  expect(setUp()).toEqual({ exitCode: 0, said: "" });
});

test("set-up never installs through a symbolic link, which would empty what it leads to", () => {
  expect(setUp()).toEqual({ exitCode: 1, said: expect.stringContaining("Run `npm ci` where it leads to") });
  expect(existsSync(join(folder, "packages/other"))).toBeTrue();
});
