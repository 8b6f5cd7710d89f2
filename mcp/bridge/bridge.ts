import { errorLine } from "./refusal.ts";
import { linesOf, TOO_LONG } from "./lines.ts";
import { Relay } from "./relay.ts";
import type { Send } from "./send.ts";

/** The standard streams of a process, as far as a relay needs them. */
export interface Streams {
  readonly input: AsyncIterable<Uint8Array>;
  readonly write: (text: string) => void;
  readonly warn: (text: string) => void;
}

/** Relays until the client closes its end. */
export async function relayStreams({ input, write, warn }: Streams, send: Send): Promise<void> {
  const relay = new Relay({
    send,
    write: (line) => write(`${line}\n`),
    warn: (sentence) => warn(`outgate mcp: ${sentence}\n`),
  });
  for await (const line of linesOf(input)) {
    if (line === TOO_LONG) write(`${errorLine(null, -32_600, "This message is too large.")}\n`);
    else relay.take(line);
  }
  await relay.close();
}

/** Sends to a service elsewhere. Throws a sentence when the address is none. */
export function sendTo(url: string, key: string): Send {
  const endpoint = endpointOf(url);
  const authorization = `Bearer ${key}`;
  return ({ headers, ...init }) =>
    // Another place than the one that was named never gets the key.
    fetch(endpoint, { ...init, headers: { ...headers, authorization }, redirect: "error" });
}

function endpointOf(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new Error("OUTGATE_URL must be the address of the service, like https://outgate.example.com.");
  }
  const parsed = new URL(url);
  const path = parsed.pathname.replace(/(?<!\/)\/+$/, "");
  return `${parsed.origin}${path.endsWith("/mcp") ? path : `${path}/mcp`}`;
}
