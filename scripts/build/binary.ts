import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BunPlugin } from "bun";
import { bundle, DIST, ROOT } from "./bundle.ts";

/**
 * The program, and what it starts as threads. All of them lie in one folder inside the binary, where
 * `new URL("./worker.ts", import.meta.url)` finds them: their names must differ.
 */
const ENTRIES = ["src/cli/binary-main.ts", "db/libsql/worker.ts", "src/receipts/mask-worker.ts"];

/** Builds service and command line as one executable file for this kind of machine. Resolves with its path. */
export async function buildBinary(folder = DIST): Promise<string> {
  const outfile = join(folder, "outgate");
  mkdirSync(folder, { recursive: true });
  await bundle("The binary", {
    entrypoints: ENTRIES.map((path) => join(ROOT, path)),
    naming: "[name].[ext]",
    target: "bun",
    // Compiled at the build and not at each start: 400 ms less processor time, and 16 MB more.
    format: "esm",
    bytecode: true,
    minify: { whitespace: true, syntax: true },
    plugins: [embeddedDriver(addonOfThisMachine())],
    compile: {
      outfile,
      // As with `npm start`: settings come from .env too. A bunfig.toml could run a stranger's program.
      autoloadDotenv: true,
      autoloadBunfig: false,
    },
  });
  return outfile;
}

/** The package of the native module that libsql loads here. */
function addonOfThisMachine(): string {
  const { platform, arch } = process;
  if (platform !== "linux") return `@libsql/${platform}-${arch}`;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return `@libsql/linux-${arch}-${header.glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

const COMPUTED = "return require(`@libsql/${target}`);";

/**
 * libsql computes the name of its native module, so that the bundler doesn't see it. This names it. Bun unpacks it into the
 * folder for temporary files when it is loaded; where that fails, its own error names neither the folder nor a way out.
 */
function embeddedDriver(addon: string): BunPlugin {
  const named = `try {
    return require(${JSON.stringify(addon)});
  } catch (cause) {
    const folder = process.env.BUN_TMPDIR || require("node:os").tmpdir();
    throw new Error(\`The driver of libsql:// can't be unpacked into \${folder}: set TMPDIR to a folder that this user can write and that is not mounted noexec.\`, { cause });
  }`;
  return {
    name: "embedded-driver",
    setup(build) {
      build.onLoad({ filter: /[/\\]node_modules[/\\]libsql[/\\]index\.js$/ }, async ({ path }) => {
        const text = await Bun.file(path).text();
        if (!text.includes(COMPUTED)) throw new Error(`${path} loads its native module in another way than before.`);
        return { contents: text.replace(COMPUTED, () => named), loader: "js" };
      });
    },
  };
}
