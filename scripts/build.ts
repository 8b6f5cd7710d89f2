import { chmodSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");

/** Builds the MCP bridge for machines with Node alone, as one file. Resolves with its path. */
export async function build(folder = join(ROOT, "dist")): Promise<string> {
  const built = await Bun.build({
    entrypoints: [join(ROOT, "mcp/bridge/main.ts")],
    outdir: folder,
    naming: "outgate-mcp.mjs",
    target: "node",
    format: "esm",
    minify: true,
  });
  if (!built.success) throw new AggregateError(built.logs, "The bridge can't be built.");
  const file = join(folder, "outgate-mcp.mjs");
  chmodSync(file, 0o755);
  return file;
}

if (import.meta.main) console.log(`built ${await build()}`);
