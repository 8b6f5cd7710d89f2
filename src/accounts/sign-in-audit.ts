import type { AuditKind } from "../domain/audit.ts";
import { emailKey } from "../domain/email.ts";
import { LOGIN_WINDOW_MS, SIGN_INS_TOLD_MAX, SIGN_INS_COUNTED_MAX } from "../domain/limits.ts";
import type { AuditStore } from "../ports/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Attempt, Throttle } from "./throttle.ts";

/** Who was not let in. */
type RefusedKind = Extract<AuditKind, "sign_in_failed" | "sign_in_throttled">;

/**
 * Tells the audit log of an account of log-ins that failed: the first of a minute one by one, the others as a number, so that
 * nobody floods it by guessing. In the background, and without an error: how long an answer takes must not tell whether
 * anybody has the address.
 */
export type SignInAudit = (kind: RefusedKind, email: string, client: string) => void;

export interface SignInAuditDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly audit: Pick<AuditStore, "record">;
  readonly clock: Pick<Clock, "now" | "after">;
}

interface Window {
  count: number;
}

export function createSignInAudit({ people, audit, clock }: SignInAuditDeps): SignInAudit {
  const windows = new Map<string, Window>();

  const tell = async (kind: RefusedKind, email: string, client: string, count: number): Promise<void> => {
    const member = await people.find(email);
    // An address that nobody has belongs to no account.
    if (member === null) return;
    const { accountId, person } = member;
    const what = { kind, subject: person.email, client, detail: { via: "page", count } } as const;
    await audit.record({ ...what, at: clock.now(), accountId, actor: "anonymous" });
  };
  const write = (...entry: Parameters<typeof tell>) => void tell(...entry).catch(() => {});

  return (kind, email, client) => {
    const name = `${kind} ${emailKey(email)}`;
    const known = windows.get(name);
    if (known === undefined && windows.size >= SIGN_INS_COUNTED_MAX) return;
    const window = known ?? { count: 0 };
    window.count += 1;
    if (window.count <= SIGN_INS_TOLD_MAX[kind]) write(kind, email, client, 1);
    if (known !== undefined) return;
    windows.set(name, window);
    clock.after(LOGIN_WINDOW_MS, () => {
      windows.delete(name);
      const left = window.count - SIGN_INS_TOLD_MAX[kind];
      // From wherever they came.
      if (left > 0) write(kind, email, "", left);
    });
  };
}

/** Asks the throttle, and tells of an attempt that it refuses. */
export function throttleOrTell(throttle: Throttle, attempt: Attempt, tell: SignInAudit): () => void {
  try {
    return throttle(attempt);
  } catch (error) {
    tell("sign_in_throttled", attempt.email, attempt.client);
    throw error;
  }
}
