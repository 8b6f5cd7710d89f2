import type { SealedPlace, Secrets } from "./types.ts";
import type { Store } from "../../db/store.ts";
import { fingerprint } from "./key.ts";

/** Names of the facts about the master key: its check value, that of the next key during a rotation, and the stored link key. */
export const KEY_FACTS = { present: "master-key", next: "next-master-key", links: "link-key" } as const;

export const LINK_KEY_PLACE: SealedPlace = { table: "facts", row: KEY_FACTS.links, column: "value" };

/**
 * Throws an error for the operator unless this is the master key of the store. Writes only the check value of a new store.
 */
export async function checkMasterKey(
  store: Store,
  masterKey: Uint8Array,
  secrets: Pick<Secrets, "open">,
): Promise<void> {
  const mark = fingerprint(masterKey);
  const [present, next] = await Promise.all([store.facts.read(KEY_FACTS.present), store.facts.read(KEY_FACTS.next)]);
  if (next !== null) throw new Error(INTERRUPTED);
  if (present !== null && present !== mark) throw new Error(ANOTHER_KEY);
  await checkOpens(store, secrets);
  if (present === null) await store.facts.write(KEY_FACTS.present, mark);
}

/** Throws unless one of the keys decrypts the root secret of the first account: a damaged store may still have its check value. */
export async function checkOpens({ accounts }: Store, ...keys: readonly Pick<Secrets, "open">[]): Promise<void> {
  const account = await accounts.first();
  if (account === null) return;
  const place = { table: "accounts", row: account.id, column: "sealed_root_secret" };
  const opens = (key: Pick<Secrets, "open">) => {
    try {
      return key.open(account.sealedRootSecret, place).length > 0;
    } catch {
      return false;
    }
  };
  if (keys.some(opens)) return;
  throw new Error(
    `The root secret of account ${account.id} can't be opened: the database is damaged, or its master key is another one. ` +
      "Nothing was written to it. Restore a backup of the database and its key.",
  );
}

/** The link key that the store keeps after a rotation of the master key; null: it is derived from the master key. */
export async function keptLinkKey({ facts }: Store, secrets: Pick<Secrets, "open">): Promise<Uint8Array | null> {
  const sealed = await facts.read(KEY_FACTS.links);
  return sealed === null ? null : secrets.open(sealed, LINK_KEY_PLACE);
}

export const INTERRUPTED =
  "A change of the master key was interrupted. Run `outgate rotate-secret-key` again: it goes on where it stopped.";

export const ANOTHER_KEY =
  "The master key is not the one that this database is sealed under. Set SECRET_KEY to that key, or put its key file back. " +
  "If a change of the key was interrupted, run `outgate rotate-secret-key` again.";
