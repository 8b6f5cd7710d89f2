import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { KEYS } from "../http/stub-server.ts";

/** A client as people have them: of revision 2026-07-28, of 2025 by the same library, and the library of 2025. */
export const CLIENTS = ["modern", "legacy", "first"] as const;

export type ClientKind = (typeof CLIENTS)[number];

/** One of each revision, for what is the service's alone: `legacy` speaks as `first` does. */
export const REVISIONS = ["modern", "first"] as const;

/** What a person answers to a question. */
export type Answer = (message: string) => object | Promise<object>;

export interface ConnectOptions {
  readonly key?: string;
  /** Null: the client doesn't declare elicitation. */
  readonly answer?: Answer | null;
}

/** The members of results that tests look at. */
export interface Result {
  readonly isError?: boolean;
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly resource?: { readonly uri: string; readonly text: string };
  }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  readonly onprogress?: (progress: {
    progress: number;
    total?: number | undefined;
    message?: string | undefined;
  }) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds after which the client gives the call up. */
  readonly timeout?: number;
}

/** A program that speaks on its standard streams. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export type Connected = Awaited<ReturnType<typeof connect>>;

/** Connects a client of a kind to an address or a program; whatever its library, it is used in the same way here. */
export async function connect(kind: ClientKind, place: string | Launch, how: ConnectOptions = {}) {
  const { key = KEYS.agent, answer = null } = how;
  const questions: string[] = [];
  const ask = async (params: { message: string }) => {
    questions.push(params.message);
    return (await answer?.(params.message)) ?? { action: "cancel" };
  };
  const made: Made = { place, key, ask, capabilities: answer === null ? {} : { elicitation: {} } };
  const client = kind === "first" ? await first(made) : await second(kind, made);
  return {
    client,
    questions,
    /** Throws what is no result of a tool. */
    async call(name: string, args: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Result> {
      return (await client.callTool({ name, arguments: args }, options)) as Result;
    },
    async [Symbol.asyncDispose]() {
      await client.close();
    },
  };
}

interface Made {
  readonly place: string | Launch;
  readonly key: string;
  readonly capabilities: object;
  readonly ask: (params: { message: string }) => Promise<object>;
}

const withKey = (key: string) => ({ requestInit: { headers: { Authorization: `Bearer ${key}` } } });

const launched = ({ args, env, ...rest }: Launch) => ({
  ...rest,
  args: [...args],
  env: { ...env },
  stderr: "ignore" as const,
});

async function second(kind: ClientKind, { place, key, capabilities, ask }: Made) {
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities, versionNegotiation: { mode: kind === "modern" ? "auto" : "legacy" } },
  );
  if ("elicitation" in capabilities) {
    client.setRequestHandler("elicitation/create", async ({ params }) => (await ask(params)) as { action: "accept" });
  }
  if (typeof place === "string") await client.connect(new StreamableHTTPClientTransport(new URL(place), withKey(key)));
  else await client.connect(new StdioClientTransport(launched(place)));
  return adapted(client, (params, how) => client.callTool(params, how));
}

async function first({ place, key, capabilities, ask }: Made) {
  const client = new FirstClient({ name: "test", version: "1" }, { capabilities });
  if ("elicitation" in capabilities) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => (await ask(params)) as { action: "accept" });
  }
  if (typeof place === "string") await client.connect(new FirstTransport(new URL(place), withKey(key)));
  else await client.connect(new FirstStdioTransport(launched(place)));
  return adapted(client, (params, how) => client.callTool(params, undefined, how));
}

interface CallParams {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

function adapted(client: Client | FirstClient, callTool: (params: CallParams, how: CallOptions) => Promise<unknown>) {
  return {
    callTool,
    listTools: () => client.listTools(),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    readResource: (params: { uri: string }) => client.readResource(params),
    listPrompts: () => client.listPrompts(),
    getPrompt: (params: { name: string; arguments?: Record<string, string> }) => client.getPrompt(params),
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  };
}

/** The action in a result. */
export function actionIn(
  result: Result,
): Readonly<Record<string, unknown>> & { readonly id: string; readonly status: string } {
  if (result.structuredContent === undefined) throw new Error(`No action: ${JSON.stringify(result)}`);
  return result.structuredContent as { id: string; status: string };
}

/** The error in a result. */
export function errorIn(result: Result): {
  readonly code: string;
  readonly message: string;
  readonly next_step: string;
  readonly details?: readonly { readonly field: string; readonly message: string }[];
} {
  if (result.isError !== true) throw new Error(`No error: ${JSON.stringify(result)}`);
  return JSON.parse(result.content[0]?.text ?? "").error;
}

/** The code of the protocol that a call was refused with; null when it was not. */
export function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => (error as { code: unknown }).code,
  );
}
