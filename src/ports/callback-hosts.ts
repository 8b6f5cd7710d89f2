import type { ListedHost } from "../domain/callback-host.ts";

/** The hosts to which callbacks of keys with a hold may go, by account; each in its normal form. */
export interface CallbackHostStore {
  /** In the order of the alphabet. */
  list(accountId: string): Promise<readonly ListedHost[]>;
  /** `added`: it is on the list, since now or since before; `full`: the account lists as many as it may. */
  add(accountId: string, host: string, at: Date): Promise<"added" | "full">;
  /** False: it was not on the list. */
  remove(accountId: string, host: string): Promise<boolean>;
}
