import { emailKey } from "../domain/email.ts";
import { DomainError } from "../domain/errors.ts";
import {
  LOGIN_WINDOW_MS,
  LOGINS_REMEMBERED_MAX,
  WRONG_LOGINS_PER_ADDRESS_MAX,
  WRONG_LOGINS_PER_CLIENT_MAX,
} from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

/** Somebody who tries to log in. */
export interface Attempt {
  readonly email: string;
  /** Where it comes from. */
  readonly client: string;
}

/**
 * Counts an attempt as wrong from its start, so that a hundred at once are not looked at all; returns how to take that
 * back. Throws `rate_limited` after five wrong ones of an address, or a hundred of a client, within a minute. The next
 * minute begins anew whatever came meanwhile: nobody can lock a person out for good (hostile 1, B121).
 */
export type Throttle = (attempt: Attempt) => () => void;

export function createThrottle(clock: Pick<Clock, "monotonicMs">): Throttle {
  const addresses = createWindows(clock, WRONG_LOGINS_PER_ADDRESS_MAX);
  const clients = createWindows(clock, WRONG_LOGINS_PER_CLIENT_MAX);
  return ({ email, client }) => {
    // Whether anybody has the address makes no difference here, or the answer would tell.
    const address = emailKey(email);
    if (addresses.isFull(address) || clients.isFull(client)) {
      throw new DomainError("rate_limited", "Too many failed log-ins; wait a minute and try again.");
    }
    const takeBacks = [addresses.count(address), clients.count(client)];
    return () => takeBacks.forEach((takeBack) => takeBack());
  };
}

interface Window {
  count: number;
  readonly startedMs: number;
}

/** A minute for each name, from its first count on. */
function createWindows(clock: Pick<Clock, "monotonicMs">, countMax: number) {
  // In the order in which they began, since a map keeps the order in which it was filled.
  const windows = new Map<string, Window>();
  const forgetOld = () => {
    const oldestMs = clock.monotonicMs() - LOGIN_WINDOW_MS;
    for (const [name, { startedMs }] of windows) {
      if (startedMs > oldestMs && windows.size < LOGINS_REMEMBERED_MAX) return;
      windows.delete(name);
    }
  };
  return {
    isFull(name: string): boolean {
      forgetOld();
      return (windows.get(name)?.count ?? 0) >= countMax;
    },
    /** Returns how to take it back. */
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
