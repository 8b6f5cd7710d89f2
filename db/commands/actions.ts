import { and, count, desc, eq, gt, inArray, like, ne, or, sql } from "drizzle-orm";
import type { ActionPolicy } from "../../src/core/action-policy.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { atUse } from "../../src/core/grant.ts";
import { ATTEMPTS_KEPT, DEDUPE_WINDOW_MS, HELD_PER_KEY_MAX } from "../../src/core/limits.ts";
import { accountLock, countLock, createLock, grantLock, keyLock, pauseLocks, limitLock } from "../sql/locks.ts";
import type { Lock } from "../sql/sql.ts";
import {
  mayRepeat,
  type RejectionCount,
  type RejectionEntry,
  rejectionWindowStart,
  saysWhy,
} from "../../src/core/rejections.ts";
import type { CreateRefusal, KeyBudget } from "../../src/core/store.ts";
import { LATE_SUCCESS } from "../tables.ts";
import { listCommand, type Tx } from "./command.ts";
import { findPaused, isHeldBack, pausesOf } from "./pauses.ts";
import {
  findEach,
  insertEach,
  insertList,
  updateEach,
  updateList,
  upsertList,
  type Values,
  valuesOf,
} from "./lists.ts";
import { addGrants, type GrantCounts, readGrants, type UsedGrant, useGrant, writeUses } from "./grants.ts";
import type { StoredCount, RuleCount } from "../../src/core/rule-count.ts";
import { type GoesBeyond, placeOf, readCounts, type RuleCounts } from "./rule-counts.ts";
import { readRulesVersions } from "./rules.ts";
import { get, hasValues, membersIn, prepare, qb } from "../sql/read.ts";
import { COUNT_OF_KEY, REJECTED, REPEATED, rejectionCount } from "./rejections.ts";
import {
  actionKeys,
  actionMetadata,
  actions,
  attempts,
  audit as auditLog,
  keyDays,
  outbox,
  rejections,
  timeline,
} from "../libsql/schema.ts";

/** The commands that create actions and write their changes: most writes, so they take lists. Rows are lists of values. */

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
const REJECTIONS = insertList(rejections, ["seq"]);

/** A key that named an action that is no longer live names the new one. */
const KEYS = upsertList(actionKeys, ["accountId", "kind", "key"]);

const SPENT = insertList(
  keyDays,
  [],
  "on conflict (key_id, day) do update set created = key_days.created + excluded.created",
);

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

interface Owner {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** The time of the change, in milliseconds. */
  readonly at: number;
}

export interface NewAction extends Owner, SideRows {
  readonly host: string;
  readonly row: Values;
  /** The values of `CLAIMED` and the event, for a claim in the same commit; null: no claim. */
  readonly claim: { readonly values: Values; readonly event: Values } | null;
  readonly keys: readonly KeyName[];
  readonly metadata: readonly Values[];
  readonly request: RejectionEntry | null;
  readonly budget: KeyBudget | null;
  /** Whether it awaits approval. A key may have only so many held actions. */
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
export const create = listCommand(
  async (tx, list: readonly NewAction[]): Promise<readonly CreateOutcome[]> => {
    const uses = list.flatMap(({ grant }) => grant ?? []);
    const [limits, rulesVersions, grants, ruleCounts] = await Promise.all([
      readKnown(tx, list),
      readRulesVersions(tx, new Set(list.map(({ accountId }) => accountId))),
      readGrants(tx, uses),
      readCounts(tx, list.flatMap(countsIn)),
    ]);
    const known = { ...limits, rulesVersions, grants, ruleCounts };
    const auditEntries: Values[] = [];
    const firstBeyond = new Set<NewAction>();
    const created: { readonly one: NewAction; readonly isClaimed: boolean; readonly row: Values }[] = [];
    const keys: Values[] = [];
    const outcomes = list.map((one): CreateOutcome => {
      const outcome = decide(one, known, auditEntries);
      const isCreated = outcome.kind === "created";
      if (isCreated) created.push({ one, isClaimed: outcome.isClaimed, row: rowOf(one, outcome) });
      if (isCreated && one.beyond !== null && ruleCounts.tell(one.beyond.count)) {
        firstBeyond.add(one);
        auditEntries.push(one.beyond.audit);
      }
      const isBound = outcome.kind === "matched" && outcome.by === "dedupe";
      for (const key of one.keys) {
        if (!isCreated && !(isBound && key.kind === "idempotency")) continue;
        const actionId = isBound ? outcome.id : one.id;
        known.holders.set(nameOf(one, key), actionId);
        keys.push([one.accountId, key.kind, key.key, actionId, one.at]);
      }
      return outcome;
    });
    const { lists } = tx;
    await insertEach(lists, ACTIONS, created, ({ row }) => [row]);
    await lists.insert(KEYS, newestOf(keys, 3));
    await insertEach(lists, METADATA, created, ({ one }) => one.metadata);
    await insertEach(lists, EVENTS, created, ({ one: { events, claim }, isClaimed }) =>
      isClaimed && claim !== null ? [...events, claim.event] : events,
    );
    await insertEach(lists, NOTIFICATIONS, created, ({ one }) =>
      firstBeyond.has(one) ? [...one.notifications, ...one.firstNotifications] : one.notifications,
    );
    await writeUses(tx, grants);
    await ruleCounts.write(tx);
    await lists.insert(AUDIT_ENTRIES, auditEntries);
    await writeCounts(
      tx,
      created.flatMap(({ one }) => (isLimited(one) ? { ...one, run: 1 } : [])),
      known,
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
      bytes: bytesOf([row, ...notifications]),
    }),
    turn: "create",
  },
);

