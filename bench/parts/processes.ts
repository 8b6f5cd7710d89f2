import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";

/** A program that prints its port on its first line and then serves. */
export interface Served extends AsyncDisposable {
  readonly port: number;
  /** A second port on that line: https. */
  readonly securePort?: number;
  readonly process: Subprocess;
}

export const API_KEY = "og_bench_key_of_the_first_account";

/** Starts a part of the bench and waits for its port. */
export function serve(script: string, env: Readonly<Record<string, string>> = {}): Promise<Served> {
  return serveCommand(["bun", join(import.meta.dir, script)], env);
}

/** Starts a program that prints its port, and waits for it. */
export async function serveCommand(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "1024", ...env },
    stdout: "pipe",
    stderr: "inherit",
  });
  const [port = 0, securePort] = (await firstLine(child.stdout)).split(" ").map(Number);
  if (!Number.isInteger(port) || port === 0) throw new Error(`${command.join(" ")} printed no port.`);
  const https = securePort === undefined ? {} : { securePort };
  return { port, ...https, process: child, [Symbol.asyncDispose]: () => end(child, "SIGKILL") };
}

export interface OutgateOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly folder?: string;
  readonly port: number;
  /** A command that runs the service, such as strace. */
  readonly wrapper?: readonly string[];
  /** Another checkout, to be compared with this one. */
  readonly checkout?: string;
}

/** Starts the real service, from source, on a folder of its own, and waits until it is ready. */
export async function outgate(options: OutgateOptions): Promise<Served & { readonly folder: string }> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "outgate-bench-"));
  const root = options.checkout ?? join(import.meta.dir, "../..");
  const child = Bun.spawn([...(options.wrapper ?? []), "bun", join(root, "src/main.ts")], {
    cwd: folder,
    env: {
      ...process.env,
      BUN_CONFIG_MAX_HTTP_REQUESTS: "1024",
      PORT: String(options.port),
      DATABASE_URL: `file:${folder}/outgate.db`,
      BOOTSTRAP_API_KEY: API_KEY,
      RATE_LIMIT_PER_SECOND: "0",
      LOG_LEVEL: "info",
      ...options.env,
    },
    stdout: Bun.file(join(folder, "outgate.log")),
    stderr: "inherit",
  });
  await ready(options.port, child);
  return {
    port: options.port,
    process: child,
    folder,
    [Symbol.asyncDispose]: async () => {
      // strace passes no signal on: its child is the service.
      if (options.wrapper !== undefined && options.wrapper.length > 0) endChildren(child.pid);
      else child.kill("SIGTERM");
      await child.exited;
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a port that is free now. */
export async function freePort(): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port ?? 0;
}

async function ready(port: number, child: Subprocess): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (child.exitCode !== null) throw new Error(`Outgate ended with ${child.exitCode} before it was ready.`);
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => null);
    if (answer?.status === 200) return;
    await Bun.sleep(25);
  }
  throw new Error("Outgate was not ready within 15 s.");
}

function endChildren(pid: number): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
  // An empty id would be that of our own group.
  for (const child of children.filter((id) => id !== "")) process.kill(Number(child), "SIGTERM");
}

async function end(child: Subprocess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  child.kill(signal);
  await child.exited;
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) break;
  }
  return text.split("\n")[0] ?? "";
}
