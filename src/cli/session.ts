import { createClient } from "../client/client.ts";
import { type Io, readValue, UsageError } from "./io.ts";
import { createPaint, type Paint, visible } from "../observability/terminal.ts";
import { exactJson, jsonText, parseInOrder } from "./exact-json.ts";
import { explain } from "./failures.ts";
import { type Cell, type Column, renderTable } from "./table.ts";
import { apiKeyIn, apiKeyFromEnv } from "../client/api-key-file.ts";
import { readLogin } from "./login-file.ts";
import { PORT_MAX } from "../core/limits.ts";

/** A command's connection to a running service, and its output. */
export type Session = ReturnType<typeof openSession>;

export interface SessionOptions {
  readonly api_key_file?: string;
  readonly json?: boolean;
}

const URL_DEFAULT = "http://127.0.0.1:3000";

/** The address in `OUTGATE_URL`, or of a service with these settings on this machine. Throws if it is invalid. */
export function readUrl({ env }: Io): string {
  const port = ownPort(env);
  return parseUrl(env["OUTGATE_URL"] || (port === null ? URL_DEFAULT : `http://127.0.0.1:${port}`), "OUTGATE_URL");
}

/** The port in `PORT`; null if unset or 0, which means any free port. */
export function ownPort(env: Io["env"]): number | null {
  const port = /^\d{1,5}$/.test(env["PORT"] ?? "") ? Number(env["PORT"]) : 0;
  return port >= 1 && port <= PORT_MAX ? port : null;
}

