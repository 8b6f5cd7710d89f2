/**
 * Creates actions and writes their changes. These are most writes, so the commands run for many calls at once, over rows that are lists of
 * values: `sql/actions.ts` makes them. `key-limits.ts`, `rules.ts` and `grants.ts` count what limits a create.
 */
import { and, desc, eq, gt, inArray, isNotNull, like, ne, or, sql } from "drizzle-orm";
import type { RuleCount, StoredCount } from "../../src/core/account-rules.ts";
import type { ActionPolicy } from "../../src/core/action-policy.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { atUse } from "../../src/core/grant.ts";
import { ATTEMPTS_KEPT, DEDUPE_WINDOW_MS } from "../../src/core/limits.ts";
import { pausingSubjects } from "../../src/core/pause.ts";
import type { RejectionEntry } from "../../src/core/rejections.ts";
import type { CreateRefusal, Decider } from "../../src/core/store.ts";
import {
  accountLock,
  countLock,
  createLock,
  grantLock,
  keyLock,
  limitLock,
  type Lock,
  pauseLocks,
} from "../sql/locks.ts";
import { get, hasValues, membersIn, prepare, qb } from "../sql/read.ts";
import {
  actionKeys,
  actionMetadata,
  actions,
  apiKeys,
  approvalLinks,
  attempts,
  audit as auditLog,
  LATE_SUCCESS,
  members,
  outbox,
  timeline,
} from "../tables.ts";
import {
  findEach,
  insertList,
  listCommand,
  type Tx,
  updateEach,
  updateList,
  upsertList,
  type Values,
} from "./command.ts";
import { addGrants, type GrantCounts, readGrants, type UsedGrant, useGrant, writeUses } from "./grants.ts";
import { type CountedWrite, type KeyCounts, readKeyCounts } from "./key-limits.ts";
import { findPaused, isHeldBack } from "./pauses.ts";
import { type GoesBeyond, countPlace, readCounts, readRulesVersions, type RuleCounts } from "./rules.ts";

/** The columns that every change of an action writes. */
export const STATE = [
  ...(["revision", "status", "run", "attempts", "dueAt", "leaseUntil", "startedAt", "finishedAt"] as const),
  ...(["approvedAt", "approvedBy", "approvedDigest", "scheduledAt"] as const),
] as const;

/** The columns of a result. Every result has a code or a source. */
export const RESULT = [
  ...(["lastError", "errorSource", "responseCode", "responseBody", "responseTruncated", "durationMs"] as const),
  "responseHeaders",
] as const;

/** A new action has no result. */
export const ACTIONS = insertList(actions, [...RESULT, "lateResult"]);
export const EVENTS = insertList(timeline, ["seq"]);
export const NOTIFICATIONS = insertList(outbox, ["leaseUntil", "sentAt", "lastError", "claimedBy"]);
export const AUDIT_ENTRIES = insertList(auditLog, ["seq"]);
const METADATA = insertList(actionMetadata);
/** A key that named an action that is no longer live names the new one. */
const KEYS = upsertList(actionKeys, ["accountId", "kind", "key"]);

/** Replaces a row that somebody has added to the database. */
export const RESPONSES = upsertList(attempts, ["actionId", "run", "attempt"]);

/** What a claim in the commit of its create changes of an action. */
export const CLAIMED = ["revision", "status", "attempts", "dueAt", "leaseUntil", "startedAt", "claimedBy"] as const;

const CLAIMED_PLACES = CLAIMED.map((name) => ACTIONS.columns.indexOf(name));

/** The timeline and outbox rows of a change. */
export interface SideRows {
  readonly events: readonly Values[];
  readonly notifications: readonly Values[];
}

/** An idempotency or dedupe key. */
export interface KeyName {
  readonly kind: KeyKind;
  readonly key: string;
}

