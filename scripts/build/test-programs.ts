import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, ROOT } from "./bundle.ts";

const from = (path: string) => JSON.stringify(join(ROOT, path));

/**
 * What src/main.ts and src/cli/main.ts do, by the name of the file: a bundle for each would hold the same code. A program that
 * is compiled ahead of time can't wait at its top level.
 */
const ENTRY = `void (async () => {
  if (process.argv[1]?.endsWith("service.js")) {
    const { serve } = await import(${from("src/app.ts")});
    return serve(process.env);
  }
  const { processIo } = await import(${from("src/cli/io.ts")});
  const { runCommandLine } = await import(${from("src/cli/program.ts")});
  const { addServerCommands } = await import(${from("src/cli/server-commands.ts")});
  process.exitCode = await runCommandLine(process.argv.slice(2), processIo(process.env), addServerCommands);
})();`;

/** What they start as threads: they look for them beside themselves, under the names of their sources. */
const THREADS = { worker: "db/libsql/worker.ts", "mask-worker": "src/receipts/mask-worker.ts" } as const;

/**
 * Builds `service.js` and `outgate.js` for tests, which start them often: compiled ahead of time a start takes half of the
 * processor time that it takes from source. The folder lies in this checkout: they load a native module, whose name they
 * compute, out of its `node_modules`.
 */
export async function buildTestPrograms(folder: string): Promise<void> {
  const entry = join(folder, "outgate.ts");
  writeFileSync(entry, ENTRY);
  await bundle("The programs of the tests", {
    entrypoints: [entry, ...Object.values(THREADS).map((path) => join(ROOT, path))],
    outdir: folder,
    naming: "[name].[ext]",
    target: "bun",
    format: "cjs",
    bytecode: true,
  });
  for (const end of ["js", "js.jsc"]) copyFileSync(join(folder, `outgate.${end}`), join(folder, `service.${end}`));
  for (const name of Object.keys(THREADS)) copyFileSync(join(folder, `${name}.js`), join(folder, `${name}.ts`));
}
