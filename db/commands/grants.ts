/** Grants: what people allow agents for a while. `actions.ts` counts their uses in the commit of each create. */
import {
  and,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  like,
  lt,
  lte,
  notExists,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import type { AuditDetail, AuditEntry } from "../../src/core/audit.ts";
import type { GrantStore } from "../../src/core/grant.ts";
import { firstActionId } from "../../src/core/ids.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { mayDo, MEMBER_ROLES, rolesThatMay } from "../../src/core/roles.ts";
import { grantLock } from "../sql/locks.ts";
import { all, hasRow, hasValues, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { actions, apiKeys, grants, members } from "../tables.ts";
import { addToAudit } from "./audit.ts";
import { command, deleteSome, insertList, type Tx, updateList, type Values } from "./command.ts";
import { GRANTS_VERSION, readVersion, renewVersion } from "./facts.ts";

export const GRANTS = insertList(grants);

/** Adds grants that come with approvals. If a grant's maker has meanwhile lost the right to approve, it ends at once. */
export async function addGrants(tx: Tx, rows: readonly Values[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.lists.insert(GRANTS, rows);
  const ids = rows.map((row) => String(row[ID_PLACE]));
  await tx.db
    .update(grants)
    .set({ endedAt: sql`${grants.createdAt}` })
    .where(and(inArray(grants.id, ids), isNull(grants.endedAt), notExists(MAKER), notExists(MAKER_KEY)));
  await renewVersion(tx, GRANTS_VERSION);
}

const ID_PLACE = GRANTS.columns.indexOf("id");

const APPROVERS = MEMBER_ROLES.filter((role) => mayDo(role, "approve"));

/** The person or the live key that made a grant, if they may approve. */
const MAKER = qb
  .select({ id: members.personId })
  .from(members)
  .where(
    and(
      eq(members.accountId, grants.accountId),
      eq(members.personId, grants.createdById),
      inArray(members.role, APPROVERS),
    ),
  );
const MAKER_KEY = qb
  .select({ id: apiKeys.id })
  .from(apiKeys)
  .where(
    and(
      eq(apiKeys.accountId, grants.accountId),
      eq(apiKeys.id, grants.createdById),
      inArray(apiKeys.role, rolesThatMay("approve")),
      isNull(apiKeys.revokedAt),
      or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, grants.createdAt)),
    ),
  );

/** The use of a grant by a create. */
export interface UsedGrant {
  readonly id: string;
  /** In milliseconds. */
  readonly at: number;
  /** The values of the audit entry without `detail`, to which the number of uses is added. */
  readonly audit: Values;
  readonly detail: AuditDetail;
}

/** The condition that a grant has not been ended and has time left, even if it is used up. */
function isOpen(now: Date, condition: SQL | undefined): SQL | undefined {
  return and(isNull(grants.endedAt), gt(grants.expiresAt, now), condition);
}

export const endGrant = command<GrantStore["end"]>(
  async (tx, accountId, id, { at, by, audit }) => {
    const [ended] = await tx.db
      .update(grants)
      .set({ endedAt: at, endedBy: by })
      .where(isOpen(at, hasValues(grants, { id, accountId })))
      .returning();
    if (ended === undefined) return null;
    await addToAudit(tx, audit, GRANTS_VERSION);
    return ended;
  },
  (_accountId, id) => [grantLock(id)],
);

/** Ends the grants of a person or key that loses the right to approve. They stay ended if the right returns. */
export async function endGrantsOf(
  tx: Tx,
  { accountId, makerId, at, by }: Readonly<{ accountId: string; makerId: string; at: Date; by: AuditEntry["actor"] }>,
): Promise<void> {
  const ended = await tx.db
    .update(grants)
    .set({ endedAt: at, endedBy: by === "anonymous" ? null : by })
    .where(isOpen(at, hasValues(grants, { accountId, createdById: makerId })))
    .returning();
  if (ended.length > 0) await renewVersion(tx, GRANTS_VERSION);
}

const USED = updateList(grants, ["used"], ["id"]);

/** How often grants were used and may be used, by id. The uses of a list are counted as they are decided. */
export type GrantCounts = ReadonlyMap<string, { used: number; readonly calls: number; readonly expiresAt: Date }>;

/** Reads the grants that nobody has ended. */
export async function readGrants(tx: Tx, uses: readonly UsedGrant[]): Promise<GrantCounts> {
  if (uses.length === 0) return new Map();
  const ids = [...new Set(uses.map((use) => use.id))];
  const { id, used, calls, expiresAt, endedAt } = grants;
  const inForce = qb.select({ id, used, calls, expiresAt }).from(grants);
  const rows = await all(tx, inForce.where(and(inArray(id, ids), isNull(endedAt))));
  return new Map(rows.map((row) => [row.id, row]));
}

/** Counts a use and returns how many there are. Null: the grant can't be used any more. */
export function useGrant(counts: GrantCounts, { id, at }: UsedGrant): number | null {
  const grant = counts.get(id);
  if (grant === undefined || grant.used >= grant.calls || grant.expiresAt.getTime() <= at) return null;
  return (grant.used += 1);
}

export async function writeUses({ lists }: Tx, counts: GrantCounts): Promise<void> {
  const rows = Array.from(counts, ([id, { used }]) => [used, id]);
  await lists.update(USED, rows);
}

/** Selects the grants that can be ended, in the order for people: used-up ones come last. */
function openWhere(now: Date, condition: SQL | undefined) {
  const isUsedUp = gte(grants.used, grants.calls);
  return qb
    .select()
    .from(grants)
    .where(isOpen(now, condition))
    .orderBy(isUsedUp, desc(grants.createdAt), desc(grants.id));
}

/**
 * The condition that nothing waits to be sent that a grant let pass: if the grant was ended, it may not be. Such an action was
 * created before the grant expired, and stored a moment later. Read by the indexes of the two statuses, which hold few that are so
 * old: in a day, rules may have let a hundred thousand pass.
 */
function nothingWaits(until: Date): SQL | undefined {
  const { id, accountId, status, policy } = actions;
  const isOld = lt(id, firstActionId(new Date(until.getTime() + DAY_MS)));
  const isOfGrant = and(eq(accountId, grants.accountId), isOld, like(policy, sql`'%"' || ${grants.id} || '"%'`));
  const isPending = sql`${status} = 'pending' and ${status} <> 'completed' and ${status} <> 'active'`;
  const isActive = sql`${status} = 'active'`;
  return and(
    ...[isPending, isActive].map((is) => notExists(qb.select({ id }).from(actions).where(and(is, isOfGrant)))),
  );
}

export const pruneGrants = command<GrantStore["prune"]>((tx, until) =>
  deleteSome(tx, [grants.id], and(lte(grants.expiresAt, until), or(isNull(grants.endedAt), nothingWaits(until)))),
);

export function createGrantStore({ reader, writer }: StoreAccess): GrantStore {
  return {
    ...writer.methods({ end: endGrant, prune: pruneGrants }),
    version: () => readVersion(reader, GRANTS_VERSION),
    list(accountId, now) {
      const isOfAccount = accountId === null ? undefined : eq(grants.accountId, accountId);
      return all(reader, openWhere(now, and(isOfAccount, lt(grants.used, grants.calls))));
    },
    listOpen: (accountId, now, limit) => all(reader, openWhere(now, eq(grants.accountId, accountId)).limit(limit)),
    wasEnded: (accountId, id) =>
      hasRow(reader, grants, and(hasValues(grants, { id, accountId }), isNotNull(grants.endedAt))),
  };
}
