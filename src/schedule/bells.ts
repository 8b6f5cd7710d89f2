import { Cron } from "croner";
import type { Log } from "../ports/log.ts";

/** Housekeeping that is rung by the clock on the wall. Delivery never hangs on a bell. */
export interface Bell {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  readonly ring: () => Promise<void>;
}

/** Hangs the bells up; returns how to take them down. One that still rings is not rung again. */
export function hangBells(bells: readonly Bell[], log: Log): () => void {
  // Not named to croner: two jobs of one name throw, across the whole process.
  const jobs = bells.map(
    ({ name, pattern, ring }) =>
      new Cron(
        pattern,
        { timezone: "UTC", protect: true, catch: () => log.error("bell.failed", { bell: name }) },
        ring,
      ),
  );
  return () => jobs.forEach((job) => job.stop());
}
