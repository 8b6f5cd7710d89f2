import type { Server } from "bun";
import { IDLE_SECONDS } from "./sse.ts";

/** Where a door stands. */
interface Place {
  /** Port 0 takes any free one. */
  readonly port: number;
  readonly host: string;
  /** How long a request may take to arrive; `IDLE_SECONDS` unless it is given. */
  readonly arrivalSeconds?: number | undefined;
}

type Answer = (request: Request, server: Server<unknown>) => Response | Promise<Response>;

/** Listens with the limits of the house. Throws when the port is taken. */
export function listenOn({ port, host, arrivalSeconds = IDLE_SECONDS }: Place, answer: Answer): Server<unknown> {
  return Bun.serve({
    port,
    hostname: host,
    idleTimeout: arrivalSeconds,
    // Bun's own 413 has neither envelope nor request id; `body.ts` counts.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // With `development: false` Bun shares a port with whoever else listens on it, another Outgate above all.
    reusePort: false,
    fetch: answer,
  });
}
