import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** What a build replaces by the commit that it was made of, or by "" if it isn't known. */
declare const OUTGATE_COMMIT: string | undefined;

const COMMIT_PATTERN = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** The commit that a checkout is at, by its files: git need not be installed. Null: it is no checkout, or not readable. */
export function commitOfCheckout(root: string): string | null {
  try {
    const folder = gitFolderOf(root);
    const head = textOf(join(folder, "HEAD"));
    const ref = head.startsWith("ref: ") ? head.slice("ref: ".length) : null;
    const commit = ref === null ? head : readRef(commonFolderOf(folder), ref);
    return COMMIT_PATTERN.test(commit) ? commit : null;
  } catch {
    return null;
  }
}

/** In a worktree of another checkout, `.git` is a file that names the folder. */
function gitFolderOf(root: string): string {
  try {
    return resolve(root, textOf(join(root, ".git")).replace("gitdir: ", ""));
  } catch {
    return join(root, ".git");
  }
}

/** Where the branches are: a worktree has only its HEAD. */
function commonFolderOf(folder: string): string {
  try {
    return resolve(folder, textOf(join(folder, "commondir")));
  } catch {
    return folder;
  }
}

function readRef(folder: string, ref: string): string {
  try {
    return textOf(join(folder, ref));
  } catch {
    const packed = textOf(join(folder, "packed-refs")).split("\n");
    return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0] ?? "";
  }
}

function textOf(path: string): string {
  return readFileSync(path, "utf8").trim();
}

function commitOfThis(): string | null {
  if (typeof OUTGATE_COMMIT === "string") return OUTGATE_COMMIT === "" ? null : OUTGATE_COMMIT;
  return commitOfCheckout(dirname(dirname(import.meta.dirname)));
}

/** The commit that this program was made of; null: not known. */
export const COMMIT: string | null = commitOfThis();
