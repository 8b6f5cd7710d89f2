/** The claim of PostgreSQL: one statement for each queue. `commands/claims.ts` has SQLite's. */
import { escapeText, named, type Query, unseen } from "./queries.ts";
import type { NotificationKind } from "../../src/core/notification-events.ts";
import type { ClaimResult, QueueClaim, QueueName } from "../commands/command.ts";

/** Runs a statement of the transaction. Rows are lists of values. */
type Run = (query: Query) => Promise<readonly (readonly unknown[])[]>;

/**
 * Sends all claims at once. For each, one statement claims the earliest due rows of each lane, skipping rows that another node
 * has locked, so that nodes neither wait for each other nor claim a row twice. A second statement reads what stays pending.
 */
export async function claimAll(run: Run, claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]> {
  return Promise.all(
    claims.map(async ({ queue, lanes, bytesMax, rowBytesMax, now, leaseUntil, by }) => {
      const { claim, next } = STATEMENTS[queue];
      const arrays = [
        lanes.map(({ accountId }) => escapeText(accountId)),
        lanes.map(({ host }) => escapeText(host)),
        lanes.map(({ keyId }) => escapeText(keyId)),
        lanes.map(({ limit }) => String(limit)),
        lanes.map(({ dueFromMs = Number.MIN_SAFE_INTEGER }) => String(dueFromMs)),
      ];
      const [claimed, left] = await Promise.all([
        run({ ...claim, values: [...arrays, now, bytesMax, rowBytesMax, leaseUntil, by] }),
        run({ ...next, values: [...arrays, now] }),
      ]);
      return {
        rows: claimed.map(([id, fence]) => ({ id: String(id), fence: Number(fence) })),
        next: left.map(([accountId, host, keyId, dueAt, bytes]) => ({
          accountId: String(accountId),
          host: String(host),
          keyId: String(keyId),
          dueAt: Number(dueAt),
          bytes: Number(bytes),
        })),
      };
    }),
  );
}

interface QueueParts {
  readonly table: string;
  readonly isPending: string;
  readonly isLive: string;
  readonly fence: string;
  readonly bytes: string;
  /** The kinds of pauses that hold back a lane, with their subjects. */
  readonly pauses: readonly (readonly [kind: string, subject: string])[];
  readonly set: string;
  /** Whether each claim adds a row to the timeline. */
  readonly addsEvent: boolean;
}

const SIGN_UP_STOP = ["sign_up", "lane.account_id"] as const;

const ACTIONS: QueueParts = {
  table: "actions",
  isPending: "status = 'pending'",
  isLive: "(expires_at is null or expires_at > $6::bigint)",
  fence: "revision",
  bytes: `coalesce(octet_length(body), 0)::bigint + coalesce(octet_length(sealed_headers), 0) + coalesce(octet_length(extras), 0)`,
  pauses: [["account", "''"], ["key", "lane.key_id"], ["host", "lane.host"], SIGN_UP_STOP],
  set: `status = 'active', revision = revision + 1, attempts = attempts + 1, due_at = null, lease_until = $9::bigint,
    claimed_by = $10::text, started_at = coalesce(started_at, $6::bigint)`,
  addsEvent: true,
};

function ofKind(kind: NotificationKind): QueueParts {
  return {
    table: "outbox",
    isPending: `status = 'pending' and kind = '${kind}'`,
    // Always true; it is here because the statement must contain every argument.
    isLive: "$6::bigint is not null",
    fence: "attempts",
    bytes: "coalesce(octet_length(payload), 0)::bigint",
    pauses: [SIGN_UP_STOP],
    set: "status = 'active', attempts = attempts + 1, due_at = null, lease_until = $9::bigint, claimed_by = $10::text",
    addsEvent: false,
  };
}

type Text = ReturnType<typeof named>;

const STATEMENTS: Readonly<Record<QueueName, { readonly claim: Text; readonly next: Text }>> = {
  action: claimTexts(ACTIONS),
  callback: claimTexts(ofKind("callback")),
  mail: claimTexts(ofKind("mail")),
  message: claimTexts(ofKind("message")),
};

function claimTexts({ table, isPending, isLive, fence, bytes, pauses, set, addsEvent }: QueueParts) {
  const lanes = `unnest(${["$1::text[]", "$2::text[]", "$3::text[]", "$4::bigint[]", "$5::bigint[]"].map(unseen).join(", ")})
    with ordinality as lane(account_id, host, key_id, most, due_from, number)`;
  // A row with a number beyond those that JavaScript holds exactly was altered, and stays as it is.
  const isOfLane = `${isPending} and ${isLive} and ${fence} < ${Number.MAX_SAFE_INTEGER}
    and account_id = lane.account_id and host = lane.host and key_id = lane.key_id and due_at >= lane.due_from`;
  // `offset 0` keeps each look-up apart. A joined plan, made while few pauses were in force, would read all of them for each lane.
  const inForce = pauses.map(
    ([kind, subject]) => `select 1 from pauses where account_id = lane.account_id and kind = '${kind}'
      and subject = ${subject} and ended_at is null offset 0`,
  );
  const isOpen = inForce.map((pause) => `not exists (${pause})`).join(" and ");
  const event = `, event as (
    insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
    select id, account_id, $6::bigint, run, revision, 'started', 'active', '{}' from claimed)`;
  // Skip rows of transactions that began to write after this one (`xmin`): in the timeline, the claim would come before them.
  const claim = `with locked as (
    select lane.number as lane, due.id, due.bytes, due.place,
      max(due.bytes) over (partition by lane.number order by due.place) as largest
    from ${lanes} cross join lateral (
      select found.id, found.bytes, row_number() over (order by found.due_at, found.id) as place from (
        select id, due_at, ${bytes} as bytes from ${table}
        where ${isOfLane} and due_at <= $6::bigint and age(xmin) >= 0
        order by due_at, id limit lane.most for update skip locked) found) due
    where ${isOpen}
  ), chosen as (
    select id, turn from (
      select id, sum(bytes) over turns as total, row_number() over turns as turn from locked
      where largest <= $8::bigint window turns as (order by place, lane)) fitting
    where total <= $7::bigint or turn = 1
  ), claimed as (
    update ${table} set ${set} where id = any(array(select id from chosen)) returning *
  )${addsEvent ? event : ""}
  select claimed.id, claimed.${fence} from claimed join chosen using (id) order by turn`;
  const next = `select head.* from ${lanes} cross join lateral (
      select account_id, host, key_id, due_at, ${bytes} as bytes from ${table}
      where ${isOfLane} order by due_at, id limit 1) head
    where ${isOpen}`;
  return { claim: named(claim), next: named(next) };
}
