import { and, desc, eq, lt } from "drizzle-orm";
import type { SealedText } from "../../src/core/account-store.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tables } from "./command.ts";
import { setFact } from "./facts.ts";
import { updateList } from "./lists.ts";

/** The newest seed and the one it replaces. */
const SEEDS_KEPT = 2;

type Seed = Omit<Tables["signingSeeds"]["$inferInsert"], "seq">;

/** Adds a seed and deletes those of the same origin that two newer ones replace. */
export const rotate = command(async (tx, { seed, audit }: Readonly<{ seed: Seed; audit: AuditEntry | undefined }>) => {
  const { signingSeeds } = tx.tables;
  await tx.db.insert(signingSeeds).values(seed);
  await addToAudit(tx, audit);
  const isOfOrigin = and(eq(signingSeeds.accountId, seed.accountId), eq(signingSeeds.origin, seed.origin));
  const seeds = tx.db.select({ seq: signingSeeds.seq }).from(signingSeeds).where(isOfOrigin);
  const kept = await seeds.orderBy(desc(signingSeeds.seq)).limit(SEEDS_KEPT);
  await tx.db.delete(signingSeeds).where(and(isOfOrigin, lt(signingSeeds.seq, kept.at(-1)?.seq ?? 0)));
});

/** A later change is not overwritten: the old text is part of the condition. */
const RESEAL = new Map([
  ["accounts.sealed_root_secret", updateList("accounts", ["sealedRootSecret"], ["id", "sealedRootSecret"])],
  ["signing_seeds.sealed_seed", updateList("signingSeeds", ["sealedSeed"], ["id", "sealedSeed"])],
  ["actions.sealed_headers", updateList("actions", ["sealedHeaders"], ["id", "sealedHeaders"])],
  ["channels.sealed_config", updateList("channels", ["sealedConfig"], ["id", "sealedConfig"])],
]);

interface ResealArgs {
  readonly replacements: readonly (SealedText & { readonly by: string })[];
}

/** Replaces sealed texts; one that has changed meanwhile stays as it is. */
export const reseal = command(async (tx, { replacements }: ResealArgs) => {
  const columns = Map.groupBy(replacements, ({ place }) => `${place.table}.${place.column}`);
  for (const [column, texts] of columns) {
    const list = RESEAL.get(column);
    if (list === undefined) throw new Error(`${column} holds no sealed texts.`);
    await tx.lists.update(
      list,
      texts.map(({ place, sealed, by }) => [by, place.row, sealed]),
    );
  }
});

/** Sets facts about the store; null: deletes one. */
export const writeFacts = command(async (tx, values: Readonly<Record<string, string | null>>) => {
  const { facts } = tx.tables;
  for (const [name, value] of Object.entries(values)) {
    if (value === null) await tx.db.delete(facts).where(eq(facts.name, name));
    else await setFact(tx, name, value);
  }
});
