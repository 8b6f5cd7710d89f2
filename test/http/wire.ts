import { connect } from "node:net";

/** What came back over one connection, and when. */
export interface Exchange {
  readonly text: string;
  /** Whether the server closed it. */
  readonly isClosed: boolean;
  readonly firstByteMs: number;
  readonly closedMs: number;
}

export interface ExchangeOptions {
  /** Ends the exchange once what came back looks like this; without it the server has to close. */
  readonly until?: (text: string) => boolean;
  readonly boundMs?: number;
  /** Goes away as soon as everything is sent. */
  readonly leaves?: boolean;
  /** The address of this machine that it comes from. */
  readonly from?: string;
  /** Is sent behind the parts again and again, every 250 ms, for as long as the connection lives. */
  readonly drip?: string;
}

/**
 * Sends bytes as they are over one connection and reads what comes back: what no HTTP client would send. Texts are
 * latin-1; a function is awaited, so that a test can wait for something between two parts.
 */
export async function exchange(
  port: number,
  parts: readonly (string | Uint8Array | (() => Promise<void>))[],
  { until, boundMs = 45_000, leaves = false, from = "127.0.0.1", drip }: ExchangeOptions = {},
): Promise<Exchange> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  const end = Promise.withResolvers<void>();
  let dripping: ReturnType<typeof setInterval> | undefined;
  const seen = { text: "", isClosed: false, firstByteMs: -1, closedMs: -1 };
  const bound = setTimeout(() => end.reject(new Error(`Nothing within ${boundMs} ms; so far: ${seen.text}`)), boundMs);
  socket.on("data", (bytes) => {
    if (seen.firstByteMs < 0) seen.firstByteMs = elapsed();
    seen.text += bytes.toString("latin1");
    if (until?.(seen.text) === true) end.resolve();
  });
  socket.on("close", () => {
    seen.isClosed = true;
    seen.closedMs = elapsed();
    end.resolve();
  });
  // A reset is a way to close too; the test looks at what came before it.
  socket.on("error", () => {});
  try {
    for (const part of parts) {
      if (typeof part === "function") await part();
      else socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
    }
    if (drip !== undefined) dripping = setInterval(() => socket.write(drip), 250);
    if (!leaves) await end.promise;
    return { ...seen };
  } finally {
    clearTimeout(bound);
    clearInterval(dripping);
    socket.destroy();
  }
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** The first answer of a text, with its body out of its chunks. */
export function readAnswer(text: string): RawAnswer {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [line = "", ...fields] = head.split("\r\n");
  const headers = new Headers();
  for (const field of fields)
    headers.append(field.slice(0, field.indexOf(":")), field.slice(field.indexOf(":") + 1).trim());
  const raw = rest.join("\r\n\r\n");
  const body = headers.get("transfer-encoding") === "chunked" ? unchunk(raw) : raw;
  return { status: Number(line.split(" ")[1]), headers, body };
}

function unchunk(raw: string): string {
  const size = Number.parseInt(raw, 16);
  if (!(size > 0)) return "";
  const start = raw.indexOf("\r\n") + 2;
  return raw.slice(start, start + size) + unchunk(raw.slice(start + size + 2));
}

/** A request as text, with what every test needs in it. */
export function request(line: string, headers: readonly string[] = [], body = ""): string {
  return [`${line} HTTP/1.1`, "Host: 127.0.0.1", ...headers, "", body].join("\r\n");
}