/** Parses a service's address, without a trailing slash. Throws a sentence that begins with `what` if it is invalid. */
export function parseUrl(text: string, what: string): string {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  const isAddress = url !== null && url.username === "" && url.search === "" && url.hash === "";
  // Refuses the addresses of API and MCP, which other clients take, because we add the paths.
  if (!isAddress || /\/(?:v1|mcp)\/*$/.test(url.pathname)) {
    const form = "with http:// or https://, and without /v1 or /mcp";
    throw new Error(`${what} must be the address of Outgate, ${form}, such as ${URL_DEFAULT}.`);
  }
  return url.href.replace(/(?<!\/)\/+$/, "");
}

type KeySource = "option" | "environment" | "login";

/** The service that a command talks to, and its key. */
export interface ServiceAccess {
  readonly url: string;
  readonly key: string | null;
  readonly source: KeySource;
}

/** The key of option or environment for `OUTGATE_URL`, or else the login, whose key is sent only to its own address. */
export async function readCredentials(apiKeyFile: string | undefined, io: Io): Promise<ServiceAccess> {
  const key = await readApiKey(apiKeyFile, io);
  const source = apiKeyFile === undefined ? "environment" : "option";
  if (key !== null) return { url: readUrl(io), key, source };
  const login = await readLogin(io.env);
  if (login === null) return { url: readUrl(io), key, source };
  const { env } = io;
  if ((env["OUTGATE_URL"] ?? "") !== "" && readUrl(io) !== login.url) {
    throw new UsageError(
      `OUTGATE_URL is ${readUrl(io)}, and the login is for ${login.url}. Run \`outgate login ${readUrl(io)}\`, or unset OUTGATE_URL.`,
    );
  }
  return { ...login, source: "login" };
}

export function openSession(io: Io, { url, key: apiKey, source: keySource }: ServiceAccess, asksForJson = false) {
  const paint = createPaint(io);
  /** Whether to print results as JSON: with `--json`, or if no terminal reads them. */
  const isJson = asksForJson || !io.isTty;
  /** Prints JSON, indented on a terminal. */
  const json = (value: unknown) => io.out(jsonText(value, io.isTty));
  /** Prints JSON on one line, for programs that read line by line. */
  const line = (value: unknown) => io.out(jsonText(value, false));
  /** Prints lines for people. */
  const say = (text: string) => io.out(text.endsWith("\n") ? text : `${text}\n`);
  /** Prints a text or `empty` for people, the API's JSON with `--json`, or a line of JSON for each row to other programs. */
  const printRows = <Row>(page: Page<Row>, empty: string, formatText: (rows: readonly Row[]) => string) => {
    const cursor = page.next_cursor ?? null;
    const more = cursor === null ? "" : `There are more: add --cursor ${cursor} to the command.`;
    if (asksForJson) json(page);
    else if (isJson) {
      for (const row of page.data) line(row);
      if (cursor !== null) io.err(`${more}\n`);
    } else if (page.data.length === 0) say(empty);
    else {
      say(formatText(page.data));
      if (cursor !== null) say(paint(more, "grey"));
    }
  };
  return {
    client: createClient({ url, apiKey, parse: parseInOrder, stringify: exactJson }),
    url,
    keySource,
    io,
    paint,
    asksForJson,
    isJson,
    json,
    line,
    say,
    /** Prints a result as JSON, or as text for people. */
    print: <Value>(value: Value, formatText: (value: Value) => string) =>
      isJson ? json(value) : say(formatText(value)),
    /** Prints a list as a table. */
    printList: <Row>(page: Page<Row>, empty: string, columns: readonly ListColumn<Row>[]) =>
      printRows(page, empty, (rows) => listTable({ paint, io }, rows, columns)),
    /** Prints a short list, a line for each row. */
    printLines: <Row>(page: Page<Row>, empty: string, formatLine: (row: Row) => string) =>
      printRows(page, empty, (rows) => rows.map(formatLine).join("\n")),
    /** Prints a secret that is shown only once, alone, so that scripts can read it from a pipe. The note is for people. */
    once: (created: object, secret: string, note: string) => {
      if (asksForJson) json(created);
      else say(secret);
      if (!asksForJson || io.isTty) io.err(`${note}\n`);
    },
    /** Waits for a call without a result, then reports on standard error. */
    done: async (call: Promise<unknown>, text: string) => {
      await call;
      io.err(`${visible(text)}\n`);
    },
  };
}

/**
 * Runs `work` with a session and explains the service's errors. Returns the exit code unless it is 0. `fieldName` says what a
 * person typed for a field.
 */
export async function withSession(
  io: Io,
  { api_key_file: keyFile, json }: SessionOptions,
  work: (session: Session) => Promise<number | void>,
  fieldName: (field: string) => string,
): Promise<number | void> {
  const credentials = await readCredentials(keyFile, io);
  if (credentials.key === null) throw new UsageError(NO_KEY);
  const session = openSession(io, credentials, json);
  try {
    return await work(session);
  } catch (error) {
    const { message, code } = explain(error, session.url, fieldName);
    io.err(`${message}\n`);
    return code;
  }
}

const NO_KEY =
  "There is no API key. Run `outgate login`, or set OUTGATE_API_KEY, or OUTGATE_API_KEY_FILE to a file that holds one. The first start of Outgate prints one.";

/** A column of a list: its heading, its cell of a row, and how it gives way on narrow terminals. */
export type ListColumn<Row> = readonly [
  heading: string,
  cellOf: (row: Row, now: Date) => Cell,
  fit?: Omit<Column, "heading">,
];

/** A page of a list, or all of a short one. */
export interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor?: string | null;
}

export function listTable<Row>(
  { paint, io }: { readonly paint: Paint; readonly io: Pick<Io, "columns"> },
  rows: readonly Row[],
  columns: readonly ListColumn<Row>[],
  now = new Date(),
): string {
  const headings = columns.map(([heading, , fit]) => ({ heading, ...fit }));
  const cells = rows.map((row) => columns.map(([, cellOf]) => cellOf(row, now)));
  return renderTable(headings, cells, paint, io.columns);
}

/**
 * Reads the API key from the file of `--api-key-file`, or else from the environment; null without one. There is no option for
 * the key itself, because other users can read command lines. Throws if the file can't be read or contains no key.
 */
export async function readApiKey(file: string | undefined, io: Io): Promise<string | null> {
  if (file === undefined) return apiKeyFromEnv(io.env);
  if (file === "") throw new UsageError("--api-key-file takes a file, or - for standard input.");
  const text = await readValue(file === "-" ? "-" : `@${file}`, io);
  return apiKeyIn(text, file === "-" ? "Standard input" : `The file ${file}`);
}
