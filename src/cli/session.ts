import { createClient, type OutgateClient } from "../client/client.ts";
import { takeApiKey } from "./api-key.ts";
import { type Command, type Io, UsageError } from "./command.ts";
import { parseExact } from "./exact-json.ts";
import { explain } from "./failure.ts";
import { createPaint, jsonText, type Paint } from "./style.ts";

/** What a command that talks to a running service works with. */
export interface Session {
  readonly client: OutgateClient;
  readonly url: string;
  readonly io: Io;
  readonly paint: Paint;
  /** Prints JSON: indented on a terminal. */
  readonly json: (value: unknown) => void;
  /** Prints JSON on one line, for programs that read line by line. */
  readonly line: (value: unknown) => void;
  /** Prints lines for a person. */
  readonly say: (text: string) => void;
}

const URL_DEFAULT = "http://127.0.0.1:3000";

/** Where the service is: `OUTGATE_URL`, without a slash at its end. */
export function readUrl({ env }: Io): string {
  const text = env["OUTGATE_URL"] || URL_DEFAULT;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new Error(`OUTGATE_URL has to be where Outgate is, such as ${URL_DEFAULT}.`);
  }
  return url.href.replace(/(?<!\/)\/+$/, "");
}

export function openSession(io: Io, apiKey: string | null): Session {
  const url = readUrl(io);
  return {
    client: createClient({ url, apiKey, parse: parseExact }),
    url,
    io,
    paint: createPaint(io),
    json: (value) => io.out(jsonText(value, io.isTty)),
    line: (value) => io.out(jsonText(value, false)),
    say: (text) => io.out(text.endsWith("\n") ? text : `${text}\n`),
  };
}

/** Runs a command with the key that its arguments or the environment name; what the service refuses is explained. */
export function withSession(work: (args: readonly string[], session: Session) => Promise<number>): Command["run"] {
  return async (given, io) => {
    const { key, args } = await takeApiKey(given, io);
    if (key === null) {
      throw new UsageError(
        "Set OUTGATE_API_KEY to an API key, or OUTGATE_API_KEY_FILE to a file that holds one; the first start of Outgate prints one.",
      );
    }
    const session = openSession(io, key);
    try {
      return await work(args, session);
    } catch (error) {
      const told = explain(error, session.url);
      if (told === null) throw error;
      io.err(`${told.message}\n`);
      return told.code;
    }
  };
}
