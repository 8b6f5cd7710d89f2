import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, ROOT } from "./bundle.ts";

const from = (path: string) => JSON.stringify(join(ROOT, path));

/** What src/main.ts and src/cli/main.ts do: a program that is compiled ahead of time can't wait at its top level. */
const ENTRIES = {
  service: `import { serve } from ${from("src/app.ts")};
    void serve(process.env);`,
  outgate: `import { processIo } from ${from("src/cli/io.ts")};
    import { runCommandLine } from ${from("src/cli/program.ts")};
    import { addServerCommands } from ${from("src/cli/server-commands.ts")};
    void (async () => {
      process.exitCode = await runCommandLine(process.argv.slice(2), processIo(process.env), addServerCommands);
    })();`,
} as const;

/** What they start as threads: they look for them beside themselves, under the names of their sources. */
const THREADS = { worker: "db/libsql/worker.ts", "mask-worker": "src/receipts/mask-worker.ts" } as const;

/**
 * Builds `service.js` and `outgate.js` for tests, which start them often: compiled ahead of time a start takes half of the
 * processor time that it takes from source. The folder lies in this checkout: they load a native module, whose name they
 * compute, out of its `node_modules`.
 */
export async function buildTestPrograms(folder: string): Promise<void> {
  const programs = Object.entries(ENTRIES).map(([name, text]) => {
    const path = join(folder, `${name}.ts`);
    writeFileSync(path, text);
    return path;
  });
  await bundle("The programs of the tests", {
    entrypoints: [...programs, ...Object.values(THREADS).map((path) => join(ROOT, path))],
    outdir: folder,
    naming: "[name].[ext]",
    target: "bun",
    format: "cjs",
    bytecode: true,
  });
  for (const name of Object.keys(THREADS)) copyFileSync(join(folder, `${name}.js`), join(folder, `${name}.ts`));
}
