import { and, gte, inArray, lt, lte } from "drizzle-orm";
import type { StoredCount, RuleCount } from "../../src/core/rule-count.ts";
import { hasValues } from "../sql/dialect.ts";
import { prepare, type Reader } from "../sql/read.ts";
import { PRUNE_ROWS, type Tx } from "./command.ts";
import { insertEach, insertList, type Lists, type Values } from "./lists.ts";

/** The rows of one count in a part of time. */
const COUNT_ROWS = prepare(
  { ruleId: "text", subject: "text", from: "number", to: "number" },
  ({ db, tables: { ruleCounts } }, { from, to, ...count }) => {
    const { start, amount, told, until } = ruleCounts;
    const isWithin = and(hasValues(ruleCounts, count), gte(start, from), lte(start, to));
    return db.select({ start, amount, told, until }).from(ruleCounts).where(isWithin);
  },
);

const COUNTS = insertList(
  "ruleCounts",
  [],
  "on conflict (rule_id, subject, start_at) do update set amount = excluded.amount, told = excluded.told",
);

/** A create that a rule holds for going beyond one of its counts, and the entry of the audit log for the first of them. */
export interface GoesBeyond {
  readonly count: RuleCount;
  readonly audit: Values;
}

/** Which count, and the part of time that matters. */
type Place = Pick<RuleCount, "ruleId" | "subject" | "from" | "to">;

interface CountRow extends Pick<RuleCount, "ruleId" | "subject" | "start"> {
  amount: bigint;
  told: boolean;
  readonly until: number;
  isChanged: boolean;
}

/** What is counted for rules. A list's own calls are counted as they are decided. */
export class RuleCounts {
  readonly #rows: ReadonlyMap<string, CountRow[]>;

  /** The rows of each count that was read. */
  constructor(rows: ReadonlyMap<string, CountRow[]>) {
    this.#rows = rows;
  }

  /** Those of the counts that would be over their limit. */
  beyond(counts: readonly RuleCount[]): readonly RuleCount[] {
    return counts.filter((one) => {
      let sum = BigInt(one.amount);
      for (const { amount } of this.#within(one)) sum += amount;
      return sum > BigInt(one.limit);
    });
  }

  add(counts: readonly RuleCount[]): void {
    for (const count of counts) this.#changing(count).amount += BigInt(count.amount);
  }

  /** What was added for a change that is not written. */
  takeBack(counts: readonly RuleCount[]): void {
    for (const count of counts) this.#changing(count).amount -= BigInt(count.amount);
  }

  /** Notes that people were told; whether they had not been before. */
  tell(count: RuleCount): boolean {
    if (this.#within(count).some(({ told }) => told)) return false;
    this.#changing(count).told = true;
    return true;
  }

  /** Of rows that are there still. */
  giveBack(counted: StoredCount): void {
    const amount = BigInt(counted[3]);
    for (const row of this.#within(placeOf(counted))) {
      row.amount = row.amount < amount ? 0n : row.amount - amount;
      row.isChanged = true;
    }
  }

  async write({ lists }: Tx): Promise<void> {
    const changed = [...this.#rows.values()].flat().filter(({ isChanged }) => isChanged);
    await insertEach(lists, COUNTS, changed, ({ ruleId, subject, start, amount, told, until }) => [
      [ruleId, subject, start, String(amount), Number(told), until],
    ]);
  }

  #within({ from, to, ...count }: Place): readonly CountRow[] {
    return (this.#rows.get(nameOf(count)) ?? []).filter(({ start }) => from <= start && start <= to);
  }

  #changing({ ruleId, subject, start, until }: RuleCount): CountRow {
    const rows = this.#rows.get(nameOf({ ruleId, subject }));
    if (rows === undefined) throw new Error("A count of a rule was not read.");
    const known = rows.find((one) => one.start === start);
    const row = known ?? { ruleId, subject, start, amount: 0n, told: false, until, isChanged: true };
    if (known === undefined) rows.push(row);
    row.isChanged = true;
    return row;
  }
}

const NOTHING = new RuleCounts(new Map());

/** Reads counts, each once. */
export async function readCounts(
  { lists }: { readonly lists: Pick<Lists, "find"> },
  places: readonly Place[],
): Promise<RuleCounts> {
  if (places.length === 0) return NOTHING;
  const wanted = [...Map.groupBy(places, nameOf).values()].flatMap((same) =>
    same.slice(0, 1).map(({ ruleId, subject }) => ({
      ruleId,
      subject,
      from: Math.min(...same.map(({ from }) => from)),
      to: Math.max(...same.map(({ to }) => to)),
    })),
  );
  const found = await lists.find(COUNT_ROWS, wanted);
  const rows = wanted.map(({ ruleId, subject }, at) =>
    (found[at] ?? []).map(({ start, amount, told, until }): CountRow => {
      return {
        ruleId,
        subject,
        start,
        amount: /^\d{1,60}$/.test(amount) ? BigInt(amount) : OVER_EVERY_LIMIT,
        told,
        until: until.getTime(),
        isChanged: false,
      };
    }),
  );
  return new RuleCounts(new Map(wanted.map((one, at) => [nameOf(one), rows[at] ?? []])));
}

/** See `ActionStore.beyondCounts`. */
export async function beyondCounts(reader: Reader, counts: readonly RuleCount[]): Promise<readonly RuleCount[]> {
  const find: Lists["find"] = (query, args) => Promise.all(args.map((one) => query.all(reader, one)));
  return (await readCounts({ lists: { find } }, counts)).beyond(counts);
}

/** What was altered in the database is over every limit: it must neither keep creates from being stored nor let them pass. */
const OVER_EVERY_LIMIT = 10n ** 60n;

export function placeOf([ruleId, subject, start]: StoredCount): Place {
  return { ruleId, subject, from: start, to: start };
}

/** Forgets counts whose time is over, of `PRUNE_ROWS` at most; returns of how many. */
export async function pruneCounts({ db, tables: { ruleCounts } }: Tx, now: Date): Promise<number> {
  const { subject, until } = ruleCounts;
  const isOver = lt(until, now);
  const some = await db.select({ subject }).from(ruleCounts).where(isOver).orderBy(until).limit(PRUNE_ROWS);
  if (some.length === 0) return 0;
  const isOfThese = inArray(
    subject,
    some.map((one) => one.subject),
  );
  await db.delete(ruleCounts).where(and(isOver, isOfThese));
  return some.length;
}

function nameOf({ ruleId, subject }: Pick<RuleCount, "ruleId" | "subject">): string {
  return `${ruleId} ${subject}`;
}
