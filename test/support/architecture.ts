import { dirname, join } from "node:path/posix";
import { readSource } from "./source.ts";

/** A file of the product by its path in the repository. */
export interface SourceFile {
  readonly path: string;
  readonly source: string;
}

/** What was looked at, and every rule that it breaks. */
export interface Inspection {
  readonly files: number;
  readonly imports: number;
  readonly problems: readonly string[];
}

interface ReadFile extends SourceFile {
  readonly text: string;
  readonly code: string;
  readonly imports: readonly string[];
}

/** The house, storey by storey: what each room may import besides itself. The roof may import everything. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  "src/domain": ["src/domain/tls.ts"],
  // Words about TLS, for the service as for its clients on plain Node.
  "src/domain/tls.ts": [],
  "src/contract": ["src/domain"],
  "src/web": ["src/domain", "src/contract"],
  "src/ports": ["src/domain"],
  db: ["src/domain", "src/ports"],
  "src/outbound": ["src/domain", "src/domain/tls.ts", "src/ports"],
  "src/masking": ["src/domain", "src/contract"],
  "src/mail": ["src/domain", "src/contract", "src/ports", "src/web", "src/masking"],
  "src/secrets": ["src/domain", "src/ports"],
  "src/metrics": ["src/ports"],
  "src/version.ts": [],
  "src/clock.ts": ["src/domain", "src/ports"],
  "src/ids.ts": ["src/domain", "src/ports"],
  "src/log.ts": ["src/domain", "src/ports"],
  "src/actions": ["src/domain", "src/contract", "src/ports", "src/masking"],
  "src/accounts": ["src/domain", "src/contract", "src/ports"],
  "src/events": ["src/domain", "src/contract", "src/ports"],
  "src/dispatch": ["src/domain", "src/contract", "src/ports"],
  "src/http": [
    "src/actions",
    "src/accounts",
    "src/events",
    "src/web",
    "src/contract",
    "src/domain",
    "src/ports",
    "src/masking",
  ],
  mcp: ["src/actions", "src/accounts", "src/events", "src/contract", "src/domain", "src/ports", "src/masking"],
  // It runs on plain Node, beside a client, and knows nothing of the service but its address.
  "mcp/bridge": ["src/client", "src/domain/tls.ts"],
  "src/schedule": ["src/ports"],
  "src/client": ["src/contract", "src/domain/tls.ts"],
  "src/cli": ["src/contract", "src/client", "src/version.ts"],
};
/** What stands right under `src`, its settings, and whoever opens the whole house beside it: operators, by commands. */
const ROOF =
  /^src\/(?:[^/]+\.ts$|config\/|beside\/|cli\/(?:main|commands)\.ts$|cli\/commands\/(?:serve|mcp|new-owner-key|reset-password|welcome-link|rotate-secret-key|backup)\.ts$)/;

