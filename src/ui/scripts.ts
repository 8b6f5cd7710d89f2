import { join } from "node:path";

/**
 * The text of each script that pages load. A checkout bundles them at its start, which takes some milliseconds. Builds
 * replace this module by the result (`scripts/build/bundle.ts`).
 */
export const SCRIPTS = { console: await bundled("console"), session: await bundled("session") };

/** Bundles a script without comments and indents. Keeps names. */
async function bundled(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dirname, "browser", `${name}.ts`)],
    target: "browser",
    minify: { whitespace: true, syntax: true },
  });
  return (await Promise.all(outputs.map((output) => output.text()))).join("");
}
