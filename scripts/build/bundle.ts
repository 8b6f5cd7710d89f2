import { join } from "node:path";
import { commitOfCheckout } from "../../src/config/commit.ts";

export const ROOT = join(import.meta.dir, "../..");

/** Where builds go. */
export const DIST = join(ROOT, "dist");

/** The commit of this build; null: not known. The build of an image has no `.git` and gets it from outside. */
export const BUILT_COMMIT = process.env["OUTGATE_COMMIT"] || commitOfCheckout(ROOT);

/** Runs the bundler. Rejects with everything that it says, in an error that begins with `what`. */
export async function bundle(what: string, config: Bun.BuildConfig): Promise<void> {
  const define = { ...config.define, OUTGATE_COMMIT: JSON.stringify(BUILT_COMMIT ?? "") };
  const built = await Bun.build({ ...config, define, throw: false });
  if (built.success) return;
  throw new AggregateError(built.logs, `${what} can't be built: ${built.logs.map(String).join("\n")}`);
}
