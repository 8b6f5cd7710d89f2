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

/** An attempt to log in. */
export interface Attempt {
  readonly email: string;
  /** Network address. */
  readonly client: string;
  /** Id of a device on which the person of this address logged in before; null: unknown device. */
  readonly device: string | null;
}

/**
 * Counts an attempt as wrong when it starts, so that concurrent attempts count too. Returns a function that takes the count
 * back. Throws `RetryLater` after too many wrong attempts within `LOGIN_WINDOW_MS`, for one address from one client or for
 * one client. A known device is counted only by itself, so that others can't lock its person out.
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
    // Unknown addresses count the same, or the answer would reveal which addresses exist.
    const account = `${client} ${emailKey(email)}`;
    refuseFor(Math.max(accounts.fullForMs(account), clients.fullForMs(client)), "failed log-ins");
    const uncounts = [accounts.count(account), clients.count(client)];
    return () => uncounts.forEach((uncount) => uncount());
  };
}

/** Counts a sign-up of a client; returns a function that takes it back. Throws `RetryLater` after `SIGN_UPS_PER_CLIENT_MAX`. */
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

/** Counts by name, each in a fixed window of `LOGIN_WINDOW_MS` from its first count. */
interface Windows {
  /** Milliseconds until another count of this name is allowed; 0: now. */
  fullForMs(name: string): number;
  /** Returns a function that takes the count back. */
  count(name: string): () => void;
}

function createWindows(clock: Pick<Clock, "monotonicMs">, countMax: number): Windows {
  // A map keeps insertion order, so the oldest window comes first.
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

type RefusedKind = Extract<AuditKind, "sign_in_failed" | "sign_in_throttled">;

/**
 * Records failed log-ins in the audit log: the first `SIGN_INS_TOLD_MAX` of a window one by one, the others as one entry with
 * a count, so that guessing can't flood the log. It runs in the background and ignores errors: the time of the answer must
 * not reveal whether an address exists.
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
    // An unknown address belongs to no account.
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
      // They may have come from several clients.
      if (left > 0) write(kind, email, "", left);
    });
  };
}

/** Calls the throttle and records an attempt that it refuses. */
export function throttleAndAudit(throttle: Throttle, attempt: Attempt, record: SignInAudit): () => void {
  try {
    return throttle(attempt);
  } catch (error) {
    record("sign_in_throttled", attempt.email, attempt.client);
    throw error;
  }
}

/** An address as a map key: lower case, since addresses are ASCII and case does not matter. */
export function emailKey(email: string): string {
  return email.toLowerCase();
}