export interface NewAction extends CountedWrite, SideRows {
  readonly host: string;
  readonly row: Values;
  /** The values of `CLAIMED` and the event, for a claim in the same commit; null: no claim. */
  readonly claim: { readonly values: Values; readonly event: Values } | null;
  readonly keys: readonly KeyName[];
  readonly metadata: readonly Values[];
  readonly isHeld: boolean;
  /** A rule refuses it, so it may only match an existing action. */
  readonly isRefused: boolean;
  /** The version of the rules by which it was decided. */
  readonly rulesVersion: string;
  /** The grant that lets it pass. */
  readonly grant: UsedGrant | null;
  /** What it adds to the counts of rules. */
  readonly counts: readonly RuleCount[];
  /** The count that it goes beyond; only the first such action adds `firstNotifications`. */
  readonly beyond: GoesBeyond | null;
  readonly firstNotifications: readonly Values[];
}

type CreateOutcome =
  /** `isClaimed` is false if a pause covers it. `uses`: how often the grant that lets it pass was used. */
  | { readonly kind: "created"; readonly isClaimed: boolean; readonly uses: number | null }
  | { readonly kind: "matched"; readonly by: KeyKind; readonly id: string }
  | { readonly kind: "rejected_before"; readonly request: RejectionEntry }
  | Exclude<CreateRefusal, { readonly kind: "rejected_before" | "unreadable" }>;

/**
 * Creates each action unless one of its keys names a live one, a limit is reached or the request was rejected. Of equal creates
 * that race, in one commit or in several, the first is created and the others match it. If a create matches by `dedupe`, its
 * idempotency key is stored, so that a repeat finds the same action even after that has failed.
 */
export const createActions = listCommand(
  async (tx, list: readonly NewAction[]): Promise<readonly CreateOutcome[]> => {
    const uses = list.flatMap(({ grant }) => grant ?? []);
    const [holders, paused, keyCounts, rulesVersions, grants, ruleCounts] = await Promise.all([
      readHolders(tx, list),
      findPaused(tx.lists, list.filter(({ claim }) => claim !== null).flatMap(pausingSubjects)),
      readKeyCounts(tx, list),
      readRulesVersions(tx, new Set(list.map(({ accountId }) => accountId))),
      readGrants(tx, uses),
      readCounts(tx, list.flatMap(countsIn)),
    ]);
    const known = { holders, paused, keyCounts, rulesVersions, grants, ruleCounts };
    const auditEntries: Values[] = [];
    const firstBeyond = new Set<NewAction>();
    const created: { readonly one: NewAction; readonly isClaimed: boolean; readonly row: Values }[] = [];
    const keys: Values[] = [];
    const outcomes = list.map((one): CreateOutcome => {
      const outcome = decide(one, known, auditEntries);
      const isCreated = outcome.kind === "created";
      if (isCreated) created.push({ one, isClaimed: outcome.isClaimed, row: createdRow(one, outcome) });
      if (isCreated && one.beyond !== null && ruleCounts.markReported(one.beyond.count)) {
        firstBeyond.add(one);
        auditEntries.push(one.beyond.audit);
      }
      const isBound = outcome.kind === "matched" && outcome.by === "dedupe";
      for (const key of one.keys) {
        if (!isCreated && !(isBound && key.kind === "idempotency")) continue;
        const actionId = isBound ? outcome.id : one.id;
        holders.set(countKey(one, key), actionId);
        keys.push([one.accountId, key.kind, key.key, actionId, one.at]);
      }
      return outcome;
    });
    const { lists } = tx;
    const rows = created.map(({ row }) => row);
    await lists.insert(ACTIONS, rows);
    await lists.insert(KEYS, newestRows(keys, 3));
    const metadata = created.flatMap(({ one }) => one.metadata);
    await lists.insert(METADATA, metadata);
    const events = created.flatMap(({ one, isClaimed }) =>
      isClaimed && one.claim !== null ? [...one.events, one.claim.event] : one.events,
    );
    await lists.insert(EVENTS, events);
    const notifications = created.flatMap(({ one }) =>
      firstBeyond.has(one) ? [...one.notifications, ...one.firstNotifications] : one.notifications,
    );
    await lists.insert(NOTIFICATIONS, notifications);
    await writeUses(tx, grants);
    await ruleCounts.write(tx);
    await lists.insert(AUDIT_ENTRIES, auditEntries);
    await keyCounts.write(
      tx,
      created.map(({ one }) => one),
    );
    return outcomes;
  },
  {
    locks: ({ keys, claim, request, budget, isHeld, grant, ...one }) => {
      const { accountId, keyId } = one;
      return [
        createLock(accountId),
        ...(grant === null ? [] : [grantLock(grant.id)]),
        ...countsIn(one).map(({ ruleId, subject }) => countLock(ruleId, subject)),
        ...keys.map(({ kind, key }) => keyLock(accountId, kind, key)),
        ...(isHeld || request !== null || budget !== null ? [limitLock(accountId, keyId)] : []),
        ...(claim === null ? [] : pauseLocks([accountId])),
      ];
    },
    size: ({ row, events, notifications, counts: added }) => ({
      rows: 2 + events.length + notifications.length + added.length,
      bytes: countBytes([row, ...notifications]),
    }),
    turn: "create",
  },
);

