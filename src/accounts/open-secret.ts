import type { Log } from "../ports/log.ts";
import { type Secrets, UnreadableSecret } from "../ports/secrets.ts";
import type { OpenSecret } from "./root-secret.ts";

export interface OpenSecretDeps {
  readonly secrets: Pick<Secrets, "open">;
  readonly log: Log;
}

/** Says in the log which row it is that does not open, since no caller is told: they could do nothing about it. */
export function createOpenSecret({ secrets, log }: OpenSecretDeps): OpenSecret {
  return (accountId, sealed, place) => {
    try {
      return secrets.open(sealed, place);
    } catch (cause) {
      log.error("signing.unreadable", { account_id: accountId, table: place.table, row: place.row });
      throw new UnreadableSecret(`The sealed ${place.column} of ${place.table} ${place.row} can't be opened.`, {
        cause,
      });
    }
  };
}
