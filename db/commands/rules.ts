/**
 * The rules of accounts, by whose version a create is decided, and what they count. Behind it are the counts of a commit: `actions.ts` reads
 * them, asks which a create would exceed, adds to them, and writes them.
 */
import { and, desc, eq, getTableColumns, gte, isNotNull, lte, sql } from "drizzle-orm";
import {
  countName,
  CountParts,
  type RuleCount,
  type RuleStore,
  type StoredCount,
} from "../../src/core/account-rules.ts";
import type { ActionPolicy } from "../../src/core/action-policy.ts";
import type { Reader } from "../sql/dialect.ts";
import { rulesLock } from "../sql/locks.ts";
import { all, hasValues, prepare, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { actions, facts, ruleCounts, rules } from "../tables.ts";
import { addToAudit } from "./audit.ts";
import { command, findEach, type Lists, type Tx, upsertList, type Values } from "./command.ts";
import { FACT, readVersion, renewVersion, RULES_VERSION } from "./facts.ts";
import { isOfManager } from "./makers.ts";

/** The fact that changes with the rules of one account. */
function rulesVersionName(accountId: string): string {
  return `${RULES_VERSION} ${accountId}`;
}

/** Reads the version of each account's rules. A create is decided by the rules in force at its commit. */
export async function readRulesVersions(
  { lists }: Pick<Tx, "lists">,
  accountIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const names = Array.from(accountIds, (accountId) => ({ name: rulesVersionName(accountId) }));
  const found = await findEach(lists, FACT, names, ({ name }) => name);
  return new Map(Array.from(accountIds, (id) => [id, found.get(rulesVersionName(id))?.[0]?.value ?? ""]));
}

export const replaceRules = command<RuleStore["replace"]>(
  async (tx, { accountId, rules: rows, expected, audit, by }) => {
    if (by !== undefined && !(await isOfManager(tx, { accountId, ...by }))) return "not_manager";
    if ((await readVersion(tx, rulesVersionName(accountId))) !== expected) return false;
    await tx.db.delete(rules).where(eq(rules.accountId, accountId));
    for (const [position, row] of rows.entries()) await tx.db.insert(rules).values({ ...row, position });
    await addToAudit(tx, audit, rulesVersionName(accountId));
    await renewVersion(tx, RULES_VERSION);
    return true;
  },
  ({ accountId }) => [rulesLock(accountId)],
);

export const recordRefusal = command<RuleStore["recordRefusal"]>(async (tx, expected, audit) => {
  if ((await readVersion(tx, rulesVersionName(audit.accountId))) !== expected) return false;
  await addToAudit(tx, audit);
  return true;
});

/** The store of rules. `parse` reads a policy; it is passed in, since its schema would slow the start of the writer thread. */
export function createRuleStore(
  { reader, writer }: StoreAccess,
  parse: (text: string) => ActionPolicy | undefined,
): RuleStore {
  return {
    ...writer.methods({ replace: replaceRules, recordRefusal }),
    version: () => readVersion(reader, RULES_VERSION),
    async versions() {
      const ruled = qb.select({ accountId: rules.accountId }).from(rules).groupBy(rules.accountId).as("ruled");
      const isOfAccount = eq(facts.name, sql`${sql.raw(`'${rulesVersionName("")}'`)} || ${ruled.accountId}`);
      const { accountId } = ruled;
      const found = qb.select({ accountId, version: facts.value }).from(ruled).leftJoin(facts, isOfAccount);
      return new Map((await all(reader, found)).map((row) => [row.accountId, row.version ?? ""]));
    },
    findVersion: (accountId) => readVersion(reader, rulesVersionName(accountId)),
    list(accountId) {
      const { position, ...columns } = getTableColumns(rules);
      return all(reader, qb.select(columns).from(rules).where(eq(rules.accountId, accountId)).orderBy(position));
    },
    async ruled(accountId, since, limit) {
      const { createdAt, policy } = actions;
      const isRuled = and(eq(actions.accountId, accountId), isNotNull(policy), gte(createdAt, since));
      const ruled = qb.select({ policy }).from(actions).where(isRuled).orderBy(desc(createdAt)).limit(limit);
      const rows = await all(reader, ruled);
      return rows.flatMap((row) => (row.policy === null ? [] : (parse(row.policy) ?? [])));
    },
  };
}

/** The rows of one count in a span of time. */
const COUNT_ROWS = prepare(
  { ruleId: "text", subject: "text", from: "number", to: "number" },
  ({ from, to, ...count }) => {
    const { start, amount, reported, until } = ruleCounts;
    const isWithin = and(hasValues(ruleCounts, count), gte(start, from), lte(start, to));
    return qb.select({ start, amount, reported, until }).from(ruleCounts).where(isWithin);
  },
);

const COUNTS = upsertList(ruleCounts, ["ruleId", "subject", "start"], ["amount", "reported"]);

/** The count beyond which a create goes, so that a rule holds it, and the audit entry for the first such create. */
export interface GoesBeyond {
  readonly count: RuleCount;
  readonly audit: Values;
}

/** A count and its span of time. */
type Place = Pick<RuleCount, "ruleId" | "subject" | "from" | "to">;

interface CountRow extends Pick<RuleCount, "ruleId" | "subject" | "start" | "until"> {
  amount: bigint;
  reported: boolean;
}

export type RuleCounts = Awaited<ReturnType<typeof readCounts>>;

/**
 * Reads counts of rules, each span on its own, since one call may be due now and another in a year. The calls of a list are added as they
 * are decided.
 */
export async function readCounts({ lists }: { readonly lists: Pick<Lists, "find"> }, places: readonly Place[]) {
  const wanted = new Map(
    places.map(({ ruleId, subject, from, to }) => {
      const place = { ruleId, subject, from, to };
      return [JSON.stringify(place), place];
    }),
  );
  const asked = [...wanted.values()];
  const found = asked.length === 0 ? [] : await lists.find(COUNT_ROWS, asked);
  const parts = new CountParts<CountRow>();
  for (const [at, { ruleId, subject }] of asked.entries()) {
    for (const { start, amount, reported, until } of found[at] ?? []) {
      const count = { ruleId, subject, start };
      const read = /^\d{1,60}$/.test(amount) ? BigInt(amount) : OVER_EVERY_LIMIT;
      parts.at(count, () => ({ ...count, amount: read, reported, until: until.getTime() }));
    }
  }
  /** The names of the counts that were read. */
  const known = new Set(asked.map(countName));
  const changed = new Set<CountRow>();
  const changing = ({ ruleId, subject, start, until }: RuleCount): CountRow => {
    const count = { ruleId, subject, start };
    if (!known.has(countName(count))) throw new Error("A count of a rule was not read.");
    const row = parts.at(count, () => ({ ...count, amount: 0n, reported: false, until }));
    changed.add(row);
    return row;
  };
  return {
    /** Which of these counts would exceed their limits. */
    beyond: (counts: readonly RuleCount[]) => counts.filter((one) => parts.isBeyond(one)),

    add(counts: readonly RuleCount[]): void {
      for (const count of counts) changing(count).amount += BigInt(count.amount);
    },

    /** Takes back what was added for a change that was not written. */
    takeBack(counts: readonly RuleCount[]): void {
      for (const count of counts) changing(count).amount -= BigInt(count.amount);
    },

    /** Notes that the count is reported to people. Returns false if it was before. */
    markReported(count: RuleCount): boolean {
      if (parts.within(count).some(({ reported }) => reported)) return false;
      changing(count).reported = true;
      return true;
    },

    /** Gives back what an action has counted, unless the row has been pruned. */
    giveBack(counted: StoredCount): void {
      const amount = BigInt(counted[3]);
      for (const row of parts.within(countPlace(counted))) {
        row.amount = row.amount < amount ? 0n : row.amount - amount;
        changed.add(row);
      }
    },

    async write(tx: Pick<Tx, "lists">): Promise<void> {
      const rows = Array.from(changed, ({ ruleId, subject, start, amount, reported, until }) => {
        return [ruleId, subject, start, String(amount), Number(reported), until];
      });
      await tx.lists.insert(COUNTS, rows);
    },
  };
}

/** See `ActionStore.beyondCounts`. */
export async function beyondCounts(reader: Reader, counts: readonly RuleCount[]): Promise<readonly RuleCount[]> {
  const find: Lists["find"] = (query, args) => Promise.all(args.map((one) => query.all(reader, one)));
  return (await readCounts({ lists: { find } }, counts)).beyond(counts);
}

/** The amount for an altered row. It exceeds every limit, so that creates neither fail nor pass because of it. */
const OVER_EVERY_LIMIT = 10n ** 60n;

export function countPlace([ruleId, subject, start]: StoredCount): Place {
  return { ruleId, subject, from: start, to: start };
}