function countsIn({ counts: added, beyond }: Pick<NewAction, "counts" | "beyond">): readonly RuleCount[] {
  return beyond === null ? added : [...added, beyond.count];
}

/** What decides on a list of creates. Each one adds to it, which counts for those that follow. */
interface Known {
  /** The live action that a key names. */
  readonly holders: ReadonlyMap<string, string>;
  readonly paused: ReadonlySet<string>;
  readonly keyCounts: KeyCounts;
  readonly rulesVersions: ReadonlyMap<string, string>;
  readonly grants: GrantCounts;
  readonly ruleCounts: RuleCounts;
}

/** Decides on a create and, if it is created, counts it for those that follow. Adds uses of grants to `auditEntries`. */
function decide(one: NewAction, known: Known, auditEntries: Values[]): CreateOutcome {
  for (const kind of ["idempotency", "dedupe"] as const) {
    const key = one.keys.find((each) => each.kind === kind);
    const holder = key === undefined ? undefined : known.holders.get(countKey(one, key));
    if (holder !== undefined) return { kind: "matched", by: kind, id: holder };
  }
  if (one.isRefused) return { kind: "refused" };
  if (one.rulesVersion !== known.rulesVersions.get(one.accountId)) return { kind: "rules_changed" };
  const refusal = known.keyCounts.findRefusal(one);
  if (refusal !== null) return refusal;
  const beyond = known.ruleCounts.beyond(one.counts);
  if (beyond.length > 0) return { kind: "beyond", counts: beyond };
  const uses = one.grant === null ? null : useGrant(known.grants, one.grant);
  if (one.grant !== null) {
    if (uses === null) return { kind: "grant_over" };
    const { audit, detail } = one.grant;
    auditEntries.push([...audit, JSON.stringify({ ...detail, used: uses })]);
  }
  known.ruleCounts.add(one.counts);
  known.keyCounts.add(one);
  return { kind: "created", isClaimed: one.claim !== null && !isHeldBack(known.paused, pausingSubjects(one)), uses };
}

/** When the window in which a key names its action began: exclusive, in milliseconds. */
export function keyWindowStart(nowMs: number): number {
  return nowMs - DEDUPE_WINDOW_MS;
}

/** The action that a key names. `src/core/dedupe.ts` has the same rule for one action. */
export const HOLDER = prepare(
  { accountId: "text", kind: "text", key: "text", windowStart: "number" },
  ({ windowStart, ...key }) => {
    const isKey = and(hasValues(actionKeys, key), gt(actionKeys.createdAt, windowStart));
    const isLive = or(
      eq(actionKeys.kind, "idempotency"),
      ne(actions.status, "failed"),
      like(actions.lateResult, LATE_SUCCESS),
    );
    const keys = qb.select({ id: actions.id, status: actions.status }).from(actionKeys);
    return keys.innerJoin(actions, eq(actions.id, actionKeys.actionId)).where(and(isKey, isLive));
  },
);

/** Reads which live actions have the keys of these writes. */
async function readHolders(
  { lists }: Tx,
  list: readonly Pick<NewAction, "accountId" | "at" | "keys">[],
): Promise<Map<string, string>> {
  const keys = list.flatMap(({ accountId, keys: own, at }) =>
    own.map(({ kind, key }) => ({ accountId, kind, key, windowStart: keyWindowStart(at) })),
  );
  const holders = await findEach(lists, HOLDER, keys, (key) => countKey(key, key));
  return new Map([...holders].flatMap(([name, rows]) => rows.map(({ id }) => [name, id] as const)));
}

