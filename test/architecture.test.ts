import { describe, expect, test } from "bun:test";
import { dirname, join } from "node:path/posix";
import { Glob } from "bun";
import { readSource } from "./support/source.ts";
import { words } from "./support/words.ts";
import manifest from "../package.json" with { type: "json" };

const ROOT = new URL("..", import.meta.url).pathname;

interface SourceFile {
  readonly path: string;
  readonly source: string;
}

/**
 * The folders from the bottom up. A file imports, types too, only from its own folder and from those before it: whoever reads
 * one has to know nothing that comes later.
 */
const ORDER = words(`
  core config observability crypto runtime api receipts ui db outbound http audit pauses credentials hosts
  rules grants approvals mail delivery accounts channels events actions bulk oidc oauth services
  pages/frame pages/docs pages/settings pages/rules pages/entry pages/decisions pages/action pages/actions pages client
  demo mcp admin app app.ts cli main.ts
`);
/** What opens a database, whichever it is. Everybody else knows the interfaces in `core`. */
const OPENS_DATABASES = /^src\/(admin|app)\//;
/** They run on plain Node, beside a service that may be elsewhere. Nothing of `api.ts` runs: it has types only. */
const ON_PLAIN_NODE = /^(src\/client\/(?!api\.ts)|mcp\/bridge\/)/;
const KNOWN_ON_PLAIN_NODE = /^(src\/client\/|mcp\/bridge\/|src\/core\/(tls|json)\.ts$)/;

/** Each library has one place, so that it can be replaced there. */
const LIBRARIES: Readonly<Record<string, RegExp>> = {
  typebox: /^(src|mcp)\//,
  elysia: /^src\/(http|app)\//,
  "hono/": /^src\/(pages|mail|ui)\//,
  marked: /^src\/pages\/docs\//,
  minisearch: /^src\/pages\/docs\//,
  "highlight.js": /^src\/pages\/docs\//,
  "htmx.org": /^src\/ui\//,
  idiomorph: /^src\/ui\//,
  "drizzle-orm": /^db\//,
  "@libsql/client": /^db\//,
  "pg/": /^db\/postgres\//,
  "mailgun.js": /^src\/mail\//,
  "oidc-provider": /^src\/oauth\//,
  "openid-client": /^src\/oidc\//,
  "@modelcontextprotocol/server": /^mcp\//,
  croner: /^src\/runtime\//,
  "@marcbachmann/cel-js": /^src\/rules\/expression\.ts$/,
  re2js: /^src\/rules\/expression\.ts$/,
  ky: /^src\/client\//,
  commander: /^src\/cli\//,
  "@bomb.sh/tab": /^src\/cli\//,
  "prom-client": /^src\/observability\//,
  standardwebhooks: /^src\/client\/verify\.ts$/,
  "ipaddr.js": /^src\/core\//,
  "node:crypto": /^src\/(crypto|core)\//,
};

/** Time and chance come in as arguments (`Clock`, `Ids`), so that tests can move them. */
const TIMELESS =
  /^src\/(core\/(?!clock\.ts|ids\.ts)|(actions|approvals|accounts|audit|delivery|events|hosts|pauses|receipts|api|bulk)\/)/;
