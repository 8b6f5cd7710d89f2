import { chmodSync } from "node:fs";
import { join } from "node:path";
import { bundle, DIST, ROOT } from "./bundle.ts";

/** Builds the MCP bridge for machines with Node alone, as one file. Resolves with its path. */
export async function buildBridge(folder = DIST): Promise<string> {
  await bundle("The bridge", {
    entrypoints: [join(ROOT, "mcp/bridge/main.ts")],
    outdir: folder,
    naming: "outgate-mcp.mjs",
    target: "node",
    format: "esm",
    minify: true,
  });
  const file = join(folder, "outgate-mcp.mjs");
  chmodSync(file, 0o755);
  return file;
}
