/** Facts about the store: texts by name. Most are versions, by which nodes notice that their copy of a table is stale. */
import { eq } from "drizzle-orm";
import type { FactStore } from "../../src/core/store.ts";
import { prepare, qb } from "../sql/read.ts";
import type { Reader } from "../sql/dialect.ts";
import { command, type Tx } from "./command.ts";
import { facts } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Facts that change with every write to a table, so that nodes notice when their copy of it is stale. */
export const CHANNELS_VERSION = "channels";
export const HOST_SETTINGS_VERSION = "host settings";
export const RULES_VERSION = "rules";
export const GRANTS_VERSION = "grants";
export const CREDENTIALS_VERSION = "credentials";

/** The position of the newest event that was deleted. A stream that went on from an earlier one would leave events out. */
export const NEWEST_DELETED = "newest event deleted";

export async function renewVersion(tx: Tx, name: string): Promise<void> {
  await setFact(tx, name, crypto.randomUUID());
}

export async function setFact({ db }: Tx, name: string, value: string): Promise<void> {
  await db.insert(facts).values({ name, value }).onConflictDoUpdate({ target: facts.name, set: { value } });
}

export const writeFacts = command<FactStore["write"]>(async (tx, values) => {
  for (const [name, value] of Object.entries(values)) {
    if (value === null) await tx.db.delete(facts).where(eq(facts.name, name));
    else await setFact(tx, name, value);
  }
});

export const FACT = prepare({ name: "text" }, (arg) => qb.select().from(facts).where(eq(facts.name, arg.name)));

export async function readFact(reader: Reader, name: string): Promise<string | null> {
  return (await FACT.get(reader, { name }))?.value ?? null;
}

/** Reads a version. Empty: nothing was ever written. */
export async function readVersion(reader: Reader, name: string): Promise<string> {
  return (await readFact(reader, name)) ?? "";
}

export function createFactStore({ reader, writer }: StoreAccess): FactStore {
  return {
    read: (name) => readFact(reader, name),
    ...writer.methods({ write: writeFacts }),
  };
}
