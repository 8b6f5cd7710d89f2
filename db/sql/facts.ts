import { eq } from "drizzle-orm";
import type { FactStore } from "../../src/core/store.ts";
import { writeFacts } from "../commands/secrets.ts";
import type { StoreContext } from "./context.ts";
import { read, type Reader } from "./read.ts";

const FACT = read({ name: "text" }, ({ db, tables: { facts } }, arg) =>
  db.select().from(facts).where(eq(facts.name, arg.name)),
);

export async function readFact(reader: Reader, name: string): Promise<string | null> {
  return (await FACT.get(reader, { name }))?.value ?? null;
}

export function createFactStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FactStore {
  return {
    read: (name) => readFact(reader, name),
    write: (name, value) => writer.run(writeFacts, { [name]: value }),
    writeAll: (values) => writer.run(writeFacts, values),
  };
}
