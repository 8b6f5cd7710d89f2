import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** What a build replaces by the commit that it was made of, or by "" if it isn't known. */
declare const OUTGATE_COMMIT: string | undefined;

const COMMIT_PATTERN = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** The commit that a checkout is at, by its files: git need not be installed. Null: it is no checkout, or not readable. */
export function commitOfCheckout(root: string): string | null {
  // In a worktree of another checkout, `.git` is a file that names the folder, which has only a HEAD; the branches are in `commondir`.
  const git = join(root, ".git");
  const folder = resolve(root, textOf(git)?.replace("gitdir: ", "") ?? git);
  const common = resolve(folder, textOf(join(folder, "commondir")) ?? "");
  const head = textOf(join(folder, "HEAD")) ?? "";
  const ref = head.startsWith("ref: ") ? head.slice("ref: ".length) : null;
  const commit = ref === null ? head : (textOf(join(common, ref)) ?? packedCommit(common, ref));
  return COMMIT_PATTERN.test(commit) ? commit : null;
}

function packedCommit(folder: string, ref: string): string {
  const packed = textOf(join(folder, "packed-refs"))?.split("\n") ?? [];
  return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0] ?? "";
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return null;
  }
}

/** The commit that this program was made of; null: not known. */
export const COMMIT: string | null =
  typeof OUTGATE_COMMIT === "string" ? OUTGATE_COMMIT || null : commitOfCheckout(dirname(dirname(import.meta.dirname)));

/** How a person calls the command line: `npm run` in a checkout, its own name once it is built. */
export const COMMAND = typeof OUTGATE_COMMIT === "string" ? "outgate" : "npm run outgate --";
