import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { inspect, lonelyTests, type SourceFile } from "./support/architecture.ts";

const ROOT = new URL("..", import.meta.url).pathname;

async function read(...patterns: readonly string[]): Promise<readonly SourceFile[]> {
  const paths = patterns.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]).toSorted();
  return Promise.all(paths.map(async (path) => ({ path, source: await Bun.file(ROOT + path).text() })));
}

test("imports only go down, and the rules of the house hold in every file", async () => {
  const { files, imports, problems } = inspect(await read("{src,mcp,db}/**/*.{ts,tsx,sql}"));
  console.log(`architecture: looked at ${files} files, ${imports} imports`);
  expect(files).toBeGreaterThan(0);
  expect(imports).toBeGreaterThan(0);
  if (problems.length > 0) throw new Error(`${problems.length} problems:\n  ${problems.join("\n  ")}`);
});

test("no test leaves the others out", async () => {
  const files = await read("test/**/*.{ts,tsx}");
  expect(files.length).toBeGreaterThan(0);
  expect(files.flatMap(lonelyTests)).toEqual([]);
});

describe("the inspection", () => {
  const problemsOf = (...files: readonly (readonly [path: string, source: string])[]) =>
    inspect(files.map(([path, source]) => ({ path, source }))).problems;

  test("lets a sound house pass, and counts", () => {
    const inspection = inspect([
      { path: "src/domain/action.ts", source: "export const limit = 3; // crypto, any, setTimeout\n" },
      {
        path: "src/actions/get.ts",
        source: 'import type { A } from "../domain/action.ts";\nimport {\n b\n} from "./b.ts";',
      },
      { path: "src/http/server.ts", source: 'import { Elysia } from "elysia";\nconst text = "process.env any";' },
      { path: "src/cli/commands/serve.ts", source: 'import { x } from "../../app.ts";' },
      {
        path: "src/app.ts",
        source: 'import { x } from "./http/server.ts";\nconst y = await import("../db/store.ts");',
      },
    ]);
    expect(inspection).toEqual({ files: 5, imports: 6, problems: [] });
  });

  test.each([
    ["an arrow that goes up", "src/domain/a.ts", 'import { b } from "../actions/b.ts";'],
    ["an arrow on one floor", "src/actions/a.ts", 'import { b } from "../accounts/b.ts";'],
    ["a type import that goes up", "src/ports/a.ts", 'import type { B } from "../contract/b.ts";'],
    ["a re-export that goes up", "src/domain/a.ts", 'export { b } from "../ports/b.ts";'],
    ["a dynamic import that goes up", "db/a.ts", 'const b = await import("../src/actions/b.ts");'],
    ["a bridge that sees the service", "mcp/bridge/a.ts", 'import { a } from "../server.ts";'],
    ["a room that reaches for the roof", "src/http/a.ts", 'import { b } from "../app.ts";'],
    ["a command that reaches for the roof", "src/cli/commands/send.ts", 'import { b } from "../../app.ts";'],
    ["a library on the roof", "src/app.ts", 'import { Elysia } from "elysia";'],
    ["a library outside its room", "src/actions/a.ts", 'import { Elysia } from "elysia";'],
    ["a part of a library outside its room", "src/http/a.ts", 'import { sql } from "drizzle-orm/sql";'],
    ["a library that has no room", "src/http/a.ts", 'import pad from "left-pad";'],
    ["a member of Bun outside its room", "src/http/a.ts", "await Bun.dns.lookup(name);"],
    ["the same, imported", "src/http/a.ts", 'import { dns } from "bun";'],
    ["a file outside every room", "src/utils/a.ts", "export const a = 1;"],
    ["an environment variable", "src/app.ts", 'const port = process.env["PORT"];'],
    ["the wall clock in the engine", "src/dispatch/a.ts", "const now = Date.now();"],
    ["a bare date in the law", "src/domain/a.ts", "const now = new Date();"],
    ["a timer in the desk", "src/actions/a.ts", "setTimeout(go, 5);"],
    ["chance in the desk", "src/accounts/a.ts", "const x = `${crypto.randomUUID()}`;"],
    ["any", "src/http/a.ts", "const x = y as any;"],
    ["a double cast", "src/http/a.ts", "const x = y as unknown as Z;"],
    ["a silenced check", "src/http/a.ts", "// @ts-expect-error because\nf();"],
    ["an interactive transaction", "db/a.ts", "await client.transaction(async () => {});"],
    ["an update without a guard", "db/a.ts", "const Q = `update actions set status = 'x' where id = ?`;"],
    ["an update without a guard in SQL", "db/a.sql", "UPDATE actions SET a = 1; select revision where status"],
    ["a builder without a guard", "db/a.ts", "await db.update(actions).set({ revision: 2 }).where(eq(id, 1));"],
    ["JSX of nobody", "src/web/a.tsx", "export const a = <p>b</p>;"],
  ])("finds %s", (_what, path, source) => {
    expect(problemsOf([path, source])).toHaveLength(1);
  });

  test("finds a cycle, once", () => {
    const problems = problemsOf(
      ["src/domain/a.ts", 'import { b } from "./b.ts";'],
      ["src/domain/b.ts", 'import { c } from "./c.ts";'],
      ["src/domain/c.ts", 'import { a } from "./a.ts";'],
    );
    expect(problems).toEqual(["cycle: src/domain/a.ts -> src/domain/b.ts -> src/domain/c.ts -> src/domain/a.ts"]);
  });

  test("accepts what says why it is safe, and a guarded update", () => {
    expect(problemsOf(["src/http/a.ts", "// Safe: checked above.\nconst x = y as unknown as Z;"])).toEqual([]);
    expect(problemsOf(["db/a.ts", "const Q = `update actions set a = 1 where id = ? and revision = ?`;"])).toEqual([]);
  });

  test("finds a test that leaves the others out", () => {
    const path = "test/a.test.ts";
    expect(lonelyTests({ path, source: 'test.only("x", f);' })).toHaveLength(1);
    expect(lonelyTests({ path, source: '// test.only("x", f)\nconst s = "test.only(";' })).toEqual([]);
  });
});