function countsIn({ counts: added, beyond }: Pick<NewAction, "counts" | "beyond">): readonly RuleCount[] {
  return beyond === null ? added : [...added, beyond.count];
}

/** What decides on a list of writes. Each one adds to it, which counts for those that follow. */
interface Known {
  /** The live action that a key names. */
  readonly holders: Map<string, string>;
  readonly paused: ReadonlySet<string>;
  /** How many actions of a key are held, and how many it created on a day. */
  readonly held: Map<string, number>;
  readonly spent: Map<string, number>;
  readonly rejections: Map<string, RejectionCount>;
}

interface KnownOfCreates extends Known {
  readonly rulesVersions: ReadonlyMap<string, string>;
  readonly grants: GrantCounts;
  readonly ruleCounts: RuleCounts;
}

/** Decides on a create and, if it is created, counts it for those that follow. Adds uses of grants to `auditEntries`. */
function decide(one: NewAction, known: KnownOfCreates, auditEntries: Values[]): CreateOutcome {
  for (const kind of ["idempotency", "dedupe"] as const) {
    const key = one.keys.find((each) => each.kind === kind);
    const holder = key === undefined ? undefined : known.holders.get(nameOf(one, key));
    if (holder !== undefined) return { kind: "matched", by: kind, id: holder };
  }
  if (one.isRefused) return { kind: "refused" };
  if (one.rulesVersion !== known.rulesVersions.get(one.accountId)) return { kind: "rules_changed" };
  const refusal = refusalOf(one, known);
  if (refusal !== null) return refusal;
  const held = known.held.get(keyName(one)) ?? 0;
  if (one.isHeld && held >= HELD_PER_KEY_MAX) return { kind: "too_many_held" };
  const beyond = known.ruleCounts.beyond(one.counts);
  if (beyond.length > 0) return { kind: "beyond", counts: beyond };
  const uses = one.grant === null ? null : useGrant(known.grants, one.grant);
  if (one.grant !== null) {
    if (uses === null) return { kind: "grant_over" };
    const { audit, detail } = one.grant;
    auditEntries.push([...audit, JSON.stringify({ ...detail, used: uses })]);
  }
  known.ruleCounts.add(one.counts);
  if (one.isHeld) known.held.set(keyName(one), held + 1);
  countRequest(one, known);
  return { kind: "created", isClaimed: one.claim !== null && !isHeldBack(known.paused, pausesOf(one)), uses };
}

