import type { Server } from "bun";
import { IDLE_SECONDS } from "./sse.ts";

export interface ListenOptions {
  /** Port 0 takes any free one. */
  readonly port: number;
  readonly host: string;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number | undefined;
}

type Answer = (request: Request, server: Server<unknown>) => Response | Promise<Response>;

/**
 * Where BASE_URL says `localhost`, a browser may mean 127.0.0.1 or ::1, and whoever listens on the other one would get the
 * cookies of that name: listens on both. Null: there is no other address. Throws when its port is taken.
 */
export function listenOnOtherLoopback(place: ListenOptions, baseUrl: string, answer: Answer): Server<unknown> | null {
  const other = OTHER_LOOPBACK[place.host];
  if (other === undefined || new URL(baseUrl).hostname !== "localhost") return null;
  try {
    return listenOn({ ...place, host: other }, answer);
  } catch (error) {
    // A machine without IPv6 has no ::1 that anybody could take.
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") throw error;
    return null;
  }
}

const OTHER_LOOPBACK: Readonly<Record<string, string>> = { "127.0.0.1": "::1", "::1": "127.0.0.1" };

/** Starts a server with our limits. Throws when the port is taken. */
export function listenOn(
  { port, host, arrivalSeconds = IDLE_SECONDS }: ListenOptions,
  answer: Answer,
): Server<unknown> {
  return Bun.serve({
    port,
    hostname: host,
    idleTimeout: arrivalSeconds,
    // Bun's own 413 has neither envelope nor request id; `body.ts` limits the size instead.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // With `development: false` Bun would share the port with another process, such as a second Outgate.
    reusePort: false,
    fetch: answer,
  });
}