const GUARD = ["id", "revision"] as const;

/** What a change can write: the state, also the result, or everything that can change. Guarded by the revision. */
export const UPDATES = {
  state: updateList(actions, STATE, GUARD),
  result: updateList(actions, [...STATE, ...RESULT], GUARD),
  all: updateList(actions, [...STATE, ...RESULT, "lateResult", "approve", "policy", "counted"], GUARD),
};

type LinkHolder = Extract<Decider, { readonly of: "link" }>;

export interface ActionWrite extends CountedWrite, SideRows {
  readonly run: number;
  /** The revision on which it was decided. */
  readonly expected: number;
  readonly written: keyof typeof UPDATES;
  /** The values of these columns, then the id and `expected`. */
  readonly row: Values;
  /** The dedupe key that a new run takes again, unless it names another live action, and when its window began. */
  readonly retaken: { readonly key: string; readonly createdAt: number } | null;
  readonly response: Values | null;
  /** Whether there may be more stored responses than `ATTEMPTS_KEPT`. */
  readonly trims: boolean;
  readonly audit: Values | null;
  /** The values of `GRANTS`. */
  readonly grant: Values | null;
  /** What a new run adds to the counts of rules. */
  readonly counts: readonly RuleCount[];
  /** In place of a date, which a thread can't get. */
  readonly decider: Exclude<Decider, LinkHolder> | (Omit<LinkHolder, "expiresAt"> & { readonly endsAt: number }) | null;
  /** Which counts its end gives back if no earlier attempt of the run may have reached the target. */
  readonly givesBack: readonly StoredCount[];
}

/** Writes changes. Returns for each whether it was written: not if the revision differs, or a limit or key forbids it. */
export const apply = listCommand(
  async (tx, list: readonly ActionWrite[]): Promise<readonly boolean[]> => {
    const [mayDecide, holders, keyCounts, ruleCounts] = await Promise.all([
      readDeciders(tx, list),
      readHolders(
        tx,
        list.flatMap(({ accountId, at, retaken }) =>
          retaken === null ? [] : [{ accountId, at, keys: [{ kind: "dedupe", key: retaken.key }] }],
        ),
      ),
      readKeyCounts(tx, list),
      readCounts(
        tx,
        list.flatMap(({ counts: added, givesBack }) => [...added, ...givesBack.map(countPlace)]),
      ),
    ]);
    const allowed = list.filter((one) => {
      if (!mayDecide(one)) return false;
      const key = one.retaken === null ? null : countKey(one, { kind: "dedupe", key: one.retaken.key });
      const isTaken = key !== null && (holders.get(key) ?? one.id) !== one.id;
      if (isTaken || keyCounts.findRefusal(one) !== null || ruleCounts.beyond(one.counts).length > 0) return false;
      keyCounts.add(one);
      ruleCounts.add(one.counts);
      if (key !== null) holders.set(key, one.id);
      return true;
    });
    const written = new Set<ActionWrite>();
    for (const round of splitRounds(allowed, ({ id }) => id)) {
      for (const kind of ["state", "result", "all"] as const) {
        const some = round.filter((one) => one.written === kind);
        for (const one of await updateEach(tx.lists, UPDATES[kind], some, ({ row }) => row)) written.add(one);
      }
    }
    for (const one of allowed) if (!written.has(one)) ruleCounts.takeBack(one.counts);
    const inOrder = list.filter((one) => written.has(one));
    await giveBack(tx, inOrder, ruleCounts);
    await ruleCounts.write(tx);
    await writeBeside(tx, inOrder, keyCounts);
    return list.map((one) => written.has(one));
  },
  {
    locks: ({ accountId, keyId, retaken, request, budget, ...one }): readonly Lock[] => [
      ...(one.grant === null ? [] : [accountLock(accountId)]),
      ...(one.decider === null ? [] : [createLock(accountId)]),
      ...one.counts.map(({ ruleId, subject }) => countLock(ruleId, subject)),
      ...one.givesBack.map(([ruleId, subject]) => countLock(ruleId, subject)),
      ...(retaken === null ? [] : [keyLock(accountId, "dedupe", retaken.key)]),
      ...(request === null ? [] : [limitLock(accountId, keyId)]),
      ...(budget === null ? [] : [limitLock(accountId, budget.keyId)]),
    ],
    size: ({ row, events, notifications, response }) => ({
      rows: 2 + events.length + notifications.length,
      bytes: countBytes([row, ...notifications, ...(response === null ? [] : [response])]),
    }),
  },
);