/** Why a request may not be made now, or null. */
function refusalOf({ request, budget, ...one }: Limited, known: Known): CreateOutcome | null {
  if (request?.kind === "asked") {
    const before = known.rejections.get(requestName({ ...one, digest: request.digest })) ?? NEVER_REJECTED;
    if (!mayRepeat(before, saysWhy(request.reason))) return { kind: "rejected_before", request };
  }
  const spent = budget === null ? 0 : (known.spent.get(dayName(budget)) ?? 0);
  return budget !== null && spent >= budget.limit ? { kind: "budget_spent" } : null;
}

/** Counts a request for those that follow in the list. */
function countRequest({ request, budget, ...one }: Limited, known: Known): void {
  if (request?.kind === "asked") {
    const name = requestName({ ...one, digest: request.digest });
    const before = known.rejections.get(name) ?? NEVER_REJECTED;
    if (before.rejectedAt !== null) {
      known.rejections.set(name, { ...before, repeatedAt: [new Date(one.at), ...before.repeatedAt] });
    }
  }
  if (budget !== null) known.spent.set(dayName(budget), (known.spent.get(dayName(budget)) ?? 0) + 1);
}

/** Whether it counts towards a limit of its key. */
function isLimited({ request, budget }: Pick<NewAction, "request" | "budget">): boolean {
  return request !== null || budget !== null;
}

type Limited = Pick<NewAction, "id" | "accountId" | "keyId" | "at" | "request" | "budget">;

const NEVER_REJECTED: RejectionCount = { rejectedAt: null, repeatedAt: [], fullSince: null };

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

const HELD = prepare({ accountId: "text", keyId: "text" }, ({ accountId, keyId }) => {
  const isHeld = hasValues(actions, { accountId, keyId, status: "awaiting_approval" });
  const held = qb.select({ id: actions.id }).from(actions).where(isHeld).limit(HELD_PER_KEY_MAX).as("held");
  return qb.select({ held: count().as("held") }).from(held);
});

export const SPENT_ON_DAY = prepare({ keyId: "text", day: "number" }, ({ keyId, day }) =>
  qb.select({ created: keyDays.created }).from(keyDays).where(hasValues(keyDays, { keyId, day })),
);

/** Reads what decides on a list of writes, each row once. */
async function readKnown(
  { lists }: Tx,
  list: readonly (Limited & Pick<NewAction, "keys" | "host" | "claim" | "isHeld">)[],
): Promise<Known> {
  const keys = list.flatMap(({ accountId, keys: own, at }) =>
    own.map(({ kind, key }) => ({ accountId, kind, key, windowStart: keyWindowStart(at) })),
  );
  const holding = list.flatMap(({ accountId, keyId, isHeld }) => (isHeld ? [{ accountId, keyId }] : []));
  const days = list.flatMap(({ budget }) => (budget === null ? [] : [{ keyId: budget.keyId, day: budget.day }]));
  const asked = list.flatMap(({ accountId, keyId, at, request }) => {
    if (request === null || request.kind === "approved") return [];
    return [{ accountId, keyId, digest: request.digest, rejectedAfter: rejectionWindowStart(new Date(at)).getTime() }];
  });
  const [holders, paused, held, spent, rejected, repeated, ofKey] = await Promise.all([
    findEach(lists, HOLDER, keys, (key) => nameOf(key, key)),
    findPaused(lists, list.filter(({ claim }) => claim !== null).flatMap(pausesOf)),
    findEach(lists, HELD, holding, keyName),
    findEach(lists, SPENT_ON_DAY, days, dayName),
    findEach(lists, REJECTED, asked, requestName),
    findEach(lists, REPEATED, asked, requestName),
    findEach(lists, COUNT_OF_KEY, asked, keyName),
  ]);
  return {
    holders: new Map([...holders].flatMap(([name, rows]) => rows.map(({ id }) => [name, id] as const))),
    paused,
    held: new Map([...held].map(([name, [row]]) => [name, row?.held ?? 0])),
    spent: new Map([...spent].map(([name, [row]]) => [name, row?.created ?? 0])),
    rejections: new Map(
      asked.map((one) => {
        const [name, ofThisKey] = [requestName(one), ofKey.get(keyName(one)) ?? []];
        return [name, rejectionCount(rejected.get(name) ?? [], repeated.get(name) ?? [], ofThisKey)];
      }),
    ),
  };
}

