// Installs what is missing, so that `npm start` and `npm test` are the whole set-up. Plain Node: it runs before
// anything is installed. About 0.05 s when there is nothing to do.
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A smaller bun "binary" is the placeholder that stays where the installer must not run bun's install script. */
const BUN_BYTES_MIN = 100_000;
/** Files that show a finished installation. npm writes the first; for Bun this script writes the second. */
const MARKS = ["node_modules/.package-lock.json", "node_modules/.bun-installed"];
const OFFLINE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|ConnectionRefused/;

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const isBun = (process.env.npm_config_user_agent ?? "").startsWith("bun/");

/** What it links to may serve other checkouts, and npm would empty it: whoever made the link installs there. */
const isLink = lstatSync("node_modules", { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

if (!isInstalled()) {
  if (isLink) fail("node_modules is a symbolic link without bun in it. Run `npm ci` where it leads to, or remove it.");
  console.error("Installing packages (only this once) ...");
  // Development packages too, whatever NODE_ENV says: bun itself is one of them.
  if (isBun) {
    run("bun", ["install", "--frozen-lockfile"]);
    writeFileSync("node_modules/.bun-installed", "");
  } else run("npm", ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"]);
}
// npm 12 runs no install scripts by default, and older versions may be configured so. This one works offline.
if (isPlaceholder("node_modules/bun/bin/bun.exe")) run("node", ["node_modules/bun/install.js"]);

function isInstalled() {
  const locked = statSync("package-lock.json").mtimeMs;
  const isCurrent = (mark) => existsSync(mark) && locked <= statSync(mark).mtimeMs;
  return existsSync("node_modules/.bin/bun") && (isLink || MARKS.some(isCurrent));
}

function isPlaceholder(path) {
  return existsSync(path) && statSync(path).size < BUN_BYTES_MIN;
}

function run(command, args) {
  const options = { stdio: ["ignore", "ignore", "pipe"], encoding: "utf8", shell: process.platform === "win32" };
  const { status, stderr, error } = spawnSync(command, args, options);
  if (status === 0) return;
  const reason = stderr ?? String(error);
  if (OFFLINE.test(reason))
    fail("Packages are not installed and the registry can't be reached: go online and try again.");
  // npm appends its usage text to some errors; the cause is at the beginning.
  const cause = reason.trim().split("\n").slice(0, 12).join("\n");
  fail(`${cause}\nSet-up failed: ${command} ${args.join(" ")}`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
