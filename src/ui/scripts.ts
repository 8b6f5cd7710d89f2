import { join } from "node:path";

/**
 * The text of each script that pages load. A checkout bundles them as it starts, which takes some milliseconds; builds put
 * the result in the place of this module (`scripts/build/bundle.ts`).
 */
export const SCRIPTS = { console: await bundled("console"), session: await bundled("session") };

/** Comments and indents are for readers of the source; names stay. */
async function bundled(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dirname, "browser", `${name}.ts`)],
    target: "browser",
    minify: { whitespace: true, syntax: true },
  });
  return (await Promise.all(outputs.map((output) => output.text()))).join("");
}
