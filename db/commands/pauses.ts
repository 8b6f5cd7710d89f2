/** Pauses, and which of them hold back a lane. */
import { and, desc, eq, inArray, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { PAUSES_MAX, TIMELINE_PAUSES_MAX } from "../../src/core/limits.ts";
import { type Pause, type PauseStore, type PauseSubject, subjectKey } from "../../src/core/pause.ts";
import type { LaneName, Queue } from "../../src/core/store.ts";
import type { Reader } from "../sql/dialect.ts";
import { createLock, pauseLock } from "../sql/locks.ts";
import { all, countRows, findRow, get, hasRow, hasValues, prepare, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { actions, apiKeys, pauses } from "../tables.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, findEach, type Lists } from "./command.ts";
import { isOfManager } from "./makers.ts";

/** The pause in force for the same subject. */
export function findInForce(reader: Reader, { accountId, kind, subject }: PauseSubject): Promise<Pause | null> {
  const isOpen = and(hasValues(pauses, { accountId, kind, subject }), isNull(pauses.endedAt));
  return get(reader, qb.select().from(pauses).where(isOpen));
}

const PAUSE_OF = prepare({ accountId: "text", kind: "text", subject: "text" }, (arg) => {
  const isOpen = and(hasValues(pauses, arg), isNull(pauses.endedAt));
  return qb.select({ id: pauses.id }).from(pauses).where(isOpen);
});

/** Which of the subjects are paused, for `isHeldBack`. */
export async function findPaused(lists: Lists, subjects: readonly PauseSubject[]): Promise<ReadonlySet<string>> {
  const found = await findEach(lists, PAUSE_OF, subjects, subjectKey);
  return new Set([...found].flatMap(([name, rows]) => (rows.length > 0 ? [name] : [])));
}

export function isHeldBack(paused: ReadonlySet<string>, subjects: readonly PauseSubject[]): boolean {
  return paused.size > 0 && subjects.some((one) => paused.has(subjectKey(one)));
}

export const addPause = command<PauseStore["pause"]>(
  async (tx, pause, audit) => {
    const { accountId, kind, subject } = pause;
    const found = await findInForce(tx, pause);
    if (found !== null) return { kind: "found", pause: found };
    const ofAccount = and(eq(pauses.accountId, accountId), isNull(pauses.endedAt));
    if ((await countRows(tx, pauses, ofAccount)) >= PAUSES_MAX) return { kind: "too_many" };
    const isKey = hasValues(apiKeys, { id: subject, accountId });
    if (kind === "key" && !(await hasRow(tx, apiKeys, isKey))) return { kind: "no_such_key" };
    await tx.db.insert(pauses).values(pause);
    await addToAudit(tx, audit);
    return { kind: "paused", pause };
  },
  ({ accountId }) => [pauseLock(accountId)],
);

export const endPause = command<PauseStore["end"]>(
  async (tx, accountId, id, { at, by, audit, made }) => {
    if (made !== undefined && !(await isOfManager(tx, { accountId, ...made }))) return "not_manager";
    const isPause = hasValues(pauses, { id, accountId });
    const ended = tx.db
      .update(pauses)
      .set({ endedAt: at, endedBy: by })
      .where(and(isPause, isNull(pauses.endedAt)))
      .returning();
    return (await addIfWritten(tx, ended, audit)) || hasRow(tx, pauses, isPause);
  },
  (accountId, _id, { made }) => (made === undefined ? [] : [createLock(accountId)]),
);

export const prunePauses = command<PauseStore["prune"]>((tx, until) =>
  deleteSome(tx, [pauses.id], lte(pauses.endedAt, until)),
);

/** The names of all subjects that are paused, for `isHeldBack`. */
export async function readPaused(reader: Reader): Promise<ReadonlySet<string>> {
  const { accountId, kind, subject, endedAt } = pauses;
  const inForce = qb.select({ accountId, kind, subject }).from(pauses).where(isNull(endedAt));
  return new Set((await all(reader, inForce)).map(subjectKey));
}

/** Ids of the earliest pending actions of a lane. */
export async function findPendingIds(
  reader: Reader,
  { accountId, host, keyId }: LaneName,
  limit: number,
): Promise<readonly string[]> {
  const isOfLane = hasValues(actions, { accountId, host, keyId });
  const pending = qb
    .select({ id: actions.id })
    .from(actions)
    .where(and(sql`${actions.status} = 'pending'`, isOfLane));
  return (await all(reader, pending.orderBy(actions.dueAt).limit(limit))).map(({ id }) => id);
}

/** Lanes per read. */
const LANES = 128;

/** Creates the store of pauses. `queue`: the queue of actions. */
export function createPauseStore({ reader, writer }: StoreAccess, queue: Pick<Queue<Action>, "lanes">): PauseStore {
  const { indexedBy } = reader.dialect;
  /** Ids of the actions of a key. */
  const pausedIds = async (isStatus: SQL, { accountId, keyId }: Omit<LaneName, "host">, limit: number) => {
    const ofKey = qb.select({ id: actions.id }).from(actions);
    const found = ofKey.where(and(isStatus, hasValues(actions, { accountId, keyId }))).limit(limit);
    return (await all(reader, found)).map(({ id }) => id);
  };
  return {
    ...writer.methods({ pause: addPause, end: endPause, prune: prunePauses }),
    find: (accountId, id) => findRow(reader, pauses, { id, accountId }),
    async inForce(accountId) {
      const { id, endedAt } = pauses;
      // Otherwise, SQLite may choose the index by subject, which also has ended pauses.
      const ofAccount = sql`(select ${id} from ${indexedBy(pauses, "pauses_in_force")}
        where ${pauses.accountId} = ${accountId} and ${endedAt} is null)`;
      const isOpen = accountId === null ? isNull(endedAt) : inArray(id, ofAccount);
      return oldestFirst(await all(reader, qb.select().from(pauses).where(isOpen)));
    },
    async ofAction(accountId, actionId) {
      const isAction = hasValues(actions, { id: actionId, accountId });
      const subjects = {
        account: "",
        key: qb.select({ keyId: actions.keyId }).from(actions).where(isAction),
        host: qb.select({ host: actions.host }).from(actions).where(isAction),
        sign_up: accountId,
      };
      // The newest pauses of each kind, ended or not.
      const found = (["account", "key", "host", "sign_up"] as const).map((kind) => {
        const isOfSubject = and(hasValues(pauses, { accountId, kind }), eq(pauses.subject, subjects[kind]));
        const newestFirst = qb.select().from(pauses).where(isOfSubject).orderBy(desc(pauses.createdAt));
        return all(reader, newestFirst.limit(TIMELINE_PAUSES_MAX));
      });
      return oldestFirst((await Promise.all(found)).flat()).slice(-TIMELINE_PAUSES_MAX);
    },
    // Reads lanes, since an index of pending actions by key would make every create slower.
    async unfinished(accountId, keyId, limit) {
      const key = { accountId, keyId };
      // Read this first: an action that becomes pending again meanwhile is found below.
      const sending = await pausedIds(sql`${actions.status} = 'active'`, key, 1);
      const ids = await pausedIds(sql`${actions.status} = 'awaiting_approval'`, key, limit);
      let after = { accountId, host: "", keyId: "" };
      while (ids.length < limit) {
        const heads = (await queue.lanes(after, LANES)).filter((head) => head.accountId === accountId);
        for (const head of heads) {
          if (head.keyId !== keyId || ids.length >= limit) continue;
          ids.push(...(await findPendingIds(reader, head, limit - ids.length)));
        }
        const last = heads.at(-1);
        if (last === undefined || heads.length < LANES) break;
        after = { accountId, host: last.host, keyId: last.keyId };
      }
      return { ids, isSending: sending.length > 0 };
    },
  };
}

function oldestFirst(found: readonly Pause[]): readonly Pause[] {
  return found.toSorted((one, other) => {
    return one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1);
  });
}
