import { RetryLater } from "../api/domain-error.ts";
import {
  SIGN_UPS_PER_CLIENT_MAX,
  WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX,
  WRONG_LOGINS_PER_CLIENT_MAX,
  LOGIN_WINDOW_MS,
  LOGINS_REMEMBERED_MAX,
  SIGN_INS_TOLD_MAX,
  SIGN_INS_COUNTED_MAX,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AuditKind, AuditStore } from "../audit/audit.ts";
import type { PeopleStore } from "../../db/account-store.ts";

/** Somebody who tries to log in. */
export interface Attempt {
  readonly email: string;
  /** Where it comes from. */
  readonly client: string;
  /** Id of a device by which the person of this address logged in before; null: it is none of theirs. */
  readonly device: string | null;
}

/**
 * Counts an attempt as wrong from its start, so that a hundred at once are not looked at all; returns how to take that
 * back. Throws `RetryLater` after five wrong ones of an address from one client, or a hundred from a client, within a
 * minute. A known device has a count of its own and no other, so that nobody else can keep its person out.
 */
export type Throttle = (attempt: Attempt) => () => void;

export function createThrottle(clock: Pick<Clock, "monotonicMs">): Throttle {
  const devices = createWindows(clock, WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX);
  const accounts = createWindows(clock, WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX);
  const clients = createWindows(clock, WRONG_LOGINS_PER_CLIENT_MAX);
  return ({ email, client, device }) => {
    if (device !== null) {
      refuseFor(devices.fullForMs(device), "failed log-ins");
      return devices.count(device);
    }
    // Whether anybody has the address makes no difference here, or the answer would tell.
    const account = `${client} ${emailKey(email)}`;
    refuseFor(Math.max(accounts.fullForMs(account), clients.fullForMs(client)), "failed log-ins");
    const takeBacks = [accounts.count(account), clients.count(client)];
    return () => takeBacks.forEach((takeBack) => takeBack());
  };
}

/** Counts a sign-up of a client, and returns how to take it back. Throws `RetryLater` beyond twenty within a minute. */
export type SignUpThrottle = (client: string) => () => void;

export function createSignUpThrottle(clock: Pick<Clock, "monotonicMs">): SignUpThrottle {
  const clients = createWindows(clock, SIGN_UPS_PER_CLIENT_MAX);
  return (client) => {
    refuseFor(clients.fullForMs(client), "sign-ups");
    return clients.count(client);
  };
}

function refuseFor(waitMs: number, what: string): void {
  if (waitMs <= 0) return;
  const seconds = Math.ceil(waitMs / 1_000);
  throw new RetryLater(`Too many ${what} from here. Try again in ${seconds} s.`, seconds);
}

interface CountWindow {
  count: number;
  readonly startedMs: number;
}

/** How often each name was counted within a minute from its first count on. */
interface Windows {
  /** Milliseconds until a further count of this name is allowed; 0: it is now. */
  fullForMs(name: string): number;
  /** Returns how to take the count back. */
  count(name: string): () => void;
}

function createWindows(clock: Pick<Clock, "monotonicMs">, countMax: number): Windows {
  // In the order in which they began, since a map keeps the order in which it was filled.
  const windows = new Map<string, CountWindow>();
  const forgetOld = () => {
    const oldestMs = clock.monotonicMs() - LOGIN_WINDOW_MS;
    for (const [name, { startedMs }] of windows) {
      if (startedMs > oldestMs && windows.size < LOGINS_REMEMBERED_MAX) return;
      windows.delete(name);
    }
  };
  return {
    fullForMs(name) {
      forgetOld();
      const window = windows.get(name);
      if (window === undefined || window.count < countMax) return 0;
      return window.startedMs + LOGIN_WINDOW_MS - clock.monotonicMs();
    },
    count(name) {
      const window = windows.get(name) ?? { count: 0, startedMs: clock.monotonicMs() };
      window.count += 1;
      windows.set(name, window);
      return () => {
        window.count -= 1;
        if (window.count === 0 && windows.get(name) === window) windows.delete(name);
      };
    },
  };
}

/** Who was not let in. */
type RefusedKind = Extract<AuditKind, "sign_in_failed" | "sign_in_throttled">;

/**
 * Tells the audit log of an account of log-ins that failed: the first of a minute one by one, the others as a number, so that
 * nobody floods it by guessing. In the background, and without an error: how long an answer takes must not tell whether
 * anybody has the address.
 */
export type SignInAudit = (kind: RefusedKind, email: string, client: string) => void;

interface SignInAuditDeps {
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

/** By which an address is known: it is the same in any case. Addresses of ours are ASCII. */
export function emailKey(email: string): string {
  return email.toLowerCase();
}
