import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../../src/cli/io.ts";
import { runCommandLine } from "../../src/cli/program.ts";
import { addServerCommands } from "../../src/cli/server-commands.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { OWNER_KEY, type Service } from "../support/service.ts";
import { until } from "../support/until.ts";

/** What a command has said, and how it ended. */
export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface OutgateOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | ReadableStream<Uint8Array>;
  /**
   * As on a terminal: both outputs come together. `real`: in a process under a terminal of its own, by `script` of
   * util-linux.
   */
  readonly terminal?: boolean | "real";
  /** Where it runs. */
  readonly folder?: string;
  /** What runs it, in a process of its own. */
  readonly program?: readonly string[];
}

/** Nobody is logged in there. */
const XDG_CONFIG_HOME = join(tmpdir(), "outgate-none");

/** Starts `outgate` as a person does, with nothing of this machine's settings. */
export function start(
  args: readonly string[],
  {
    env = {},
    input = "",
    terminal = false,
    folder = tmpdir(),
    program = [process.execPath, COMMAND_LINE],
  }: OutgateOptions = {},
) {
  const { PATH, HOME } = process.env;
  const command = [...program, ...args];
  const quoted = command.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(" ");
  return Bun.spawn(terminal !== false ? ["script", "-qec", quoted, "/dev/null"] : command, {
    cwd: folder,
    env: { PATH, HOME, XDG_CONFIG_HOME, TERM: "xterm", COLUMNS: "200", ...env },
    stdin: typeof input === "string" ? new Blob([input]) : input,
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Resolves when `outgate watch` of an action listens: first it opens its stream, then it looks at the action. */
export async function isWatched(service: Service, id: string): Promise<void> {
  await until(() => service.log().some((line) => line["route"] === "/v1/actions/{id}" && line["action_id"] === id));
}

/**
 * Runs `outgate` to its end: in this process, as its entry does, since most of what a process of its own takes is to start.
 * With `program` or a real terminal it is one of its own.
 */
export async function outgate(args: readonly string[], options: OutgateOptions = {}): Promise<Said> {
  const { env = {}, input = "", terminal = false, program } = options;
  if (program !== undefined || terminal === "real") return outgateAlone(args, options);
  const said = { out: "", err: "" };
  const tell = (stream: "out" | "err") => (text: string) => void (said[terminal ? "out" : stream] += text);
  const io: Io = {
    env: { XDG_CONFIG_HOME, TERM: "xterm", ...env },
    out: tell("out"),
    err: tell("err"),
    isTty: terminal,
    canAnswer: terminal,
    input: typeof input === "string" ? new Blob([input]).stream() : input,
    openBrowser: () => Promise.resolve(false),
  };
  const code = await runCommandLine(args, io, addServerCommands);
  return { code, ...said };
}

/** Runs it against a service, with the key of its owner. */
export const outgateAt =
  (url: string) =>
  (args: readonly string[], { env, ...options }: OutgateOptions = {}): Promise<Said> =>
    outgate(args, { ...options, env: { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, ...env } });

/** The same in a process of its own. */
export async function outgateAlone(args: readonly string[], options: OutgateOptions = {}): Promise<Said> {
  const { out, ...said } = await saidBy(start(args, options));
  return { ...said, out: out.replaceAll("\r\n", "\n") };
}

/** What a program says until it ends. */
export async function saidBy(program: Spawned): Promise<Said> {
  const [out, err] = await Promise.all([new Response(program.stdout).text(), new Response(program.stderr).text()]);
  return { code: await program.exited, out, err };
}

interface Spawned {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly exited: Promise<number>;
}
