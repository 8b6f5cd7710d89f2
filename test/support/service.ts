import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SERVICE } from "./programs.ts";

export const OWNER_KEY = "og_owner_key_that_a_script_brings_along";

export interface ServiceOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A folder that outlives the process; else one of its own. */
  readonly folder?: string;
  /** A command that runs it: strace, a namespace, a small disk. */
  readonly wrapper?: readonly string[];
  /** The command that starts it; else `SERVICE`. */
  readonly program?: readonly string[];
}

export interface LogLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** The real program in a process of its own. */
export class Service implements AsyncDisposable {
  readonly folder: string;
  readonly #ownsFolder: boolean;
  readonly process;
  #output = "";
  readonly #reading: Promise<void>;
  readonly #arrivals = new Set<() => void>();
  #url: string | null = null;

  constructor({ env = {}, folder, wrapper = [], program = SERVICE }: ServiceOptions = {}) {
    this.folder = folder ?? newFolder();
    this.#ownsFolder = folder === undefined;
    // Nothing of this machine's settings; only what a shell has anyway.
    const { PATH, HOME } = process.env;
    this.process = Bun.spawn([...wrapper, ...program], {
      cwd: this.folder,
      env: { PATH, HOME, BUN_CONFIG_MAX_HTTP_REQUESTS: "1024", PORT: "0", BOOTSTRAP_API_KEY: OWNER_KEY, ...env },
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#reading = this.#read(this.process.stdout).catch(() => {});
  }

  /** Resolves with its address when it listens. Throws what it said when it ended instead. */
  async ready(): Promise<string> {
    if (this.#url !== null) return this.#url;
    const started = await this.logged("service.started");
    this.#url = String(started["url"]);
    return this.#url;
  }

  /** The first line of the log with this event, when it has come. */
  async logged(event: string): Promise<LogLine> {
    while (true) {
      const line = this.log().find((entry) => entry.event === event);
      if (line !== undefined) return line;
      const isOver = await Promise.race([
        new Promise<false>((resolve) => this.#arrivals.add(() => resolve(false))),
        // What it has written last may be read after its end.
        this.process.exited.then(() => this.#reading).then(() => true),
      ]);
      if (isOver && !this.#output.includes(`"${event}"`)) throw new Error(`It ended: ${await this.complaint()}`);
    }
  }

  /** Everything that was written to standard output so far. */
  get output(): string {
    return this.#output;
  }

  log(): readonly LogLine[] {
    // The last one may still be on its way.
    const whole = this.#output.slice(0, this.#output.lastIndexOf("\n") + 1);
    const lines = whole.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** Everything that was written to standard error, once it has ended. */
  async complaint(): Promise<string> {
    return new Response(this.process.stderr).text();
  }

  async request(path: string, { key = OWNER_KEY, ...init }: RequestInit & { key?: string } = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${key}`);
    if (init.body !== undefined) headers.set("Content-Type", "application/json");
    return fetch(`${await this.ready()}${path}`, { ...init, headers });
  }

  /** Creates an action and returns the answer's JSON; throws when it was not created or found. */
  async create(body: object, query = ""): Promise<Record<string, unknown>> {
    const answer = await this.request(`/v1/actions${query}`, { method: "POST", body: JSON.stringify(body) });
    const json = (await answer.json()) as Record<string, unknown>;
    if (!answer.ok) throw new Error(JSON.stringify(json));
    return json;
  }

  /** The action as it is when it is final, or after a minute. */
  async final(id: unknown): Promise<Record<string, unknown>> {
    return (await (await this.request(`/v1/actions/${String(id)}?wait=60`)).json()) as Record<string, unknown>;
  }

  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number> {
    this.process.kill(signal);
    return this.process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
    if (this.#ownsFolder) rmSync(this.folder, { recursive: true, force: true });
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#output += decoder.decode(chunk, { stream: true });
      for (const arrived of this.#arrivals) arrived();
      this.#arrivals.clear();
    }
  }
}

/** Asks a service as its owner, wherever it listens; null: there is no answer. */
export async function askAsOwner(url: string, { headers, ...init }: RequestInit = {}): Promise<Response | null> {
  const all = new Headers(headers);
  all.set("Authorization", `Bearer ${OWNER_KEY}`);
  if (init.body !== undefined) all.set("Content-Type", "application/json");
  return fetch(url, { ...init, headers: all }).catch(() => null);
}

export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "outgate-"));
}
