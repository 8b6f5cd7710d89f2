import { REJECTION_WINDOW_MS, REPEATS_PER_REJECTION_MAX } from "./limits.ts";

/** Whether a reason says anything: it has a letter, digit or sign that can be seen. Some letters of Unicode are blank. */
export function saysWhy(reason: string | null): boolean {
  return reason !== null && /(?![\u115f\u1160\u2800\u3164\uffa0])[\p{L}\p{N}\p{S}]/u.test(reason);
}

/** Rejections at this time or earlier no longer count. */
export function rejectionWindowStart(now: Date): Date {
  return new Date(now.getTime() - REJECTION_WINDOW_MS);
}

/** The present count of a request. */
export interface RejectionCount {
  /** The newest rejection in the window; null: none. */
  readonly rejectedAt: Date | null;
  /** When it was requested again within the window, newest first, at most `REPEATS_PER_REJECTION_MAX`. */
  readonly repeatedAt: readonly Date[];
  /** The oldest entry of its key if the key has `REJECTIONS_PER_KEY_MAX` of them; else null. */
  readonly fullSince: Date | null;
}

/** Whether a request may be made now. `hasReason`: its reason says anything. */
export function mayRepeat({ rejectedAt, repeatedAt, fullSince }: RejectionCount, hasReason: boolean): boolean {
  if (fullSince !== null) return false;
  return rejectedAt === null || (repeatedAt.length < REPEATS_PER_REJECTION_MAX && hasReason);
}
