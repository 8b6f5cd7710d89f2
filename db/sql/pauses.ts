import { and, desc, eq, type SQL, sql, type SQLWrapper } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { TIMELINE_PAUSES_MAX } from "../../src/core/limits.ts";
import type { Pause, PauseStore } from "../../src/core/pause.ts";
import type { Queue } from "../../src/core/store.ts";
import * as commands from "../commands/pauses.ts";
import type { StoreContext } from "./context.ts";
import { indexedBy } from "./dialect.ts";
import { findPendingIds } from "./find.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions, pauses } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

const PAUSES_IN_FORCE = indexedBy(pauses, "pauses_in_force");

/**
 * Holds while a pause of this kind and subject is in force: one lookup in an index that is almost always empty. The
 * builder can't name an index, and the planner may choose one by subject.
 */
function isInForce(kind: Pause["kind"], accountId: SQLWrapper, subject: SQLWrapper | string): SQL {
  return sql`exists (select 1 from ${PAUSES_IN_FORCE} where ${pauses.accountId} = ${accountId}
    and ${pauses.kind} = ${kind} and ${pauses.subject} = ${subject} and ${pauses.endedAt} is null)`;
}

/** Holds while the account is stopped: it signed up and was not allowed. */
export function isStopped(accountId: SQLWrapper): SQL {
  return isInForce("sign_up", accountId, accountId);
}

/** The lane of an action, as SQL. */
export interface LaneSql {
  readonly accountId: SQLWrapper;
  readonly host: SQLWrapper;
  readonly keyId: SQLWrapper;
}

/** Holds while a pause covers the actions of a lane. */
export function isPaused({ accountId, host, keyId }: LaneSql): SQL {
  const [ofKey, ofHost] = [isInForce("key", accountId, keyId), isInForce("host", accountId, host)];
  return sql`(${isInForce("account", accountId, "")} or ${ofKey} or ${ofHost} or ${isStopped(accountId)})`;
}

const FIND = prepare((arg: Args<"id" | "accountId">) =>
  query
    .select()
    .from(pauses)
    .where(and(eq(pauses.id, arg.id), eq(pauses.accountId, arg.accountId))),
);

const PAUSES = query.select().from(pauses);

const IN_FORCE = sql`${PAUSES_IN_FORCE} where ${pauses.endedAt} is null`;

const ALL_IN_FORCE = prepare(() => sql`select * from ${IN_FORCE}`, PAUSES);

const OF_ACCOUNT_IN_FORCE = prepare(
  (arg: Args<"accountId">) => sql`select * from ${IN_FORCE} and ${pauses.accountId} = ${arg.accountId}`,
  PAUSES,
);

/** The newest pauses of one subject, ended or not. */
const ofSubject = (kind: Pause["kind"], subject: (arg: Args<"accountId" | "actionId">) => SQLWrapper | string) =>
  prepare((arg: Args<"accountId" | "actionId">) =>
    query
      .select()
      .from(pauses)
      .where(and(eq(pauses.accountId, arg.accountId), eq(pauses.kind, kind), eq(pauses.subject, subject(arg))))
      .orderBy(desc(pauses.createdAt))
      .limit(TIMELINE_PAUSES_MAX),
  );

const OF_ACCOUNT = ofSubject("account", () => "");

const OF_SIGN_UP = ofSubject("sign_up", (arg) => arg.accountId);

const OF_KEY = ofSubject("key", ({ accountId, actionId }) => {
  return query.select({ keyId: actions.keyId }).from(actions).where(isAction(accountId, actionId));
});

const OF_HOST = ofSubject("host", ({ accountId, actionId }) =>
  query.select({ host: actions.host }).from(actions).where(isAction(accountId, actionId)),
);

function isAction(accountId: SQLWrapper, id: SQLWrapper): SQL | undefined {
  return and(eq(actions.id, id), eq(actions.accountId, accountId));
}

/** `lanes` are those of the pending actions. */
export function createPauseStore(
  { sql: reader, writer }: Pick<StoreContext, "sql" | "writer">,
  lanes: Lanes,
): PauseStore {
  return {
    find: async (accountId, id) => (await FIND.read(reader, { accountId, id }))[0] ?? null,
    pause: (pause, audit) => writer.run(commands.add, { pause, audit }),
    end: (accountId, id, how) => writer.run(commands.end, { accountId, id, ...how }),
    inForce: (accountId) => findInForce(reader, accountId),
    async ofAction(accountId, actionId) {
      const all = [OF_ACCOUNT, OF_KEY, OF_HOST, OF_SIGN_UP].map((each) => each.read(reader, { accountId, actionId }));
      return oldestFirst((await Promise.all(all)).flat()).slice(-TIMELINE_PAUSES_MAX);
    },
    unfinished: (accountId, keyId, limit) => findUnfinished({ reader, lanes }, { accountId, keyId }, limit),
    prune: (until) => writer.run(commands.prune, { until }),
  };
}

async function findInForce(reader: Sql, accountId: string | null): Promise<readonly Pause[]> {
  return oldestFirst(
    await (accountId === null ? ALL_IN_FORCE.read(reader, {}) : OF_ACCOUNT_IN_FORCE.read(reader, { accountId })),
  );
}

function oldestFirst(found: readonly Pause[]): readonly Pause[] {
  return found.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
}

const isOfKey = ({ accountId, keyId }: Args<"accountId" | "keyId">) =>
  and(eq(actions.accountId, accountId), eq(actions.keyId, keyId));

const HELD = prepare((arg: Args<"accountId" | "keyId" | "limit">) => {
  const held = query.select({ id: actions.id }).from(actions);
  return held.where(and(eq(actions.status, "awaiting_approval"), isOfKey(arg))).limit(arg.limit);
});

const SENDING = prepare((arg: Args<"accountId" | "keyId">) => {
  const sending = query.select({ id: actions.id }).from(actions);
  return sending.where(and(eq(actions.status, "active"), isOfKey(arg))).limit(1);
});

type Lanes = Queue<Action>["lanes"];

/** Lanes per read. */
const LANES = 128;

/** By lanes, since no index of pending actions begins with the key: every action would pay for it. */
async function findUnfinished(
  { reader, lanes }: { readonly reader: Sql; readonly lanes: Lanes },
  key: { readonly accountId: string; readonly keyId: string },
  limit: number,
) {
  // Read first: an action that becomes pending again meanwhile is found below.
  const sending = await SENDING.read(reader, key);
  const ids = (await HELD.read(reader, { ...key, limit })).map(({ id }) => id);
  const { accountId, keyId } = key;
  let after = { accountId, host: "", keyId: "" };
  while (ids.length < limit) {
    const heads = (await lanes(after, LANES)).filter((head) => head.accountId === accountId);
    for (const head of heads) {
      if (head.keyId !== keyId || ids.length >= limit) continue;
      ids.push(...(await findPendingIds(reader, head, limit - ids.length)));
    }
    const last = heads.at(-1);
    if (last === undefined || heads.length < LANES) break;
    after = { accountId, host: last.host, keyId: last.keyId };
  }
  return { ids, isSending: sending.length > 0 };
}
