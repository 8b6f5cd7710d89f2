import type { Tx } from "./command.ts";

/** Facts that change with every write of a table, for nodes that cache its rows. */
export const CHANNELS_VERSION = "channels";
export const HOST_SETTINGS_VERSION = "host settings";
export const RULES_VERSION = "rules";
export const GRANTS_VERSION = "grants";

/** Sets a fact about the store. */
export async function setFact({ db, tables: { facts } }: Tx, name: string, value: string): Promise<void> {
  await db.insert(facts).values({ name, value }).onConflictDoUpdate({ target: facts.name, set: { value } });
}
