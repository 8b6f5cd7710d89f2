import type { Server } from "bun";
import { IDLE_SECONDS } from "./sse.ts";

interface ListenOptions {
  /** Port 0 takes any free one. */
  readonly port: number;
  readonly host: string;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number | undefined;
}

type Answer = (request: Request, server: Server<unknown>) => Response | Promise<Response>;

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