/** One library, one room. The names are imports, or globals and members of `Bun`. The roof has typebox, for its settings. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  typebox: ["src/contract", "roof"],
  hono: ["src/web"],
  "drizzle-orm": ["db"],
  "@libsql/client": ["db"],
  libsql: ["db"],
  "bun:sqlite": ["db"],
  "Bun.SQL": ["db"],
  "Bun.FetchSession": ["src/outbound"],
  "Bun.dns": ["src/outbound"],
  "mailgun.js": ["src/mail"],
  "node:crypto": ["src/secrets", "src/ids.ts"],
  "Bun.password": ["src/secrets"],
  elysia: ["src/http"],
  "@modelcontextprotocol/server": ["mcp"],
  croner: ["src/schedule"],
  ky: ["src/client"],
};

const ENTRIES = new Set(["src/main.ts", "src/cli/main.ts", "src/cli/node-main.ts", "mcp/bridge/main.ts"]);
/** Law, desk and engine: time and chance come in through ports. */
const TIMELESS = /^src\/(domain|actions|accounts|events|dispatch)\//;
const TIME_AND_CHANCE =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bset(Timeout|Interval)\b|\bMath\.random\b|\bcrypto\b|\bperformance\b/g;
/** `any` where a type stands; the word in the text of a page is nothing. */
const UNSAFE = /(?<=(?:[:<|&,=([]|\b(?:as|extends|is))\s*)\bany\b(?!\s*[:(])|\bas\s+unknown\b/g;

const IMPORT = /^\s*(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;
const FROM_BUN = /\bimport\s*\{([^}]*)\}\s*from\s*"bun"/g;

/** Holds the files of src, mcp and db against the rules of the house. Pure: the caller reads the disk. */
export function inspect(sources: readonly SourceFile[]): Inspection {
  const files = sources.filter(({ path }) => /\.tsx?$/.test(path)).map(readFile);
  const queries = sources.filter(({ path }) => path.startsWith("db/"));
  return {
    files: files.length,
    imports: files.reduce((sum, file) => sum + file.imports.length, 0),
    problems: [...files.flatMap(rulesOfOne), ...queries.flatMap(unguardedUpdates), ...cycles(files)],
  };
}

/** Tests that leave others out. Its own place, because it looks at test files only. */
export function lonelyTests({ path, source }: SourceFile): readonly string[] {
  return found(readSource(source).code, /\.only\(/g).map(
    (line) => `${path}:${line}: .only( leaves the other tests out`,
  );
}

function readFile(file: SourceFile): ReadFile {
  const { text, code } = readSource(file.source);
  const imports = [...text.matchAll(IMPORT)].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "");
  return { ...file, text, code, imports: [...imports, ...bunMembers(text, code)] };
}

/** `Bun.dns` and `import { dns } from "bun"` alike, of the members that have a room. */
function bunMembers(text: string, code: string): readonly string[] {
  const named = [...text.matchAll(FROM_BUN)].flatMap(([, list]) => (list ?? "").match(/\w+/g) ?? []);
  const dotted = [...code.matchAll(/\bBun\.(\w+)/g)].map(([, name]) => name ?? "");
  const members = new Set([...named, ...dotted].map((name) => `Bun.${name}`));
  return [...members].filter((name) => Object.hasOwn(LIBRARIES, name));
}

function rulesOfOne(file: ReadFile): readonly string[] {
  const { path, code, source } = file;
  const at = (pattern: RegExp, what: string) => found(code, pattern).map((line) => `${path}:${line}: ${what}`);
  return [
    ...(roomOf(path) === null ? [`${path}: stands in no room of the house`] : file.imports.flatMap(arrow(path))),
    ...(ENTRIES.has(path) ? [] : at(/\b(process|Bun|import\.meta)\.env\b/g, "only the entry points read env")),
    ...(TIMELESS.test(path) ? at(TIME_AND_CHANCE, "time and chance come in through ports") : []),
    ...(path.startsWith("db/") ? at(/\btransaction\(/g, "no interactive transaction") : []),
    // Bun knows of another JSX only what the folder says that a process starts in.
    ...(path.endsWith(".tsx") && !source.startsWith("/** @jsxImportSource hono/jsx */\n")
      ? [`${path}: begins with @jsxImportSource, or it is written in React's JSX elsewhere than here`]
      : []),
    ...unsafe(file),
  ];
}

/** `any`, `as unknown` and `@ts-` need a comment that begins "Safe:" on the line, or on one of the three above it. */
function unsafe({ path, code, source }: ReadFile): readonly string[] {
  const lines = source.split("\n");
  const isExplained = (line: number) =>
    lines.slice(Math.max(0, line - 4), line).some((text) => /[/*]\s*Safe:/.test(text));
  return [...found(code, UNSAFE), ...found(source, /@ts-\w/g)]
    .filter((line) => !isExplained(line))
    .map((line) => `${path}:${line}: needs a comment "Safe:" that says why it holds`);
}

/** The room of a file: the longest name of the table that its path begins with, or "roof". Null: it stands outside. */
function roomOf(path: string): string | null {
  const rooms = Object.keys(ROOMS).filter((room) => path === room || path.startsWith(`${room}/`));
  const room = rooms.toSorted((a, b) => b.length - a.length)[0] ?? null;
  return (room === null || room === "src/cli") && ROOF.test(path) ? "roof" : room;
}

function arrow(path: string): (target: string) => readonly string[] {
  const room = roomOf(path) ?? "";
  return (target) => {
    if (target.startsWith("."))
      return isRoomAllowed(room, resolve(path, target)) ? [] : [`${path} imports ${resolve(path, target)}`];
    const library = Object.keys(LIBRARIES).find((name) => target === name || target.startsWith(`${name}/`));
    if (library !== undefined) {
      const rooms = LIBRARIES[library] ?? [];
      return rooms.includes(room) ? [] : [`${path} imports ${target}, which lives only in ${rooms.join(" and ")}`];
    }
    return /^(bun$|bun:|node:)/.test(target) ? [] : [`${path} imports ${target}, a library without a room`];
  };
}

function isRoomAllowed(room: string, target: string): boolean {
  if (room === "roof") return true;
  const other = roomOf(target);
  if (other === null) return target === "package.json";
  return other === room || (ROOMS[room] ?? []).includes(other);
}

function resolve(path: string, target: string): string {
  return join(dirname(path), target);
}

/** An update of actions names what it expects (revision, status or lease), or a change that lost would still be written. */
function unguardedUpdates({ path, source }: SourceFile): readonly string[] {
  const text = path.endsWith(".sql") ? source : readSource(source).text;
  const updates = [...text.matchAll(/\bupdate\s+actions\b[^;`]*|\bupdate\(\s*actions\s*\)[^;]*/gi)];
  return updates
    .filter(([statement]) => !/where[\s\S]*\b(revision|status|lease)/i.test(statement))
    .map(
      ({ index }) =>
        `${path}:${lineAt(text, index)}: update of actions without a guard in its where (one literal holds both)`,
    );
}

function cycles(files: readonly ReadFile[]): readonly string[] {
  const graph = new Map(files.map((file) => [file.path, relatives(file)]));
  const done = new Set<string>();
  const problems: string[] = [];
  const context = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) problems.push(`cycle: ${[...trail.slice(trail.indexOf(path)), path].join(" -> ")}`);
    else if (!done.has(path)) {
      for (const next of graph.get(path) ?? []) context(next, [...trail, path]);
      done.add(path);
    }
  };
  for (const path of graph.keys()) context(path, []);
  return problems;
}

function relatives({ path, imports }: ReadFile): readonly string[] {
  return imports.filter((target) => target.startsWith(".")).map((target) => resolve(path, target));
}

function found(text: string, pattern: RegExp): readonly number[] {
  return [...text.matchAll(pattern)].map(({ index }) => lineAt(text, index));
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
