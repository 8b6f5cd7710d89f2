import type { AppPart } from "../runtime/app-context.ts";
import { RetryLater } from "../core/domain-error.ts";
import {
  WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX,
  WRONG_LOGINS_PER_CLIENT_MAX,
  LOGIN_WINDOW_MS,
  LOGINS_REMEMBERED_MAX,
  SIGN_IN_ENTRIES_MAX,
  SIGN_INS_COUNTED_MAX,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { emailKey } from "../core/account-store.ts";

interface LogInAttempt {
  readonly email: string;
  /** Network address. */
  readonly client: string;
  /** Id of a device on which the person of this address logged in before; null: unknown device. */
  readonly device: string | null;
}

/**
 * Counts an attempt as wrong when it starts, so that concurrent attempts also count. Returns a function that takes the count
 * back. Throws `RetryLater` after too many wrong attempts within `LOGIN_WINDOW_MS`, of one client for one address or in total.
 * A known device is counted separately, so that others can't lock its person out.
 */
export function createLogInThrottle(clock: Pick<Clock, "monotonicMs">): (attempt: LogInAttempt) => () => void {
  const devices = createWindowCounter(clock, WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX);
  const accounts = createWindowCounter(clock, WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX);
  const clients = createWindowCounter(clock, WRONG_LOGINS_PER_CLIENT_MAX);
  return ({ email, client, device }) => {
    if (device !== null) {
      refuseFor(devices.waitMs(device), "failed logins");
      return devices.count(device);
    }
    // Unknown addresses count the same; otherwise, the answer would reveal which addresses exist.
    const account = `${client} ${emailKey(email)}`;
    refuseFor(Math.max(accounts.waitMs(account), clients.waitMs(client)), "failed logins");
    const uncounts = [accounts.count(account), clients.count(client)];
    return () => uncounts.forEach((uncount) => uncount());
  };
}

/** Counts what a client does; returns a function that takes the count back. Throws `RetryLater` after `countMax`. */
export function createClientThrottle(clock: Pick<Clock, "monotonicMs">, countMax: number, what: string) {
  const clients = createWindowCounter(clock, countMax);
  return (client: string): (() => void) => {
    refuseFor(clients.waitMs(client), what);
    return clients.count(client);
  };
}

function refuseFor(waitMs: number, what: string): void {
  if (waitMs <= 0) return;
  const seconds = Math.ceil(waitMs / 1_000);
  throw new RetryLater(`Too many ${what} from here. Try again in ${seconds} s.`, seconds);
}

/** Counts by name, each in a fixed window of `LOGIN_WINDOW_MS` from its first count. */
function createWindowCounter(clock: Pick<Clock, "monotonicMs">, countMax: number) {
  /** A map keeps insertion order, so the oldest window comes first. */
  const windows = new Map<string, { count: number; readonly startedMs: number }>();
  return {
    /** Milliseconds until another count of this name is allowed; 0: now. */
    waitMs(name: string): number {
      const nowMs = clock.monotonicMs();
      for (const [oldest, { startedMs }] of windows) {
        if (startedMs > nowMs - LOGIN_WINDOW_MS && windows.size < LOGINS_REMEMBERED_MAX) break;
        windows.delete(oldest);
      }
      const window = windows.get(name);
      return window === undefined || window.count < countMax ? 0 : window.startedMs + LOGIN_WINDOW_MS - nowMs;
    },

    /** Returns a function that takes the count back. */
    count(name: string): () => void {
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

type RefusedSignIn = keyof typeof SIGN_IN_ENTRIES_MAX;

/**
 * Records failed logins in the audit log: the first `SIGN_IN_ENTRIES_MAX` of a window one by one, the others as one entry
 * with a count, so that guessing can't flood the log. It runs in the background and ignores errors: the time of the answer
 * must not reveal whether an address exists.
 */
export function createSignInAudit({ store: { people, audit }, clock }: AppPart<"clock", "people" | "audit">) {
  const windows = new Map<string, { count: number }>();

  const record = async (kind: RefusedSignIn, email: string, client: string, count: number): Promise<void> => {
    const member = await people.find(email);
    // An unknown address belongs to no account.
    if (member === null) return;
    const { accountId, person } = member;
    const what = { kind, subject: person.email, client, detail: { via: "page", count } } as const;
    await audit.record({ ...what, at: clock.now(), accountId, actor: "anonymous" });
  };
  const recordInBackground = (...entry: Parameters<typeof record>) => void record(...entry).catch(() => {});

  return (kind: RefusedSignIn, email: string, client: string): void => {
    const name = `${kind} ${emailKey(email)}`;
    const known = windows.get(name);
    if (known === undefined && windows.size >= SIGN_INS_COUNTED_MAX) return;
    const window = known ?? { count: 0 };
    window.count += 1;
    if (window.count <= SIGN_IN_ENTRIES_MAX[kind]) recordInBackground(kind, email, client, 1);
    if (known !== undefined) return;
    windows.set(name, window);
    clock.after(LOGIN_WINDOW_MS, () => {
      windows.delete(name);
      const left = window.count - SIGN_IN_ENTRIES_MAX[kind];
      // Without a client, since they may have come from several.
      if (left > 0) recordInBackground(kind, email, "", left);
    });
  };
}
