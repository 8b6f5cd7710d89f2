import type { Clock } from "../ports/clock.ts";
import { StoreUnavailable } from "../ports/store.ts";

const WRITE_AGAIN_MS = 250;

/**
 * A result that can't be recorded would be sent again: so it is offered to the store for as long as the claim is ours.
 * `no`: it lost, somebody else had taken the row over; `never`: the store was away until the lease was over.
 */
export async function untilWritten(
  clock: Clock,
  leaseUntil: Date | null,
  write: () => Promise<boolean>,
): Promise<"yes" | "no" | "never"> {
  while (true) {
    try {
      return (await write()) ? "yes" : "no";
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      if (leaseUntil === null || clock.now() >= leaseUntil) return "never";
      await new Promise<void>((resolve) => void clock.after(WRITE_AGAIN_MS, resolve));
    }
  }
}
