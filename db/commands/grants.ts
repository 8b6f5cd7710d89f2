import { and, eq, gt, inArray, isNull, lt } from "drizzle-orm";
import type { AuditDetail, AuditEntry } from "../../src/core/audit.ts";
import type { Grant, GrantEnd } from "../../src/core/grant.ts";
import { grantLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tx } from "./command.ts";
import { GRANTS_VERSION, setFact } from "./facts.ts";
import { insertList, updateList, type Values } from "./lists.ts";

export const GRANT = [
  ...(["id", "accountId", "keyId", "actionId", "likeness", "vary", "max", "calls", "used", "expiresAt"] as const),
  ...(["createdAt", "createdBy", "createdById", "endedAt", "endedBy"] as const),
] as const;

const GRANTS = insertList("grants", GRANT);

/** A grant that comes with an approval: the values of `GRANT`, and a new random value. */
export interface NewGrant {
  readonly row: Values;
  readonly version: string;
}

export async function addGrants(tx: Tx, grants: readonly NewGrant[]): Promise<void> {
  await tx.lists.insert(
    GRANTS,
    grants.map(({ row }) => row),
  );
  for (const { version } of grants.slice(0, 1)) await setFact(tx, GRANTS_VERSION, version);
}

/** A create that a grant lets pass. */
export interface UsedGrant {
  readonly id: string;
  /** In milliseconds. */
  readonly at: number;
  /** The values of the entry for the audit log but its detail, which gets how often the grant was used. */
  readonly audit: Values;
  readonly detail: AuditDetail;
}

/** See `GrantStore.end`. `version` is a new random value. */
export const end = command(
  async (
    tx,
    { accountId, id, at, by, audit, version }: GrantEnd & Readonly<{ accountId: string; id: string; version: string }>,
  ): Promise<Grant | null> => {
    const { grants } = tx.tables;
    const isInForce = and(isNull(grants.endedAt), gt(grants.expiresAt, at), lt(grants.used, grants.calls));
    const [ended] = await tx.db
      .update(grants)
      .set({ endedAt: at, endedBy: by })
      .where(and(eq(grants.id, id), eq(grants.accountId, accountId), isInForce))
      .returning();
    if (ended === undefined) return null;
    await addToAudit(tx, audit);
    await setFact(tx, GRANTS_VERSION, version);
    return ended;
  },
  ({ id }) => [grantLock(id)],
);

/** Ends what a person or key has granted, whose right to approve ends at that time. It stays ended if the right returns. */
export async function endGrantsOf(
  tx: Tx,
  { accountId, makerId, at, by }: Readonly<{ accountId: string; makerId: string; at: Date; by: AuditEntry["actor"] }>,
): Promise<void> {
  const { grants } = tx.tables;
  const isOpen = and(eq(grants.accountId, accountId), isNull(grants.endedAt), gt(grants.expiresAt, at));
  const ended = await tx.db
    .update(grants)
    .set({ endedAt: at, endedBy: by === "anonymous" ? null : by })
    .where(and(isOpen, eq(grants.createdById, makerId)))
    .returning({ id: grants.id });
  if (ended.length > 0) await setFact(tx, GRANTS_VERSION, crypto.randomUUID());
}

const USED = updateList("grants", ["used"], ["id"]);

/** How often grants were used, and may be. A list's own uses are counted as they are decided. */
export class GrantCounts {
  readonly #counts: Map<string, { used: number; readonly calls: number; readonly expiresAt: Date }>;
  readonly #changed = new Set<string>();

  constructor(rows: readonly Pick<Grant, "id" | "used" | "calls" | "expiresAt">[]) {
    this.#counts = new Map(rows.map(({ id, ...row }) => [id, { ...row }]));
  }

  /** Counts a use; null: it may not be used any more. */
  use({ id, at }: UsedGrant): number | null {
    const count = this.#counts.get(id);
    if (count === undefined || count.used >= count.calls || count.expiresAt.getTime() <= at) return null;
    this.#changed.add(id);
    return (count.used += 1);
  }

  async write({ lists }: Tx): Promise<void> {
    await lists.update(
      USED,
      [...this.#changed].map((id) => [this.#counts.get(id)?.used ?? 0, id]),
    );
  }
}

/** Those of the grants that have not been ended. */
export async function readGrants({ db, tables: { grants } }: Tx, uses: readonly UsedGrant[]): Promise<GrantCounts> {
  if (uses.length === 0) return new GrantCounts([]);
  const ids = [...new Set(uses.map(({ id }) => id))];
  const { id, used, calls, expiresAt, endedAt } = grants;
  const rows = await db
    .select({ id, used, calls, expiresAt })
    .from(grants)
    .where(and(inArray(id, ids), isNull(endedAt)));
  return new GrantCounts(rows);
}
