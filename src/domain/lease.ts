import { ATTEMPT_MS_MIN, LEASE_WRITE_MS } from "./limits.ts";

/**
 * How long an attempt may take that begins now: its own limit, and no longer than its lease leaves it with time to write the
 * result down, since a lease begins before the claim is on disk. 0: too little is left to begin.
 */
export function attemptMs(
  { leaseUntil }: { readonly leaseUntil: Date | null },
  now: Date,
  attemptTimeoutMs: number,
): number {
  if (leaseUntil === null) return 0;
  const leftMs = leaseUntil.getTime() - now.getTime() - LEASE_WRITE_MS;
  return leftMs < Math.min(attemptTimeoutMs, ATTEMPT_MS_MIN) ? 0 : Math.min(attemptTimeoutMs, leftMs);
}
