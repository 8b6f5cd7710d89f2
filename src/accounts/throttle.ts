import { emailKey } from "../domain/email.ts";
import { RetryLater } from "../domain/errors.ts";
import {
  SIGN_UPS_PER_CLIENT_MAX,
  WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX,
  WRONG_LOGINS_PER_CLIENT_MAX,
} from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import { createWindows } from "./windows.ts";

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
