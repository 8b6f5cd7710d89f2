import type { Server } from "bun";
import { type Config, RELEASE } from "../config/config.ts";
import type { Ids } from "../core/ids.ts";
import { openStartServer } from "../http/listen.ts";

/** From the first moment on, so that probes see a process that lives, however long the database takes. */
export function listenAtStart({ port, host }: Config, ids: Ids): Server<unknown> {
  try {
    return openStartServer(port, host, { ids, ...RELEASE });
  } catch (cause) {
    throw portTaken(port, host, cause);
  }
}

export function portTaken(port: number, host: string, cause: unknown): Error {
  return new Error(
    `Port ${port} of ${host} can't be listened on: it is taken, not allowed, or HOST is no address of this machine.`,
    { cause },
  );
}