const ROLE_OF_PERSON = prepare({ accountId: "text", personId: "text" }, (arg) =>
  qb.select({ role: members.role }).from(members).where(hasValues(members, arg)),
);

const REVOKED_KEY = prepare({ id: "text" }, (arg) =>
  qb
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(and(eq(apiKeys.id, arg.id), isNotNull(apiKeys.revokedAt))),
);

const LINK_WITH_END = prepare({ actionId: "text", run: "number", decision: "text", endsAt: "number" }, (arg) => {
  const { endsAt, ...link } = arg;
  const isIt = and(hasValues(approvalLinks, link), eq(approvalLinks.expiresAt, endsAt));
  return qb.select({ decision: approvalLinks.decision }).from(approvalLinks).where(isIt);
});

/** Tells whether whoever decided may still do so. Reads nothing for changes that nobody decided. */
async function readDeciders({ lists }: Tx, list: readonly ActionWrite[]): Promise<(one: ActionWrite) => boolean> {
  const people = list.flatMap(({ accountId, decider }) =>
    decider?.of === "person" ? [{ accountId, personId: decider.personId }] : [],
  );
  const keys = list.flatMap(({ decider }) => (decider?.of === "key" ? [{ id: decider.keyId }] : []));
  const links = list.flatMap(({ id: actionId, run, decider }) =>
    decider?.of === "link" ? [{ actionId, run, decision: decider.decision, endsAt: decider.endsAt }] : [],
  );
  const personKey = (one: (typeof people)[number]) => `${one.accountId} ${one.personId}`;
  const linkName = (one: Readonly<Record<"actionId" | "decision", string>>) => `${one.actionId} ${one.decision}`;
  const [roles, revoked, open] = await Promise.all([
    findEach(lists, ROLE_OF_PERSON, people, personKey),
    findEach(lists, REVOKED_KEY, keys, ({ id }) => id),
    findEach(lists, LINK_WITH_END, links, linkName),
  ]);
  return ({ accountId, id: actionId, decider }) => {
    if (decider === null) return true;
    if (decider.of === "key") return (revoked.get(decider.keyId) ?? []).length === 0;
    if (decider.of === "link") return (open.get(linkName({ actionId, decision: decider.decision })) ?? []).length > 0;
    const [member] = roles.get(personKey({ accountId, personId: decider.personId })) ?? [];
    return member !== undefined && decider.roles.includes(member.role);
  };
}

const ATTEMPTS_OF_RUN = prepare({ id: "text", run: "number" }, ({ id, run }) => {
  const isOfRun = and(hasValues(timeline, { actionId: id, run }), inArray(timeline.type, [...ATTEMPT_ROWS]));
  return qb.select({ detail: timeline.detail }).from(timeline).where(isOfRun);
});

const ATTEMPT_ROWS = ["attempt", "late_result", "late"] as const;

/** Gives back what ended runs have added to counts of rules. */
async function giveBack(tx: Tx, list: readonly ActionWrite[], ruleCounts: RuleCounts): Promise<void> {
  const some = list.filter((one) => one.givesBack.length > 0);
  const ofRuns = await tx.lists.find(
    ATTEMPTS_OF_RUN,
    some.map(({ id, run }) => ({ id, run })),
  );
  for (const [at, one] of some.entries()) {
    // An attempt whose row can't be read may have reached the target.
    const isSent = ofRuns[at]?.some(({ detail }) => membersIn(detail)["outcome"] !== "not_sent");
    if (isSent !== true) for (const each of one.givesBack) ruleCounts.giveBack(each);
  }
}

const EXTEND = updateList(actions, ["leaseUntil"], ["id", "revision", "status"]);

