import { eq } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { askOf } from "../../src/core/channel.ts";
import type { GrantUse } from "../../src/core/grant.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { DECIDE_TRIES_MAX, DEDUPE_WINDOW_MS } from "../../src/core/limits.ts";
import { rejectionWindowStart, saysWhy } from "../../src/core/rejection-count.ts";
import type { RejectionEntry } from "../../src/core/rejections.ts";
import { startAttempt } from "../../src/core/settle.ts";
import { type Created, type Creation, type OutboxRow, StoreUnavailable } from "../../src/core/store.ts";
import { isTooLate, type TimelineEvent } from "../../src/core/timeline.ts";
import {
  AUDIT_ENTRY,
  CLAIMED,
  type CountedRequest,
  create,
  EVENT,
  isHolder,
  KEY_ARGS,
  type KeyName,
  NEW_ACTION,
  type NewAction,
  NOTIFICATION,
  type RejectedBefore,
  type SideRows,
} from "../commands/actions.ts";
import type { UsedGrant } from "../commands/grants.ts";
import { type Values, valuesOf } from "../commands/lists.ts";
import type { StoreContext } from "./context.ts";
import { findActionById } from "./find.ts";
import { read } from "./read.ts";
import { actionColumns, rowTypeOf, scheduledAtOf, shownActionOf, storedValues } from "./rows.ts";

