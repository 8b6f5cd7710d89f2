import { join } from "node:path";
import type { BunPlugin } from "bun";
import { commitOfCheckout } from "../../src/config/commit.ts";
import { SCRIPTS } from "../../src/ui/scripts.ts";

export const ROOT = join(import.meta.dir, "../..");

/** Where builds go. */
export const DIST = join(ROOT, "dist");

/** The commit of this build; null: not known. The build of an image has no `.git` and gets it from outside. */
export const BUILT_COMMIT = process.env["OUTGATE_COMMIT"] || commitOfCheckout(ROOT);

/** Runs the bundler. Rejects with everything that it says, in an error that begins with `what`. */
export async function bundle(what: string, config: Bun.BuildConfig): Promise<void> {
  const define = { ...config.define, OUTGATE_COMMIT: JSON.stringify(BUILT_COMMIT ?? "") };
  const plugins = [embeddedScripts, ...(config.plugins ?? [])];
  const built = await Bun.build({ ...config, define, plugins, throw: false });
  if (built.success) return;
  throw new AggregateError(built.logs, `${what} can't be built: ${built.logs.map(String).join("\n")}`);
}

/** The scripts of pages, bundled: a build has no sources to bundle them from. */
const embeddedScripts: BunPlugin = {
  name: "embedded-scripts",
  setup(build) {
    build.onLoad({ filter: /[/\\]src[/\\]ui[/\\]scripts\.ts$/ }, () => ({
      contents: `export const SCRIPTS = ${JSON.stringify(SCRIPTS)};`,
      loader: "js",
    }));
  },
};
