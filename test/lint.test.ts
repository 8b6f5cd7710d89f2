import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

const ROOT = new URL("..", import.meta.url).pathname;

/** Inside the repository, so that packages resolve; in a folder that git ignores, so that no other run sees it. */
const DIST = join(ROOT, "dist");

const HEAD = `
import { eq } from "drizzle-orm";
import type { LibSQLDatabase } from "drizzle-orm/libsql";
import { integer, sqliteTable } from "drizzle-orm/sqlite-core";
export const table = sqliteTable("t", { id: integer().primaryKey(), n: integer() });
export { eq };
`;

mkdirSync(DIST, { recursive: true });
const folder = mkdtempSync(join(DIST, "lint-"));
await Bun.write(join(folder, "tsconfig.json"), '{ "extends": "../../tsconfig.json", "include": ["."] }');

afterAll(() => rmSync(folder, { recursive: true }));

/** Every report of one run over the texts, file by file: `name: rule`. */
async function lint(texts: Readonly<Record<string, string>>, head = ""): Promise<readonly string[]> {
  const names = Object.keys(texts);
  await Promise.all(names.map((name) => Bun.write(join(folder, `${name}.ts`), head + texts[name])));
  // Named one by one: in a folder that git ignores the linter looks for nothing itself.
  const files = names.map((name) => `${name}.ts`);
  const command = [process.execPath, `${ROOT}node_modules/oxlint/bin/oxlint`, "-c", `${ROOT}.oxlintrc.json`];
  const options = { cwd: folder, stdout: "pipe", stderr: "inherit" } as const;
  const run = Bun.spawn([...command, "--type-aware", "-f", "unix", ...files], options);
  const output = await new Response(run.stdout).text();
  await run.exited;
  return [...output.matchAll(/^([\w-]+)\.ts:.*\((.*)\)\]$/gm)].map(([, name, rule]) => `${name}: ${rule}`).toSorted();
}

test("what must not pass is reported, and its sound twin is not", async () => {
  const reports = await lint(
    {
      "builder-forgotten":
        "export function f(db: LibSQLDatabase): void { db.update(table).set({ n: 1 }).where(eq(table.id, 1)); }",
      "builder-awaited":
        "export async function f(db: LibSQLDatabase): Promise<void> { await db.update(table).set({ n: 1 }).where(eq(table.id, 1)); }",
      "promise-forgotten": "export function f(g: () => Promise<LibSQLDatabase>): void { g(); }",
      "promise-as-condition":
        "export const f = (p: Promise<LibSQLDatabase>): number => { if (p) return 1; return 2; };",
      "switch-incomplete":
        'export function f(s: "a" | "b", d: LibSQLDatabase): unknown { switch (s) { case "a": return d; } return null; }',
      "any-type": "export const f = (x: any, db: LibSQLDatabase): unknown => [x, db];",
      bang: "export const f = (x: LibSQLDatabase | null): LibSQLDatabase => x!;",
      "banned-import":
        'import { request } from "undici";\nexport const f = (d: LibSQLDatabase): unknown => [d, request];',
    },
    HEAD,
  );
  expect(reports).toEqual([
    "any-type: no-explicit-any",
    "bang: no-non-null-assertion",
    "banned-import: no-restricted-imports",
    "builder-forgotten: no-floating-promises",
    "promise-as-condition: no-misused-promises",
    "promise-forgotten: no-floating-promises",
    "switch-incomplete: switch-exhaustiveness-check",
  ]);
});

test("a pattern that takes more than linear time is reported, wherever it stands", async () => {
  const reports = await lint({
    "charset-blanks": String.raw`export const f = (t: string): boolean => /;\s*charset\s*=\s*("?)([^";]*)\1\s*(?=;|$)/gi.test(t);`,
    "run-at-the-end": String.raw`export const f = (t: string): string => t.replace(/\/+$/, "");`,
    "run-behind-no-other": String.raw`export const f = (t: string): string => t.replace(/(?<!\/)\/+$/, "");`,
    "nested-repeat": 'export const f = (t: string): boolean => new RegExp("^(?:a+)+$", "u").test(t);',
    "without-new": 'export const f = (t: string): boolean => RegExp("^(?:a+)+$").test(t);',
    "made-of-constants":
      'const part = "a+";\nexport const f = (t: string): boolean => new RegExp(`^(?:${part})+$`).test(t);',
    "safely-made": 'const part = "a";\nexport const f = (t: string): boolean => new RegExp(`^(?:${part})+$`).test(t);',
    "made-elsewhere": "export const f = (t: string, part: string): boolean => new RegExp(part).test(t);",
    "in-a-schema": 'export const f = { type: "string", pattern: "^(?:a+)+$" };',
    "safe-schema": 'export const f = { type: "string", pattern: "^[a-z]{1,9}$" };',
    "time-table": 'export const f = { pattern: "*/5 * * * *" };',
  });
  expect(reports).toEqual([
    "charset-blanks: linear-patterns",
    "in-a-schema: linear-patterns",
    "made-elsewhere: linear-patterns",
    "made-of-constants: linear-patterns",
    "nested-repeat: linear-patterns",
    "run-at-the-end: linear-patterns",
    "without-new: linear-patterns",
  ]);
});