/** Creates an action, or finds the live one that one of its keys names; see the command. */
export async function createAction(db: StoreContext, creation: Creation): Promise<Created> {
  const { action } = creation;
  const { writer, heldCounts, written } = db;
  const one = newAction(db, creation);
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    const run = (onlyMatches: NewAction["onlyMatches"]) =>
      writer.run(create, onlyMatches === null ? one : { ...one, onlyMatches });
    const isCounted = action.status === "awaiting_approval" && heldCounts !== null;
    // A key that is full may still match an older action.
    const outcome =
      (isCounted ? await heldCounts.create(action, () => run(null)) : await run(null)) ?? (await run("too_many_held"));
    if (outcome.kind === "rejected_before") return { kind: "rejected_before", rejections: countOf(outcome.count) };
    if (outcome.kind === "created") {
      const claimed = outcome.isClaimed && creation.claim !== null ? startAttempt(action, creation.claim) : null;
      if (claimed === null) written.keep(action);
      return { kind: "created", claimed };
    }
    if (outcome.kind !== "matched") return outcome;
    const holder = await findActionById(db, outcome.id);
    if (holder !== null) return { kind: "matched", by: outcome.by, action: holder };
    // It was deleted meanwhile, and so its keys are free.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** An action that is claimed at create has both states: a pause may stand against the claim. */
function newAction({ seal, heldCounts }: StoreContext, creation: Creation): NewAction {
  const { action, claim, budget, counts = [], beyond = null } = creation;
  const { id, accountId, keyId, host, createdAt: at } = action;
  const { metadata } = action.extras;
  const claimed = claim === null ? null : startAttempt(action, claim);
  const isOnce = beyond?.count.asksOnce === true;
  const { asks = [], others = [] } = Object.groupBy(creation.outbox, ({ message }) =>
    askOf(message.event) === null ? "others" : "asks",
  );
  const stored = { ...storedValues(action, seal), scheduledAt: scheduledAtOf(action, at), claimedBy: null };
  return {
    id,
    accountId,
    keyId,
    host,
    at: at.getTime(),
    row: valuesOf(NEW_ACTION, stored, action),
    claim:
      claimed === null
        ? null
        : {
            values: valuesOf(CLAIMED, { claimedBy: claim?.by ?? "" }, claimed),
            event: eventRow(claimed, claimed.startedAt ?? at, { type: "started" }),
          },
    keys: keysOf(action),
    windowStart: windowStart(at).getTime(),
    metadata: Object.entries(metadata ?? {}).map(([name, value]) => [id, accountId, name, value]),
    ...sideRows({ after: action, at, events: creation.events, outbox: isOnce ? others : creation.outbox }),
    firstNotifications: isOnce ? asks.map((row) => notificationRow(action, at, row)) : [],
    request: countedRequest(creation.rejection, at),
    budget: budget === undefined ? null : { keyId, ...budget },
    countsHeld: action.status === "awaiting_approval" && heldCounts === null,
    onlyMatches: creation.isRefused === true ? "refused" : null,
    rulesVersion: creation.rulesVersion,
    grant: usedGrant(creation.grant ?? null),
    counts,
    beyond: beyond === null ? null : { count: beyond.count, audit: auditRow(beyond.audit) },
  };
}

export function auditRow({ detail, ...entry }: AuditEntry): Values {
  return valuesOf(AUDIT_ENTRY, { ...entry, detail: JSON.stringify(detail) });
}

function usedGrant(use: GrantUse | null): UsedGrant | null {
  if (use === null) return null;
  const { detail, ...entry } = use.audit;
  return { id: use.id, at: entry.at.getTime(), audit: valuesOf(AUDIT_ENTRY.slice(0, -1), entry), detail };
}

/** The keys that an action was created with. */
function keysOf({ idempotencyKey, dedupe }: Action): readonly KeyName[] {
  const keys: { readonly kind: KeyKind; readonly key: string | null }[] = [
    { kind: "idempotency", key: idempotencyKey },
    { kind: "dedupe", key: dedupe },
  ];
  return keys.flatMap(({ kind, key }) => (key === null ? [] : { kind, key }));
}

/** The start of the window in which a key names its action, exclusive. */
export function windowStart(now: Date): Date {
  return new Date(now.getTime() - DEDUPE_WINDOW_MS);
}

export function countedRequest(entry: RejectionEntry | null | undefined, at: Date): CountedRequest | null {
  if (entry === null || entry === undefined) return null;
  return { ...entry, saysWhy: saysWhy(entry.reason), rejectedAfter: rejectionWindowStart(at).getTime() };
}

function countOf({ rejectedAt, repeatedAt, fullSince }: RejectedBefore) {
  return {
    rejectedAt: timeOf(rejectedAt),
    repeatedAt: repeatedAt.map((ms) => new Date(ms)),
    fullSince: timeOf(fullSince),
  };
}

function timeOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

interface Happened {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
}

/** The timeline and outbox rows of a change. */
export function sideRows({ after, at, events, outbox }: Happened): SideRows {
  return {
    events: events.map((event) => eventRow(after, at, event)),
    notifications: outbox.map((row) => notificationRow(after, at, row)),
  };
}

/** What came too late may add nothing to the revision, so its attempt tells it from the others of that revision. */
function eventRow(after: Action, at: Date, event: TimelineEvent): Values {
  const { type: _type, ...detail } = event;
  const isLate = event.type === "attempt" && isTooLate(event);
  const run = isLate ? (event.run ?? after.run) : after.run;
  const { id: actionId, accountId, revision, status } = after;
  return valuesOf(EVENT, {
    actionId,
    accountId,
    at,
    run,
    revision,
    status,
    type: rowTypeOf(event),
    detail: JSON.stringify(detail),
    subject: isLate ? `${run}:${event.attempt}` : "",
  });
}

function notificationRow(action: Action, at: Date, { id, message, host, payload, dueAt = at }: OutboxRow): Values {
  const { id: actionId, accountId, run, revision, keyId } = action;
  const { kind, event, target } = message;
  return valuesOf(NOTIFICATION, {
    id,
    actionId,
    accountId,
    run,
    revision,
    kind,
    event,
    target,
    host,
    keyId,
    dueAt,
    // What a channel is asked is built when it is sent.
    payload: askOf(event) === null ? payload : null,
    status: "pending",
    attempts: 0,
    scheduledAt: at,
    createdAt: at,
  });
}

const KEY_HOLDER = read(KEY_ARGS, ({ db, tables }, arg) => {
  const { actionKeys, actions } = tables;
  const keys = db.select(actionColumns(actions)).from(actionKeys);
  return keys.innerJoin(actions, eq(actions.id, actionKeys.actionId)).where(isHolder(tables, arg));
});

/** The live action that a key names. */
export async function keyHolder(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  key: KeyName & { readonly accountId: string },
  now: Date,
): Promise<Action | null> {
  const [row] = await KEY_HOLDER.raw(reader, { ...key, windowStart: windowStart(now).getTime() });
  return row === undefined ? null : shownActionOf(row, seal);
}