/** Extends the leases of attempts that are still in flight. Returns for each whether it was. Times in milliseconds. */
export const extendLease = listCommand(
  (tx, list: readonly { readonly id: string; readonly revision: number; readonly leaseUntil: number }[]) =>
    tx.lists.update(
      EXTEND,
      list.map(({ id, revision, leaseUntil }) => [leaseUntil, id, revision, "active"]),
    ),
  { locks: () => [], size: () => ({ rows: 1, bytes: 0 }) },
);

/** Writes the other rows of the changes that were written. */
async function writeBeside(tx: Tx, list: readonly ActionWrite[], keyCounts: KeyCounts): Promise<void> {
  const { lists } = tx;
  const keys = list.flatMap(({ id, accountId, retaken }) =>
    retaken === null ? [] : [[accountId, "dedupe", retaken.key, id, retaken.createdAt]],
  );
  await lists.insert(KEYS, keys);
  const events = list.flatMap((one) => one.events);
  await lists.insert(EVENTS, events);
  const notifications = list.flatMap((one) => one.notifications);
  await lists.insert(NOTIFICATIONS, notifications);
  const responses = list.map(({ response }) => response).filter((row) => row !== null);
  await lists.insert(RESPONSES, responses);
  const auditEntries = list.map(({ audit }) => audit).filter((row) => row !== null);
  await lists.insert(AUDIT_ENTRIES, auditEntries);
  await keyCounts.write(tx, list);
  const grants = list.map(({ grant }) => grant).filter((row) => row !== null);
  await addGrants(tx, grants);
  for (const { id, trims } of list) if (trims) await trimResponses(tx, id);
}

/** Deletes all but the newest responses of an action. */
async function trimResponses(tx: Tx, actionId: string): Promise<void> {
  const { run, attempt } = attempts;
  const isOfAction = eq(attempts.actionId, actionId);
  const newestFirst = qb.select({ run, attempt }).from(attempts).where(isOfAction).orderBy(desc(run), desc(attempt));
  const oldest = await get(tx, newestFirst.limit(1).offset(ATTEMPTS_KEPT - 1));
  if (oldest === null) return;
  const isOlder = sql`(${run}, ${attempt}) < (${oldest.run}, ${oldest.attempt})`;
  await tx.db.delete(attempts).where(and(isOfAction, isOlder));
}

/** The row of a new action, with its claim and the uses of its grant. */
function createdRow(
  { row, claim, grant }: NewAction,
  { isClaimed, uses }: Extract<CreateOutcome, { readonly kind: "created" }>,
): Values {
  if (!isClaimed && uses === null) return row;
  const stored = [...row];
  if (isClaimed) for (const [n, place] of CLAIMED_PLACES.entries()) stored[place] = claim?.values[n] ?? null;
  const policy = row[POLICY_PLACE];
  if (uses !== null && typeof policy === "string") {
    // Safe: this is the text of a policy.
    const policyAtUse = atUse(JSON.parse(policy) as ActionPolicy, uses, Number(grant?.detail["calls"]));
    stored[POLICY_PLACE] = JSON.stringify(policyAtUse);
  }
  return stored;
}

const POLICY_PLACE = ACTIONS.columns.indexOf("policy");

/** Keeps the last of several rows with the same first values, since one statement can't write a row twice. */
function newestRows(rows: readonly Values[], values: number): readonly Values[] {
  return [...new Map(rows.map((row) => [row.slice(0, values).join("\0"), row])).values()];
}

/** Splits items into rounds without equal names, since one PostgreSQL statement updates a row only once. */
function splitRounds<Item>(items: readonly Item[], name: (item: Item) => unknown): readonly (readonly Item[])[] {
  const rounds: Item[][] = [];
  for (const same of Map.groupBy(items, name).values()) {
    for (const [n, item] of same.entries()) (rounds[n] ??= []).push(item);
  }
  return rounds;
}

function countKey(
  { accountId }: Pick<CountedWrite, "accountId">,
  { kind, key }: Readonly<Record<"kind" | "key", string>>,
): string {
  return `${accountId} ${kind} ${key}`;
}

function countBytes(rows: readonly Values[]): number {
  let bytes = 0;
  for (const row of rows) for (const value of row) bytes += typeof value === "string" ? value.length : 8;
  return bytes;
}
