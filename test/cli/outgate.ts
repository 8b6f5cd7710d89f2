import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Service } from "../support/service.ts";
import { until } from "../support/until.ts";

export const MAIN = join(import.meta.dir, "../../src/cli/main.ts");

/** What a command has said, and how it ended. */
export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface OutgateOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | ReadableStream<Uint8Array>;
  /** Runs it under a terminal of its own, by `script` of util-linux: both outputs come together. */
  readonly terminal?: boolean;
  /** What runs it; Bun, from source, unless it is said. */
  readonly program?: readonly string[];
}

/** Starts `outgate` as a person does, with nothing of this machine's settings. */
export function start(
  args: readonly string[],
  { env = {}, input = "", terminal = false, program = [process.execPath, MAIN] }: OutgateOptions = {},
) {
  const { PATH, HOME } = process.env;
  const command = [...program, ...args];
  const quoted = command.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(" ");
  return Bun.spawn(terminal ? ["script", "-qec", quoted, "/dev/null"] : command, {
    cwd: tmpdir(),
    // Nobody is logged in there.
    env: { PATH, HOME, XDG_CONFIG_HOME: join(tmpdir(), "outgate-none"), TERM: "xterm", COLUMNS: "200", ...env },
    stdin: typeof input === "string" ? new Blob([input]) : input,
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Resolves when `outgate watch` of an action listens: first it opens its stream, then it looks at the action. */
export async function isWatched(service: Service, id: string): Promise<void> {
  await until(() => service.log().some((line) => line["route"] === "/v1/actions/{id}" && line["action_id"] === id));
}

/** Runs `outgate` to its end. */
export async function outgate(args: readonly string[], options: OutgateOptions = {}): Promise<Said> {
  const process = start(args, options);
  const [out, err] = await Promise.all([new Response(process.stdout).text(), new Response(process.stderr).text()]);
  return { code: await process.exited, out: out.replaceAll("\r\n", "\n"), err };
}
