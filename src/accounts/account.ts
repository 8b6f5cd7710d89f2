import { authorize, type Caller } from "../domain/caller.ts";
import type { PeopleStore } from "../ports/people.ts";

/** Of the caller's own account what there is to tell. */
export interface ReadAccount {
  readonly id: string;
  /** Of its first person; null while it has none (decisions 12). */
  readonly email: string | null;
}

/** Reads the caller's own account; every role may. */
export function createReadAccount(people: Pick<PeopleStore, "emailOf">) {
  return async (caller: Caller): Promise<ReadAccount> => {
    authorize(caller, "read");
    return { id: caller.accountId, email: await people.emailOf(caller.accountId) };
  };
}
