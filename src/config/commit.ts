import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** A build replaces this by its commit, or by "" if that is unknown. */
declare const OUTGATE_COMMIT: string | undefined;

const COMMIT_PATTERN = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** The commit of a checkout, read from its files without git. Null if this is no checkout or it can't be read. */
export function commitOfCheckout(root: string): string | null {
  // In a worktree, `.git` is a file that names the real folder. That folder has only HEAD; the branches are in `commondir`.
  const git = join(root, ".git");
  const folder = resolve(root, fileText(git)?.replace("gitdir: ", "") ?? git);
  const common = resolve(folder, fileText(join(folder, "commondir")) ?? "");
  const head = fileText(join(folder, "HEAD")) ?? "";
  const ref = head.startsWith("ref: ") ? head.slice("ref: ".length) : null;
  const commit = ref === null ? head : (fileText(join(common, ref)) ?? packedCommit(common, ref));
  return COMMIT_PATTERN.test(commit) ? commit : null;
}

function packedCommit(folder: string, ref: string): string {
  const packed = fileText(join(folder, "packed-refs"))?.split("\n") ?? [];
  return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0] ?? "";
}

function fileText(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return null;
  }
}

/** The commit of this program; null if unknown. */
export const COMMIT: string | null =
  typeof OUTGATE_COMMIT === "string" ? OUTGATE_COMMIT || null : commitOfCheckout(dirname(dirname(import.meta.dirname)));

/** How people start the command line: `npm run` in a checkout, its own name once it is built. */
export const COMMAND = typeof OUTGATE_COMMIT === "string" ? "outgate" : "npm run outgate --";