/** Writes the counts that requests, decisions and creates add to. */
async function writeCounts(tx: Tx, list: readonly (Limited & { readonly run: number })[], known: Known): Promise<void> {
  const days = Map.groupBy(
    list.flatMap(({ budget }) => budget ?? []),
    dayName,
  );
  await tx.lists.insert(
    SPENT,
    [...days.values()].flatMap((each) => each.slice(0, 1).map(({ keyId, day }) => [keyId, day, each.length])),
  );
  const entries = list.flatMap(({ request, ...one }) => (request === null ? [] : { ...one, request }));
  const counted = entries.filter((one) => {
    const before = known.rejections.get(requestName({ ...one, digest: one.request.digest })) ?? NEVER_REJECTED;
    // A request is counted only after a rejection.
    return one.request.kind === "asked"
      ? before.rejectedAt !== null
      : one.request.kind === "rejected" && before.fullSince === null;
  });
  await insertEach(tx.lists, REJECTIONS, counted, ({ id, request, ...one }) => [
    valuesOf(REJECTIONS.columns, { ...request, ...one, actionId: id, actor: request.by }),
  ]);
  for (const { accountId, keyId, request } of entries) {
    if (request.kind !== "approved") continue;
    await tx.db.delete(rejections).where(hasValues(rejections, { accountId, keyId, digest: request.digest }));
  }
}

const GUARD = ["id", "revision"] as const;

/** What a change can write: the state, also the result, or everything that can change. Guarded by the revision. */
export const UPDATES = {
  state: updateList(actions, STATE, GUARD),
  result: updateList(actions, [...STATE, ...RESULT], GUARD),
  all: updateList(actions, [...STATE, ...RESULT, "lateResult", "approve", "policy", "counted"], GUARD),
};

export interface ActionWrite extends Owner, SideRows {
  readonly run: number;
  /** The revision on which it was decided. */
  readonly expected: number;
  readonly written: keyof typeof UPDATES;
  /** The values of these columns, then the id and `expected`. */
  readonly row: Values;
  /** The dedupe key that a new run takes again, unless it names another live action, and when its window began. */
  readonly retaken: { readonly key: string; readonly createdAt: number } | null;
  readonly request: RejectionEntry | null;
  readonly budget: KeyBudget | null;
  readonly response: Values | null;
  /** Whether there may be more stored responses than `ATTEMPTS_KEPT`. */
  readonly trims: boolean;
  readonly audit: Values | null;
  /** The values of `GRANTS`. */
  readonly grant: Values | null;
  /** What a new run adds to the counts of rules. */
  readonly counts: readonly RuleCount[];
  /** Which counts its end gives back if no earlier attempt of the run may have reached the target. */
  readonly givesBack: readonly StoredCount[];
}

