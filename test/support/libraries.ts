import { dirname, resolve } from "node:path";

/** The libraries that a file loads, by itself and by the files that it imports; `isLazyToo`: also by `import()`. */
export async function librariesOf(entry: string, { isLazyToo }: { isLazyToo: boolean }): Promise<readonly string[]> {
  const transpilers = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };
  const seen = new Set<string>();
  const libraries = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    if (seen.has(path) || !/\.tsx?$/.test(path)) return;
    seen.add(path);
    const imports = transpilers[path.endsWith("x") ? "tsx" : "ts"].scanImports(await Bun.file(path).text());
    for (const { path: target, kind } of imports) {
      if (kind === "dynamic-import" && !isLazyToo) continue;
      if (target.startsWith(".")) await visit(resolve(dirname(path), target));
      else if (!/^(bun|node):/.test(target)) libraries.add(target);
    }
  };
  await visit(entry);
  return [...libraries];
}
