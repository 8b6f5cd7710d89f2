import type { AuditCounts, AuditSpan } from "../core/audit.ts";
import { CREDENTIAL_USE_DAYS } from "../core/limits.ts";

/** How often credentials were sent lately, also to try them. */
export interface CredentialUses {
  /** By the id of the credential: the uses of each day, the oldest first. */
  readonly byDay: ReadonlyMap<string, readonly number[]>;
  /** Whether every use is counted, and not only the newest ones. */
  readonly isWhole: boolean;
}

/** Each use is an entry of the audit log. */
export function usesSpan(accountId: string, until: Date): AuditSpan {
  return { accountId, kinds: ["credential_used", "credential_tested"], until, days: CREDENTIAL_USE_DAYS };
}

export function usesOf({ counts, isWhole }: AuditCounts): CredentialUses {
  const byDay = new Map<string, readonly number[]>();
  for (const { subject, daysAgo, count } of counts) {
    byDay.set(subject, (byDay.get(subject) ?? NONE).with(CREDENTIAL_USE_DAYS - 1 - daysAgo, count));
  }
  return { byDay, isWhole };
}

const NONE: readonly number[] = Array.from({ length: CREDENTIAL_USE_DAYS }, () => 0);

/** The uses of one credential by day, the oldest first. */
export function daysOf({ byDay }: CredentialUses, id: string): readonly number[] {
  return byDay.get(id) ?? NONE;
}

export function sumOf(days: readonly number[]): number {
  return days.reduce((sum, count) => sum + count, 0);
}

/** Of a credential that was just added. */
export const NO_USES: CredentialUses = { byDay: new Map(), isWhole: true };