/** Writes changes. Returns for each whether it was written: not if the revision differs, or a limit or key forbids it. */
export const apply = listCommand(
  async (tx, list: readonly ActionWrite[]): Promise<readonly boolean[]> => {
    const guarded = list.map((one) =>
      one.retaken !== null || isLimited(one) || one.counts.length > 0 ? guardOf(one) : null,
    );
    const [known, ruleCounts] = await Promise.all([
      readKnown(
        tx,
        guarded.filter((one) => one !== null),
      ),
      readCounts(
        tx,
        list.flatMap(({ counts: added, givesBack }) => [...added, ...givesBack.map(placeOf)]),
      ),
    ]);
    const allowed = list.filter((_, at) => {
      const one = guarded[at] ?? null;
      if (one === null) return true;
      const isTaken = one.keys.some((key) => (known.holders.get(nameOf(one, key)) ?? one.id) !== one.id);
      if (isTaken || refusalOf(one, known) !== null || ruleCounts.beyond(one.counts).length > 0) return false;
      countRequest(one, known);
      ruleCounts.add(one.counts);
      for (const key of one.keys) known.holders.set(nameOf(one, key), one.id);
      return true;
    });
    const written = new Set<ActionWrite>();
    for (const round of roundsOf(allowed, ({ id }) => id)) {
      for (const kind of ["state", "result", "all"] as const) {
        const some = round.filter((one) => one.written === kind);
        for (const one of await updateEach(tx.lists, UPDATES[kind], some, ({ row }) => row)) written.add(one);
      }
    }
    for (const one of allowed) if (!written.has(one)) ruleCounts.takeBack(one.counts);
    const inOrder = list.filter((one) => written.has(one));
    await giveBack(tx, inOrder, ruleCounts);
    await ruleCounts.write(tx);
    await writeBeside(tx, inOrder, known);
    return list.map((one) => written.has(one));
  },
  {
    locks: ({ accountId, keyId, retaken, request, budget, grant, counts: added, givesBack }): readonly Lock[] => [
      ...(grant === null ? [] : [accountLock(accountId)]),
      ...added.map(({ ruleId, subject }) => countLock(ruleId, subject)),
      ...givesBack.map(([ruleId, subject]) => countLock(ruleId, subject)),
      ...(retaken === null ? [] : [keyLock(accountId, "dedupe", retaken.key)]),
      ...(request === null ? [] : [limitLock(accountId, keyId)]),
      ...(budget === null ? [] : [limitLock(accountId, budget.keyId)]),
    ],
    size: ({ row, events, notifications, response }) => ({
      rows: 2 + events.length + notifications.length,
      bytes: bytesOf([row, ...notifications, ...(response === null ? [] : [response])]),
    }),
  },
);

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

/** What must be checked before a change is written. */
function guardOf({ id, accountId, keyId, at, request, budget, retaken, counts: added }: ActionWrite) {
  const keys: readonly KeyName[] = retaken === null ? [] : [{ kind: "dedupe", key: retaken.key }];
  const asked = { request, budget, keys, host: "", claim: null, isHeld: false, counts: added };
  return { id, accountId, keyId, at, ...asked };
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
async function writeBeside(tx: Tx, list: readonly ActionWrite[], known: Known): Promise<void> {
  const { lists } = tx;
  await insertEach(lists, KEYS, list, ({ id, accountId, retaken }) =>
    retaken === null ? [] : [[accountId, "dedupe", retaken.key, id, retaken.createdAt]],
  );
  await insertEach(lists, EVENTS, list, ({ events }) => events);
  await insertEach(lists, NOTIFICATIONS, list, ({ notifications }) => notifications);
  await insertEach(lists, RESPONSES, list, ({ response }) => (response === null ? [] : [response]));
  await insertEach(lists, AUDIT_ENTRIES, list, ({ audit }) => (audit === null ? [] : [audit]));
  await writeCounts(tx, list.filter(isLimited), known);
  const grants = list.flatMap(({ grant }) => (grant === null ? [] : [grant]));
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
function rowOf(
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
function newestOf(rows: readonly Values[], values: number): readonly Values[] {
  return [...new Map(rows.map((row) => [row.slice(0, values).join("\0"), row])).values()];
}

/** Splits items into rounds without equal names, since one PostgreSQL statement updates a row only once. */
function roundsOf<Item>(items: readonly Item[], name: (item: Item) => unknown): readonly (readonly Item[])[] {
  const rounds: Item[][] = [];
  for (const same of Map.groupBy(items, name).values()) {
    for (const [n, item] of same.entries()) (rounds[n] ??= []).push(item);
  }
  return rounds;
}

function nameOf(
  { accountId }: Pick<Owner, "accountId">,
  { kind, key }: Readonly<Record<"kind" | "key", string>>,
): string {
  return `${accountId} ${kind} ${key}`;
}

function keyName({ accountId, keyId }: Pick<Owner, "accountId" | "keyId">): string {
  return `${accountId} ${keyId}`;
}

function dayName({ keyId, day }: Pick<KeyBudget, "keyId" | "day">): string {
  return `${keyId} ${day}`;
}

function requestName(one: Pick<Owner, "accountId" | "keyId"> & Pick<RejectionEntry, "digest">): string {
  return `${keyName(one)} ${one.digest}`;
}

function bytesOf(rows: readonly Values[]): number {
  let bytes = 0;
  for (const row of rows) for (const value of row) bytes += typeof value === "string" ? value.length : 8;
  return bytes;
}
