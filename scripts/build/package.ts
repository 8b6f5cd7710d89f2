import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILT_COMMIT, bundle, DIST, ROOT } from "./bundle.ts";
import { declarations } from "./declarations.ts";
import manifest from "../../package.json" with { type: "json" };

/** Node 20 has what the client and the command line use. */
const NODE = ">=20";

/**
 * Builds the npm package of the client and the command line for plain Node, without dependencies, in `dist/npm`. Resolves
 * with the folder: `npm pack` makes the file of it.
 */
export async function buildPackage(folder = DIST): Promise<string> {
  const root = join(folder, "npm");
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  await buildPrograms(root);
  writeFileSync(join(root, "client.d.ts"), await declarations());
  copyFileSync(join(ROOT, "src/client/README.md"), join(root, "README.md"));
  writeFileSync(join(root, "package.json"), `${JSON.stringify(packageManifest(), null, 2)}\n`);
  return root;
}

/** Builds what the package runs, into this folder. Without the types of the client, which take several times as long. */
export async function buildPrograms(root: string): Promise<void> {
  const common = { outdir: root, format: "esm", minify: { whitespace: true, syntax: true } } as const;
  await bundle("The client", {
    ...common,
    entrypoints: [join(ROOT, "src/client/package.ts")],
    naming: "client.js",
    // Node runs what browsers run.
    target: "browser",
  });
  await bundle("The command line", {
    ...common,
    target: "node",
    entrypoints: [join(ROOT, "src/cli/node-main.ts")],
    naming: { entry: "outgate.js", chunk: "chunks/[name]-[hash].js" },
    // The code of a command is read when it runs.
    splitting: true,
  });
  chmodSync(join(root, "outgate.js"), 0o755);
}

function packageManifest() {
  const { name, version, license } = manifest;
  const client = { types: "./client.d.ts", default: "./client.js" };
  return {
    name,
    version,
    description: "Client and command line of Outgate, the action delivery service for AI agents and other automation.",
    license,
    type: "module",
    engines: { node: NODE },
    bin: { outgate: "outgate.js" },
    types: "./client.d.ts",
    exports: { ".": client, "./client": client, "./package.json": "./package.json" },
    ...(BUILT_COMMIT !== null && { gitHead: BUILT_COMMIT }),
    files: ["client.js", "client.d.ts", "outgate.js", "chunks"],
  };
}
