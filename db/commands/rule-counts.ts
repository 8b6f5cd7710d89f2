import { and, gte, inArray, lt, lte } from "drizzle-orm";
import type { Counted, RuleCount } from "../../src/core/rule-count.ts";
import { hasValues } from "../sql/dialect.ts";
import { prepare, type Reader } from "../sql/read.ts";
import { PRUNE_ROWS, type Tx } from "./command.ts";
import { insertList, type Lists, type Values } from "./lists.ts";

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

interface CountRow {
  amount: bigint;
  told: boolean;
  readonly until: number;
}

/** What is counted for rules. A list's own calls are counted as they are decided. */
export class RuleCounts {
  /** By count, and then by start. */
  readonly #rows: ReadonlyMap<string, Map<number, CountRow>>;
  readonly #changed = new Map<string, readonly [Pick<RuleCount, "ruleId" | "subject">, number]>();

  constructor(rows: ReadonlyMap<string, Map<number, CountRow>>) {
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
    for (const count of counts) this.#rowAt(count).amount += BigInt(count.amount);
  }

  /** What was added for a change that is not written. */
  takeBack(counts: readonly RuleCount[]): void {
    for (const count of counts) this.#rowAt(count).amount -= BigInt(count.amount);
  }

  /** Notes that people were told; whether they had not been before. */
  tell(count: RuleCount): boolean {
    if (this.#within(count).some(({ told }) => told)) return false;
    this.#rowAt(count).told = true;
    return true;
  }

  /** Of rows that are there still. */
  giveBack([ruleId, subject, start, amount]: Counted): void {
    const row = this.#rows.get(nameOf({ ruleId, subject }))?.get(start);
    if (row === undefined) return;
    const left = row.amount - BigInt(amount);
    row.amount = left < 0n ? 0n : left;
    this.#changed.set(`${nameOf({ ruleId, subject })} ${start}`, [{ ruleId, subject }, start]);
  }

  async write({ lists }: Tx): Promise<void> {
    const rows = [...this.#changed.values()].flatMap(([{ ruleId, subject }, start]): Values[] => {
      const row = this.#rows.get(nameOf({ ruleId, subject }))?.get(start);
      return row === undefined ? [] : [[ruleId, subject, start, String(row.amount), Number(row.told), row.until]];
    });
    await lists.insert(COUNTS, rows);
  }

  #within({ from, to, ...count }: Place): readonly CountRow[] {
    const rows = this.#rows.get(nameOf(count)) ?? new Map<number, CountRow>();
    return [...rows].flatMap(([start, row]) => (from <= start && start <= to ? [row] : []));
  }

  #rowAt({ ruleId, subject, start, until }: RuleCount): CountRow {
    const rows = this.#rows.get(nameOf({ ruleId, subject }));
    if (rows === undefined) throw new Error("A count of a rule was not read.");
    const row = rows.get(start) ?? { amount: 0n, told: false, until };
    rows.set(start, row);
    this.#changed.set(`${nameOf({ ruleId, subject })} ${start}`, [{ ruleId, subject }, start]);
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
  return new RuleCounts(
    new Map(
      wanted.map((one, at) => [
        nameOf(one),
        new Map(
          (found[at] ?? []).map(({ start, amount, told, until }) => [
            start,
            { amount: wholeIn(amount), told, until: until.getTime() },
          ]),
        ),
      ]),
    ),
  );
}

/** See `ActionStore.beyondCounts`. */
export async function beyondCounts(reader: Reader, counts: readonly RuleCount[]): Promise<readonly RuleCount[]> {
  const find: Lists["find"] = (query, args) => Promise.all(args.map((one) => query.all(reader, one)));
  return (await readCounts({ lists: { find } }, counts)).beyond(counts);
}

/** What was altered in the database is over every limit: it must neither keep creates from being stored nor let them pass. */
function wholeIn(text: string): bigint {
  return /^\d{1,60}$/.test(text) ? BigInt(text) : OVER_EVERY_LIMIT;
}

const OVER_EVERY_LIMIT = 10n ** 60n;

export function placeOf([ruleId, subject, start]: Counted): Place {
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