const TIME_AND_CHANCE =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bset(Timeout|Interval)\(|\bMath\.random\b|\bcrypto\.|\bperformance\b/g;
/**
 * Who reads an action behind what is shown of it: risks and sizes come from real values, edits and digests are of what is
 * stored, and a person may ask to see secrets.
 */
const BEHIND_MASKS =
  /^src\/(receipts\/|approvals\/facts\.ts$|actions\/edited-copy\.ts$|pages\/(action\/(action|resend)|decisions\/inbox)-routes\.ts$)/;
const ENTRIES = new Set([
  "src/main.ts",
  "src/cli/main.ts",
  "src/cli/binary-main.ts",
  "src/cli/node-main.ts",
  "mcp/bridge/main.ts",
]);
const UNSAFE = /\bas\s+unknown\b|(?<=[:<|&,(]\s*|\bas\s+)\bany\b(?!\s*[:(])/g;

const IMPORT = /^\s*(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;

/** The path of each file, or the name of each library, that a file imports. */
function importsOf({ path, source }: SourceFile): readonly string[] {
  return [...readSource(source).text.matchAll(IMPORT)].map(([, from, bare, dynamic]) => {
    const target = from ?? bare ?? dynamic ?? "";
    return target.startsWith(".") ? join(dirname(path), target) : target;
  });
}

/** What is wrong with a file, a line each. */
function problemsOf(file: SourceFile): readonly string[] {
  const { path, source } = file;
  const { code } = readSource(source);
  const imports = importsOf(file).flatMap((target) => {
    const problem = importProblem(path, target);
    return problem === null ? [] : [`${path} imports ${target}: ${problem}`];
  });
  return [
    ...imports,
    ...(ENTRIES.has(path) ? [] : at(file, code, /\b(process|Bun|import\.meta)\.env\b/g, "only entry points read it")),
    ...(TIMELESS.test(path) ? at(file, code, TIME_AND_CHANCE, "time and chance are arguments") : []),
    // On a file a second transaction would stop the event loop until the first ends; a server has a stream for each.
    ...(path.startsWith("db/") && path !== "db/libsql/remote.ts"
      ? at(file, code, /\btransaction\(/g, "no interactive transaction")
      : []),
    ...(BEHIND_MASKS.test(path)
      ? []
      : at(file, code, /\b(maskAction|markMasked|seeWhole|storedOf)\(/g, "`see` decides")),
    ...(path.endsWith(".tsx") ? at(file, code, /[{,]\s*(type\s+)?Action\s*[,}]/g, "only a SeenAction is shown") : []),
    ...unguardedUpdates(file),
    ...unexplained(file, code),
    // Bun takes the kind of JSX from the folder that a process starts in, unless the file says it.
    ...(path.endsWith(".tsx") && !source.startsWith("/** @jsxImportSource hono/jsx */\n")
      ? [`${path}: begins with @jsxImportSource`]
      : []),
  ];
}

function importProblem(path: string, target: string): string | null {
  const library = Object.keys(LIBRARIES).find((name) => `${target}/`.startsWith(name));
  if (library !== undefined) return LIBRARIES[library]?.test(path) === true ? null : "this library has another place";
  // Texts know no code: the stylesheet of all pages is made of those that stand beside them.
  if (/\.(md|sql)$/.test(target)) return null;
  if (!/^(src|mcp|db)\//.test(target)) {
    return /^(bun$|bun:|node:|package\.json$|docs\/|README\.md$)/.test(target) ? null : "a library without a place";
  }
  const [own, other] = [ORDER.indexOf(folderOf(path)), ORDER.indexOf(folderOf(target))];
  if (own < 0 || other < 0) return "a folder without a place in the order";
  if (other > own) return "its folder comes later in the order";
  if (target.startsWith("db/") && !path.startsWith("db/") && !OPENS_DATABASES.test(path)) {
    return "everybody else knows the interfaces in core";
  }
  if (ON_PLAIN_NODE.test(path) && !KNOWN_ON_PLAIN_NODE.test(target)) return "it runs on plain Node";
  return null;
}

/** The files that know each other, a line for each such group. */
function cyclesIn(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const reached = new Map(
    [...imports.keys()].map((path) => {
      const found = new Set<string>();
      for (const open = [path]; open.length > 0;) {
        for (const next of imports.get(open.pop() ?? "") ?? []) {
          if (!imports.has(next) || found.has(next)) continue;
          found.add(next);
          open.push(next);
        }
      }
      return [path, found] as const;
    }),
  );
  const groups = [...reached].flatMap(([path, found]) =>
    found.has(path)
      ? [
          [...found]
            .filter((other) => reached.get(other)?.has(path) === true)
            .toSorted()
            .join(" "),
        ]
      : [],
  );
  return [...new Set(groups)];
}

/** `actions` of `src/actions/service.ts`, `pages/docs` of `src/pages/docs/site.tsx`, `db` of `db/sql/list.ts`, `app.ts` of `src/app.ts`. */
function folderOf(path: string): string {
  const [top = "", inSrc = "", inPages = "", file] = path.split("/");
  if (top !== "src") return top;
  return inSrc === "pages" && file !== undefined ? `pages/${inPages}` : inSrc;
}

/** An update of actions names what it expects (revision, status or lease), or a change that lost would still be written. */
function unguardedUpdates({ path, source }: SourceFile): readonly string[] {
  if (!path.startsWith("db/")) return [];
  const { text } = readSource(source);
  return [...text.matchAll(/\bupdate\s+actions\b[^;`]*|\bupdate\(\s*actions\s*\)[^;]*/gi)]
    .filter(([statement]) => !/where[\s\S]*\b(revision|status|lease)/i.test(statement))
    .map(({ index }) => `${path}:${lineAt(text, index)}: an update of actions without a guard`);
}

/** `any` and `as unknown` need a comment that begins "Safe:" on the line, or on one of the three above it. */
function unexplained({ path, source }: SourceFile, code: string): readonly string[] {
  const lines = source.split("\n");
  return [...code.matchAll(UNSAFE)]
    .map(({ index }) => lineAt(code, index))
    .filter((line) => !lines.slice(Math.max(0, line - 4), line).some((text) => /[/*]\s*Safe:/.test(text)))
    .map((line) => `${path}:${line}: needs a comment "Safe:" that says why it holds`);
}

function at({ path }: SourceFile, code: string, pattern: RegExp, what: string): readonly string[] {
  return [...code.matchAll(pattern)].map(({ index }) => `${path}:${lineAt(code, index)}: ${what}`);
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

async function read(pattern: string): Promise<readonly SourceFile[]> {
  const paths = [...new Glob(pattern).scanSync(ROOT)].toSorted();
  return Promise.all(paths.map(async (path) => ({ path, source: await Bun.file(ROOT + path).text() })));
}

test("every file holds the rules of the code", async () => {
  const files = await read("{src,mcp,db}/**/*.{ts,tsx}");
  expect(files.length).toBeGreaterThan(100);
  expect(files.flatMap(problemsOf)).toEqual([]);
});

test("no file knows itself through others, by types neither: one can be read without those that use it", async () => {
  const files = await read("{src,mcp,db}/**/*.{ts,tsx}");
  expect(cyclesIn(new Map(files.map((file) => [file.path, importsOf(file)])))).toEqual([]);
});

test("the product depends on these libraries and no others: tests and benches have theirs", () => {
  const libraries = Object.keys(LIBRARIES).filter((name) => !name.startsWith("node:"));
  const names = libraries.map((name) => name.replace(/\/$/, ""));
  expect(Object.keys(manifest.dependencies).toSorted()).toEqual(names.toSorted());
});

/** A constant or a name of two words or more, as a comment quotes one. */
const QUOTED_NAME = /`([a-z]\w*[A-Z]\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+)`/g;

test("a comment names only what exists", async () => {
  const all = await Promise.all([read("{src,mcp,db}/**/*.{ts,tsx}"), read("{test,bench,scripts}/**/*.{ts,tsx}")]);
  const [files] = all;
  const readings = all.flat().map(({ source }) => readSource(source).text);
  const known = new Set(readings.flatMap((text) => text.match(/[A-Za-z_]\w+/g) ?? []));
  const unknown = files.flatMap(({ path, source }) => {
    const { text } = readSource(source);
    return [...source.matchAll(QUOTED_NAME)]
      .filter(({ index, 1: name = "" }) => text[index] !== "`" && !known.has(name))
      .map(({ 1: name = "" }) => `${path}: ${name}`);
  });
  expect(unknown).toEqual([]);
});

/** A path or the name of a file, in backticks. */
const QUOTED_FILE = /`((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:tsx?|md|css))`/g;

test("src/README.md names only files and names that exist", async () => {
  const text = await Bun.file(join(ROOT, "src/README.md")).text();
  const paths = (await Array.fromAsync(new Glob("{src,mcp,db,test,docs,scripts}/**/*").scan(ROOT))).map(
    (path) => `/${path}`,
  );
  const files = [...text.matchAll(QUOTED_FILE)].map(([, name = ""]) => name);
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((name) => !paths.some((path) => path.endsWith(`/${name}`)))).toEqual([]);
  const sources = await read("{src,mcp,db,test,scripts}/**/*.{ts,tsx}");
  const known = new Set(sources.flatMap(({ source }) => source.match(/[A-Za-z_]\w+/g) ?? []));
  const names = [...text.matchAll(QUOTED_NAME)].map(([, name = ""]) => name);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test("no test leaves the others out", async () => {
  const files = await read("test/**/*.{ts,tsx}");
  expect(files.length).toBeGreaterThan(100);
  const lonely = files.filter(({ source }) => /\.only\(/.test(readSource(source).code));
  expect(lonely.map(({ path }) => path)).toEqual([]);
});

test("files that know each other are found", () => {
  const imports = { "src/a.ts": ["src/b.ts"], "src/b.ts": ["src/c.ts"], "src/c.ts": ["src/b.ts", "typebox"] };
  expect(cyclesIn(new Map(Object.entries(imports)))).toEqual(["src/b.ts src/c.ts"]);
});

describe("a file breaks the rules", () => {
  test.each([
    ["a folder that knows a later one", "src/core/status.ts", 'import { x } from "../actions/service.ts";'],
    ["a folder that knows the types of a later one", "src/http/a.ts", 'import type { B } from "../pages/routes.ts";'],
    ["a folder of pages that knows a later one", "src/pages/frame/a.ts", 'import { b } from "../entry/join.tsx";'],
    ["a folder of pages that knows the pages", "src/pages/action/a.ts", 'import { b } from "../routes.ts";'],
    ["a folder that nobody placed", "src/other/a.ts", 'import { x } from "../core/action.ts";'],
    ["a module that knows an implementation", "src/actions/a.ts", 'import type { A } from "../../db/libsql/find.ts";'],
    ["a client that knows the server", "src/client/a.ts", 'import { a } from "../http/server.ts";'],
    ["a client that knows types of the server", "src/client/a.ts", 'import type { A } from "../api/errors.ts";'],
    ["a module that knows the composition root", "src/http/a.ts", 'import { b } from "../app.ts";'],
    ["a library in two places", "src/actions/a.ts", 'import { Elysia } from "elysia";'],
    ["a library that nobody chose", "src/http/a.ts", 'import pad from "left-pad";'],
    ["the environment", "src/app.ts", 'const port = process.env["PORT"];'],
    ["the wall clock", "src/delivery/a.ts", "const now = Date.now();"],
    ["a timer", "src/actions/a.ts", "setTimeout(go, 5);"],
    ["random", "src/accounts/a.ts", "const x = `${crypto.randomUUID()}`;"],
    ["any", "src/http/a.ts", "const x = y as any;"],
    ["a double cast", "src/http/a.ts", "const x = y as unknown as Z;"],
    ["an interactive transaction", "db/a.ts", "await client.transaction(async () => {});"],
    ["an update without a guard", "db/a.ts", "const Q = `update actions set status = 'x' where id = ?`;"],
    ["an action that nobody masks", "mcp/a.ts", "const text = actionJson(seeWhole(action), options);"],
    [
      "a page of stored actions",
      "src/pages/a.tsx",
      '/** @jsxImportSource hono/jsx */\nimport { type Action, isTerminal } from "../core/action.ts";',
    ],
    ["JSX of another kind", "src/pages/a.tsx", "export const a = <p>b</p>;"],
  ])("by %s", (_what, path, source) => {
    expect(problemsOf({ path, source })).toHaveLength(1);
  });

  test("but not by what it explains, by types, or by words in comments and texts", () => {
    const sound = [
      ["src/http/a.ts", "// Safe: checked above.\nconst x = y as unknown as Z;"],
      ["src/actions/a.ts", 'const text = "process.env any"; // Date.now, setTimeout('],
      ["db/a.ts", "const Q = `update actions set a = 1 where id = ? and revision = ?`;"],
    ] as const;
    for (const [path, source] of sound) expect(problemsOf({ path, source })).toEqual([]);
  });
});
