import { sql, type SQL } from "drizzle-orm";
import { arrayOf, isOneOf } from "../sql/dialect.ts";
import { type Args, bareNames, prepare } from "../sql/query.ts";
import { type ClaimArgs, headOf, type QueueStatements, type QueueTable } from "../sql/queue.ts";

/** The parts of the lanes, a JSON list each. */
type LaneArgs = Args<"accounts" | "hosts" | "keys" | "limits">;

/**
 * The statements of a queue for PostgreSQL. A claim is one statement: it locks of each lane the earliest due rows and
 * skips those that another node has locked, so that nodes neither wait for each other nor claim a row twice.
 */
export function postgresQueue(table: QueueTable): QueueStatements {
  const { bytes, set } = table;
  const [name, pending, fence] = [table.name, table.pending, table.fence].map((text) => sql.raw(text));
  const columns = sql`${bareNames(...Object.values(table.columns))}, ${bytes} as bytes`;
  const isPending = (arg: Args<"refused" | "now">) => sql`${pending} and ${table.isLive(sql`${arg.now}`)}
    and account_id = lane.account_id and host = lane.host and key_id = lane.key_id
    and not (${isOneOf(table.columns.id, arg.refused)})`;
  // Not what a transaction wrote that began to write after this one: in the timeline the claim would come before it.
  const isBefore = sql`age(xmin) >= 0`;
  const isOpen = sql`not ${table.isPaused({ accountId: sql`lane.account_id`, host: sql`lane.host`, keyId: sql`lane.key_id` })}`;
  const named = ({ accounts, hosts, keys, limits }: LaneArgs) => sql`unnest(${arrayOf(accounts)}, ${arrayOf(hosts)},
    ${arrayOf(keys)}, cast(${arrayOf(limits)} as bigint[])) with ordinality as lane(account_id, host, key_id, most, number)`;
  const chosen = (arg: ClaimArgs & LaneArgs, lock: SQL) => sql`locked as (
    select lane.number as lane, due.id, due.bytes, due.place,
      max(due.bytes) over (partition by lane.number order by due.place) as largest
    from ${named(arg)} cross join lateral (
      select found.id, found.bytes, row_number() over (order by found.due_at, found.id) as place from (
        select id, due_at, ${bytes} as bytes from ${name}
        where ${isPending(arg)} and due_at <= ${arg.now} and ${isBefore} order by due_at, id limit lane.most ${lock}) found) due
    where ${isOpen}
  ), chosen as (
    select id, turn from (
      select id, sum(bytes) over turns as total, row_number() over turns as turn from locked
      where largest <= ${arg.largest} window turns as (order by place, lane)) fitting
    where total <= ${arg.bytesMax} or turn = 1)`;
  const claim = (returned: SQL) =>
    prepare(
      (arg: ClaimArgs & LaneArgs) => sql`with ${chosen(arg, sql`for update skip locked`)}, claimed as (
        update ${name} set ${set(arg)} where id = any(array(select id from chosen)) returning *
      )${table.isTold ? started(arg) : sql``}
      select ${returned} from (select claimed.*, chosen.turn from claimed join chosen using (id)) won order by turn`,
    );
  const [claimRows, claimIds] = [claim(columns), claim(sql`id, ${fence} as fence`)];
  const choose = prepare(
    (arg: ClaimArgs & LaneArgs) => sql`with ${chosen(arg, sql``)} select id from chosen order by turn`,
  );
  const next = prepare(
    (
      arg: LaneArgs & Args<"refused" | "now">,
    ) => sql`select head.account_id, head.host, head.key_id, head.due_at, head.bytes
      from ${named(arg)} cross join lateral (
        select account_id, host, key_id, due_at, ${bytes} as bytes from ${name}
        where ${isPending(arg)} order by due_at, id limit 1) head
      where ${isOpen}`,
  );
  const { claimedBy, claimedWith } = claimedOf(table);
  const lanes = lanesOf(table);
  return {
    claim(values, returned) {
      const all = { ...values, ...lanesIn(values) };
      return [(returned === "rows" ? claimRows : claimIds).bind(all), next.bind(all)];
    },
    choose: (values) => choose.bind({ ...values, ...lanesIn(values) }),
    claimedBy: (values) => claimedBy.bind(values),
    claimedWith: (values) => claimedWith.bind(values),
    async lanes(reader, from, limit) {
      const { accountId, host, keyId } = from ?? { accountId: "", host: "", keyId: "" };
      return (await lanes.readRaw(reader, { accountId, host, keyId, limit })).map(headOf);
    },
  };
}

/** A row of the timeline for each action that is claimed. */
function started({ now }: ClaimArgs): SQL {
  return sql`, started as (
    insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
    select id, account_id, ${now}, run, revision, 'started', 'active', '{}' from claimed)`;
}

/** The rows under a claim. */
function claimedOf(table: QueueTable) {
  const [name, active] = [sql.raw(table.name), sql.raw(table.active)];
  const columns = sql`${bareNames(...Object.values(table.columns))}, ${table.bytes} as bytes`;
  const claimedBy = prepare(
    (arg: Args<"accountIds" | "leaseUntil" | "by">) => sql`select ${columns} from ${name} where ${active}
      and claimed_by = ${arg.by} and ${isOneOf(table.columns.accountId, arg.accountIds)} and lease_until = ${arg.leaseUntil}`,
  );
  const claimedWith = prepare(
    (arg: Args<"ids" | "leaseUntil">) => sql`select ${columns} from ${name} where ${active}
      and ${isOneOf(table.columns.id, arg.ids)} and lease_until = ${arg.leaseUntil}`,
  );
  return { claimedBy, claimedWith };
}

/** Steps from the head of each lane to the next by the index of the queue, without reading the rows between. */
function lanesOf(table: QueueTable) {
  const [name, pending] = [sql.raw(table.name), sql.raw(table.pending)];
  const after = sql`(account_id, host, key_id)`;
  const order = sql`order by account_id, host, key_id, due_at limit 1`;
  return prepare(
    (
      arg: Args<"accountId" | "host" | "keyId" | "limit">,
    ) => sql`with recursive lane (account_id, host, key_id, due_at, n) as (
      (select account_id, host, key_id, due_at, 1 from ${name}
        where ${pending} and ${after} > (${arg.accountId}, ${arg.host}, ${arg.keyId}) ${order})
      union all
      select head.account_id, head.host, head.key_id, head.due_at, lane.n + 1
      from lane cross join lateral (
        select account_id, host, key_id, due_at from ${name}
        where ${pending} and ${after} > (lane.account_id, lane.host, lane.key_id) ${order}) head
      where lane.n < ${arg.limit})
    select account_id, host, key_id, due_at from lane`,
  );
}

/** Each lane once: one that is named twice would give its rows twice. */
function lanesIn({ lanes }: { readonly lanes: string }) {
  // Safe: `valuesOfClaim` writes them.
  const named = JSON.parse(lanes) as readonly (readonly [string, string, string, number])[];
  const once = [...new Map(named.map((lane) => [lane.slice(0, 3).join("\0"), lane])).values()];
  return {
    accounts: JSON.stringify(once.map(([accountId]) => accountId)),
    hosts: JSON.stringify(once.map(([, host]) => host)),
    keys: JSON.stringify(once.map(([, , keyId]) => keyId)),
    limits: JSON.stringify(once.map(([, , , limit]) => limit)),
  };
}
