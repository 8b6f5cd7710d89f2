import { and, desc, eq, inArray, isNull, type SQL, sql, type SQLWrapper } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { TIMELINE_PAUSES_MAX } from "../../src/core/limits.ts";
import type { Pause, PauseStore } from "../../src/core/pause.ts";
import type { Queue } from "../../src/core/store.ts";
import * as commands from "../commands/pauses.ts";
import type { StoreContext } from "./context.ts";
import type { Dialect, LaneSql } from "./dialect.ts";
import { findPendingIds } from "./find.ts";
import { read, type Reader } from "./read.ts";

/** Holds while a pause of this kind and subject is in force: one look into an index that is almost always empty. */
function isInForce(
  { tables: { pauses }, indexedBy }: Dialect,
  kind: Pause["kind"],
  accountId: SQLWrapper,
  subject: SQLWrapper | string,
): SQL {
  // The builder can't name an index, and the planner may choose one by subject.
  return sql`exists (select 1 from ${indexedBy(pauses, "pauses_in_force")} where ${pauses.accountId} = ${accountId}
    and ${pauses.kind} = ${kind} and ${pauses.subject} = ${subject} and ${pauses.endedAt} is null)`;
}

/** Holds while the account is stopped: it signed up and was not allowed. */
export function isStopped(dialect: Dialect, accountId: SQLWrapper): SQL {
  return isInForce(dialect, "sign_up", accountId, accountId);
}

/** Holds while a pause covers the actions of a lane. */
export function isPaused(dialect: Dialect, { accountId, host, keyId }: LaneSql): SQL {
  const ofKey = isInForce(dialect, "key", accountId, keyId);
  const ofHost = isInForce(dialect, "host", accountId, host);
  const ofAccount = isInForce(dialect, "account", accountId, "");
  return sql`(${ofAccount} or ${ofKey} or ${ofHost} or ${isStopped(dialect, accountId)})`;
}

const FIND = read({ id: "text", accountId: "text" }, ({ db, tables: { pauses } }, arg) =>
  db
    .select()
    .from(pauses)
    .where(and(eq(pauses.id, arg.id), eq(pauses.accountId, arg.accountId))),
);

const IN_FORCE = read({}, ({ db, tables: { pauses } }) => db.select().from(pauses).where(isNull(pauses.endedAt)));

const OF_ACCOUNT_IN_FORCE = read({ accountId: "text" }, ({ db, tables: { pauses }, indexedBy }, arg) => {
  const { id, accountId, endedAt } = pauses;
  // Else the planner may choose the index by subject, which has the pauses that have ended too.
  const inForce = sql`(select ${id} from ${indexedBy(pauses, "pauses_in_force")}
    where ${and(eq(accountId, arg.accountId), isNull(endedAt))})`;
  return db.select().from(pauses).where(inArray(id, inForce));
});

/** The newest pauses of one subject, ended or not: of an action's account, key or host. */
const ofSubject = (kind: Pause["kind"]) =>
  read({ accountId: "text", actionId: "text" }, ({ db, tables: { actions, pauses } }, arg) => {
    const isAction = and(eq(actions.id, arg.actionId), eq(actions.accountId, arg.accountId));
    const subject = {
      account: "",
      sign_up: arg.accountId,
      key: db.select({ keyId: actions.keyId }).from(actions).where(isAction),
      host: db.select({ host: actions.host }).from(actions).where(isAction),
    }[kind];
    return db
      .select()
      .from(pauses)
      .where(and(eq(pauses.accountId, arg.accountId), eq(pauses.kind, kind), eq(pauses.subject, subject)))
      .orderBy(desc(pauses.createdAt))
      .limit(TIMELINE_PAUSES_MAX);
  });

const OF_ACTION = (["account", "key", "host", "sign_up"] as const).map(ofSubject);

/** `lanes` are those of the pending actions. */
export function createPauseStore(
  { sql: reader, writer }: Pick<StoreContext, "sql" | "writer">,
  lanes: Lanes,
): PauseStore {
  return {
    find: (accountId, id) => FIND.get(reader, { accountId, id }),
    pause: (pause, audit) => writer.run(commands.add, { pause, audit }),
    end: (accountId, id, how) => writer.run(commands.end, { accountId, id, ...how }),
    inForce: (accountId) => findInForce(reader, accountId),
    async ofAction(accountId, actionId) {
      const all = OF_ACTION.map((each) => each.all(reader, { accountId, actionId }));
      return oldestFirst((await Promise.all(all)).flat()).slice(-TIMELINE_PAUSES_MAX);
    },
    unfinished: (accountId, keyId, limit) => findUnfinished({ reader, lanes }, { accountId, keyId }, limit),
    prune: (until) => writer.run(commands.prune, { until }),
  };
}

async function findInForce(reader: Reader, accountId: string | null): Promise<readonly Pause[]> {
  return oldestFirst(
    await (accountId === null ? IN_FORCE.all(reader, {}) : OF_ACCOUNT_IN_FORCE.all(reader, { accountId })),
  );
}

function oldestFirst(found: readonly Pause[]): readonly Pause[] {
  return found.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
}

/** Ids of the actions of a key. */
const ofKey = (status: "awaiting_approval" | "active") =>
  read({ accountId: "text", keyId: "text", limit: "number" }, ({ db, tables: { actions } }, arg) => {
    const isOfKey = and(eq(actions.accountId, arg.accountId), eq(actions.keyId, arg.keyId));
    return db
      .select({ id: actions.id })
      .from(actions)
      .where(and(eq(actions.status, status), isOfKey))
      .limit(arg.limit);
  });

const HELD = ofKey("awaiting_approval");
const SENDING = ofKey("active");

type Lanes = Queue<Action>["lanes"];

/** Lanes per read. */
const LANES = 128;

/** By lanes, since no index of pending actions begins with the key: every action would pay for it. */
async function findUnfinished(
  { reader, lanes }: { readonly reader: Reader; readonly lanes: Lanes },
  key: { readonly accountId: string; readonly keyId: string },
  limit: number,
) {
  // Read first: an action that becomes pending again meanwhile is found below.
  const sending = await SENDING.all(reader, { ...key, limit: 1 });
  const ids = (await HELD.all(reader, { ...key, limit })).map(({ id }) => id);
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
