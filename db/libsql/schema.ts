import { type Column, type SQL, sql } from "drizzle-orm";
import { check, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Actor } from "../../src/core/roles.ts";
import type { HttpMethod } from "../../src/core/action.ts";
import type { AuditRow } from "../../src/core/audit.ts";
import { SQLITE_VALUES, type ValueTests } from "../sql/values.ts";

/**
 * The tables: the only description of them. `drizzle-kit` generates the migrations from it (docs/development.md), and
 * the statements of the store are built from it. Times are integers in milliseconds, booleans 0 and 1.
 */

const time = (name: string) => integer(name, { mode: "timestamp_ms" });
const flag = (name: string) => integer(name, { mode: "boolean" });

export const accounts = sqliteTable("accounts", {
  id: text().primaryKey(),
  sealedRootSecret: text("sealed_root_secret").notNull(),
  createdAt: time("created_at").notNull(),
  /**
   * When an owner of the first account, or the setting SIGNUPS, allowed a signed-up account. Null: once sign-ups close,
   * a pause of the kind 'sign_up' stops it.
   */
  allowedAt: time("allowed_at"),
  allowedBy: text("allowed_by"),
  /** As its owners call it; null: by the address of its first person. */
  name: text(),
});

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    role: text({ enum: ["owner", "approver", "agent", "reader"] }).notNull(),
    hold: text({ enum: ["none", "writes", "all"] }).notNull(),
    /** SHA-256 of the key. */
    hash: text().notNull().unique(),
    last4: text().notNull(),
    createdAt: time("created_at").notNull(),
    lastUsedAt: time("last_used_at"),
    revokedAt: time("revoked_at"),
    /** Which actions of the account an agent's key may use. */
    scope: text({ enum: ["own", "account"] })
      .notNull()
      .default("own"),
    /** The key whose actions it took over. */
    replaces: text(),
    /** Limits of its calls: JSON lists of hosts and methods, how many creates a day, and until when it works. Null: none. */
    hosts: text({ mode: "json" }).$type<readonly string[]>(),
    methods: text({ mode: "json" }).$type<readonly HttpMethod[]>(),
    dailyActions: integer("daily_actions"),
    expiresAt: time("expires_at"),
    /** Who created it and who revoked it; null: not known. */
    createdBy: text("created_by").$type<Actor>(),
    revokedBy: text("revoked_by").$type<Actor>(),
    /** Id of the person or key that created it; null: neither did, or it is not known. */
    createdById: text("created_by_id"),
  },
  // For lists: active keys first, since NULL sorts before every time.
  (table) => [index("api_keys_by_account").on(table.accountId, table.revokedAt, table.createdAt, table.id)],
);

/** How many actions a key with a daily limit has created on a day (days since 1970, UTC). */
export const keyDays = sqliteTable(
  "key_days",
  {
    keyId: text("key_id").notNull(),
    day: integer().notNull(),
    created: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.keyId, table.day] }), index("key_days_by_age").on(table.day)],
);

export const people = sqliteTable("people", {
  id: text().primaryKey(),
  email: text().notNull(),
  /** The address without case. */
  emailKey: text("email_key").notNull().unique(),
  /** Empty: they sign in by OpenID Connect alone. */
  passwordHash: text("password_hash").notNull(),
  createdAt: time("created_at").notNull(),
});

/** The people of an account. */
export const members = sqliteTable(
  "members",
  {
    accountId: text("account_id").notNull(),
    personId: text("person_id").notNull(),
    joinedAt: time("joined_at").notNull(),
    role: text({ enum: ["owner", "approver", "reader"] })
      .notNull()
      .default("owner"),
    /** When they last used this account: a log-in begins in the account that was used last. */
    lastSeenAt: time("last_seen_at"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.personId] }),
    index("members_by_account").on(table.accountId, table.joinedAt, table.personId),
    index("members_by_person").on(table.personId, table.joinedAt, table.accountId),
  ],
);

export const sessions = sqliteTable(
  "sessions",
  {
    /** SHA-256 of the token. */
    hash: text().primaryKey(),
    personId: text("person_id").notNull(),
    accountId: text("account_id").notNull(),
    createdAt: time("created_at").notNull(),
    expiresAt: time("expires_at").notNull(),
    /** SHA-256 of the secret in the browser's storage. Null: the session needs the password for each change. */
    secretHash: text("secret_hash"),
    /** What its person sees in the list of sessions: the client that began it, and when it was last used. */
    client: text(),
    browser: text(),
    lastSeenAt: time("last_seen_at"),
  },
  (table) => [
    index("sessions_by_person").on(table.personId, table.createdAt, table.hash),
    index("sessions_by_end").on(table.expiresAt),
  ],
);

/** Links that the operator issues. Without a person: invites the account's first one. With one: resets their password. */
export const welcomeLinks = sqliteTable(
  "welcome_links",
  {
    hash: text().primaryKey(),
    personId: text("person_id"),
    accountId: text("account_id").notNull(),
    createdAt: time("created_at").notNull(),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [
    index("welcome_links_by_account").on(table.accountId, table.personId),
    index("welcome_links_by_end").on(table.expiresAt),
  ],
);

/** Open invitations to an account: one for an address. The row goes when it is accepted or withdrawn. */
export const invitations = sqliteTable(
  "invitations",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    email: text().notNull(),
    /** The address without case. */
    emailKey: text("email_key").notNull(),
    role: text({ enum: ["owner", "approver", "reader"] }).notNull(),
    /** SHA-256 of the token in its link. */
    hash: text().notNull().unique(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").$type<Actor>().notNull(),
    expiresAt: time("expires_at").notNull(),
    /** Id of the person or key that created it; null: not known. */
    createdById: text("created_by_id"),
  },
  (table) => [
    uniqueIndex("invitations_once").on(table.accountId, table.emailKey),
    index("invitations_by_address").on(table.emailKey, table.expiresAt),
    index("invitations_by_end").on(table.expiresAt),
  ],
);

/** Whom a provider of OpenID Connect means by a subject. A person has one subject of a provider: an address may be given on. */
export const identities = sqliteTable(
  "identities",
  {
    issuer: text().notNull(),
    subject: text().notNull(),
    personId: text("person_id").notNull(),
    createdAt: time("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.issuer, table.subject] }),
    uniqueIndex("identities_once").on(table.personId, table.issuer),
  ],
);

/**
 * Signing secrets are derived from the newest seed that applies: of one origin, or (empty) of all. Ordered by `seq`,
 * since the wall clock may be set back between two rotations.
 */
export const signingSeeds = sqliteTable(
  "signing_seeds",
  {
    seq: integer().primaryKey(),
    id: text().notNull().unique(),
    accountId: text("account_id").notNull(),
    origin: text().notNull(),
    sealedSeed: text("sealed_seed").notNull(),
    rotatedAt: time("rotated_at").notNull(),
  },
  (table) => [index("signing_seeds_by_origin").on(table.accountId, table.origin, table.seq)],
);

const actionColumns = {
  id: text().primaryKey(),
  accountId: text("account_id").notNull(),
  revision: integer().notNull(),
  status: text().notNull(),
  run: integer().notNull(),
  attempts: integer().notNull(),
  retries: integer().notNull(),
  url: text().notNull(),
  hostname: text().notNull(),
  host: text().notNull(),
  method: text().notNull(),
  dedupe: text(),
  idempotencyKey: text("idempotency_key"),
  onUnknown: text("on_unknown").notNull(),
  approve: flag("approve").notNull(),
  callback: text(),
  notifyEmail: text("notify_email"),
  createdAt: time("created_at").notNull(),
  createdBy: text("created_by").$type<Actor>().notNull(),
  dueAt: time("due_at"),
  /** When `dueAt` was written: a time in the future means that the clock was set back since. 0: `dueAt` is a `run_at`. */
  scheduledAt: time("scheduled_at").notNull(),
  leaseUntil: time("lease_until"),
  startedAt: time("started_at"),
  finishedAt: time("finished_at"),
  approvedAt: time("approved_at"),
  approvedBy: text("approved_by"),
  approvedDigest: text("approved_digest"),
  lastError: text("last_error"),
  errorSource: text("error_source"),
  responseCode: integer("response_code"),
  responseTruncated: flag("response_truncated"),
  durationMs: integer("duration_ms"),
  // Long values last: columns after one are slow to read.
  sealedHeaders: text("sealed_headers"),
  body: text(),
  responseBody: text("response_body"),
  /** The key that created it: each key of an account has its own queue. Empty: no key did, or it is not known. */
  keyId: text("key_id").notNull().default(""),
  /** Role and hold of the key at the create. */
  keyRole: text("key_role").notNull().default("owner"),
  keyHold: text("key_hold").notNull().default("none"),
  /** The node whose claim made it active; stays when the attempt has ended. */
  claimedBy: text("claimed_by"),
  /** What the call does, in the requester's words. */
  title: text(),
  /** What a create set beyond the core: JSON of `src/core/extras.ts`. */
  extras: text(),
  /** No attempt begins from this time on. */
  expiresAt: time("expires_at"),
  /** The headers of the last response: a JSON list of pairs, without values that may be secret. */
  responseHeaders: text("response_headers"),
  /** A result that came after its attempt was closed as unknown: JSON of `src/core/late-result.ts`. */
  lateResult: text("late_result"),
};

export const actions = sqliteTable("actions", actionColumns, (table) => {
  const isPending = sql`${table.status} = 'pending'`;
  const isHeld = sql`${table.status} = 'awaiting_approval'`;
  return [
    // For lists: all, by host, and by status except the two statuses of nearly all actions. Each index entry costs an
    // insert and a delete.
    index("actions_by_account").on(table.accountId, table.id),
    index("actions_by_hostname").on(table.accountId, table.hostname, table.id),
    index("actions_by_status")
      .on(table.accountId, table.status, table.id)
      .where(sql`${table.status} <> 'completed' and ${table.status} <> 'active'`),
    index("actions_by_dedupe")
      .on(table.accountId, table.dedupe, table.id)
      .where(sql`${table.dedupe} is not null`),
    // Lists repeat the condition. Without it the planner prefers this index where one by status and key finds fewer.
    index("actions_by_key")
      .on(table.accountId, table.keyId, table.id)
      .where(sql`${table.keyId} <> ''`),
    // For delivery: the queue of each lane (host before key, since the overview groups by host), and actions in
    // flight, for lists and expired leases.
    index("actions_pending").on(table.accountId, table.host, table.keyId, table.dueAt).where(isPending),
    index("actions_active")
      .on(table.accountId, table.id, table.leaseUntil)
      .where(sql`${table.status} = 'active'`),
    // Held actions: to count them, to cancel them when they expire, by key, and by host.
    index("actions_held").on(table.id).where(isHeld),
    index("actions_held_by_key").on(table.accountId, table.keyId, table.id).where(isHeld),
    index("actions_held_by_host").on(table.accountId, table.host, table.keyId, table.id).where(isHeld),
    // Where approved calls went.
    index("actions_approved")
      .on(table.accountId, table.hostname, table.keyId)
      .where(sql`${table.status} = 'completed' and ${table.approvedAt} is not null`),
    index("actions_expiring").on(table.expiresAt, table.id).where(isWaitingToExpire(table)),
    index("actions_broken").on(table.id).where(isBrokenAction(table)),
    // No crash and no manual change may leave a row that would be sent without approval, too often, or never.
    check(
      "actions_status",
      sql`${table.status} in ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')`,
    ),
    check(
      "actions_counts",
      sql`${table.attempts} between 0 and ${table.retries} and ${table.revision} > 0 and ${table.run} > 0`,
    ),
    check(
      "actions_approved",
      sql`${table.status} not in ('pending', 'active') or ${table.approve} = 0 or ${table.approvedAt} is not null`,
    ),
    check(
      "actions_due",
      sql`${table.status} <> 'pending' or (${table.dueAt} is not null and ${table.attempts} < ${table.retries})`,
    ),
    check(
      "actions_leased",
      sql`${table.status} <> 'active' or (${table.leaseUntil} is not null and ${table.attempts} > 0)`,
    ),
  ];
});

/** Actions that are cancelled when they expire: an attempt that is under way ends by itself. */
export function isWaitingToExpire({
  expiresAt,
  status,
}: Columns<Pick<typeof actionColumns, "expiresAt" | "status">>): SQL {
  return sql`${expiresAt} is not null and (${status} = 'pending' or ${status} = 'awaiting_approval')`;
}

/** The action that a dedupe or idempotency key names. A unique index on actions can't express a window of 24 h. */
export const actionKeys = sqliteTable(
  "action_keys",
  {
    accountId: text("account_id").notNull(),
    kind: text({ enum: ["idempotency", "dedupe"] }).notNull(),
    key: text().notNull(),
    actionId: text("action_id").notNull(),
    createdAt: time("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.kind, table.key] }),
    index("action_keys_by_age").on(table.createdAt),
  ],
);

/**
 * What came back of the newest attempts that another one followed, or will: the row of the action has the last result
 * only. The timeline has everything else of them.
 */
export const attempts = sqliteTable(
  "attempts",
  {
    actionId: text("action_id").notNull(),
    run: integer().notNull(),
    attempt: integer().notNull(),
    responseTruncated: flag("response_truncated").notNull(),
    responseHeaders: text("response_headers"),
    responseBody: text("response_body"),
  },
  (table) => [primaryKey({ columns: [table.actionId, table.run, table.attempt] })],
);

/** The metadata of actions, again in a form that lists can search. */
export const actionMetadata = sqliteTable(
  "action_metadata",
  {
    actionId: text("action_id").notNull(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    value: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.actionId, table.name] }),
    index("action_metadata_by_value").on(table.accountId, table.name, table.value, table.actionId),
  ],
);

/** `seq` is the position in the event stream. Pruning keeps the newest row, so that no number is used twice. */
export const timeline = sqliteTable(
  "timeline",
  {
    seq: integer().primaryKey(),
    actionId: text("action_id").notNull(),
    accountId: text("account_id").notNull(),
    at: time("at").notNull(),
    run: integer().notNull(),
    revision: integer().notNull(),
    type: text().notNull(),
    /** Of a notification's event: the outbox row and its attempt. Empty for changes of state. */
    subject: text().notNull().default(""),
    status: text().notNull(),
    detail: text().notNull(),
  },
  (table) => [uniqueIndex("timeline_once").on(table.actionId, table.revision, table.type, table.subject)],
);

const outboxColumns = {
  id: text().primaryKey(),
  actionId: text("action_id").notNull(),
  accountId: text("account_id").notNull(),
  run: integer().notNull(),
  revision: integer().notNull(),
  kind: text().notNull(),
  event: text().notNull(),
  target: text().notNull(),
  host: text().notNull(),
  payload: text(),
  status: text().notNull(),
  attempts: integer().notNull(),
  dueAt: time("due_at"),
  scheduledAt: time("scheduled_at").notNull(),
  leaseUntil: time("lease_until"),
  createdAt: time("created_at").notNull(),
  /** When a mail was last sent to the provider, for the hourly limits. */
  sentAt: time("sent_at"),
  lastError: text("last_error"),
  keyId: text("key_id").notNull().default(""),
  /** The node whose claim made it active; stays when the attempt has ended. */
  claimedBy: text("claimed_by"),
};

/** Callbacks, mails and messages to channels. */
export const outbox = sqliteTable("outbox", outboxColumns, (table) => {
  const isSentMail = sql`${table.kind} = 'mail' and ${table.sentAt} is not null`;
  return [
    uniqueIndex("outbox_once").on(table.actionId, table.revision, table.kind, table.event),
    index("outbox_by_account").on(table.accountId, table.id),
    // For delivery: the queue of each lane, and expired leases.
    index("outbox_pending")
      .on(table.kind, table.accountId, table.host, table.keyId, table.dueAt)
      .where(sql`${table.status} = 'pending'`),
    index("outbox_active")
      .on(table.kind, table.leaseUntil)
      .where(sql`${table.status} = 'active'`),
    // The mails of the last hour, by recipient and by account.
    index("outbox_mailed_to").on(table.host, table.sentAt).where(isSentMail),
    index("outbox_mailed_by").on(table.accountId, table.sentAt).where(isSentMail),
    index("outbox_broken").on(table.id).where(isBrokenNotification(table)),
    check(
      "outbox_status",
      sql`${table.status} in ('pending', 'active', 'delivered', 'given_up', 'dropped') and ${table.attempts} >= 0`,
    ),
    check("outbox_due", sql`${table.status} <> 'pending' or ${table.dueAt} is not null`),
    check(
      "outbox_leased",
      sql`${table.status} <> 'active' or (${table.leaseUntil} is not null and ${table.attempts} > 0)`,
    ),
  ];
});

/** Hosts that callbacks of keys with a hold may go to, as listed by an owner. */
export const callbackHosts = sqliteTable(
  "callback_hosts",
  {
    accountId: text("account_id").notNull(),
    host: text().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.host] })],
);

/** What an account sets for calls to a host (JSON of the API's members), or for all of them where the host is empty. */
export const hostSettings = sqliteTable(
  "host_settings",
  {
    accountId: text("account_id").notNull(),
    host: text().notNull(),
    settings: text().notNull(),
    updatedAt: time("updated_at").notNull(),
    updatedBy: text("updated_by").$type<Actor>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.host] })],
);

/** Where an account asks for approval: addresses, or the URL of an incoming webhook, sealed. */
export const channels = sqliteTable(
  "channels",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    kind: text().notNull(),
    sealedConfig: text("sealed_config").notNull(),
    remindAfterMinutes: integer("remind_after_minutes"),
    enabled: flag("enabled").notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").$type<Actor>().notNull(),
  },
  (table) => [index("channels_by_account").on(table.accountId, table.createdAt, table.id)],
);

/** Origins that received callbacks signed with the secret of calls: it signs them too until this time. */
export const callbackOverlaps = sqliteTable(
  "callback_overlaps",
  {
    accountId: text("account_id").notNull(),
    origin: text().notNull(),
    until: time("until").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.origin] })],
);

/** Links of approval mails, by their hashes. They are deleted with their action, since old ones lead to its receipt. */
export const approvalLinks = sqliteTable(
  "approval_links",
  {
    actionId: text("action_id").notNull(),
    run: integer().notNull(),
    decision: text({ enum: ["approve", "reject"] }).notNull(),
    hash: text().notNull(),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.actionId, table.run, table.decision] })],
);

/**
 * What an owner has paused: `subject` is the id of a key, a host, or empty for the whole account. A row stays after its pause
 * has ended, since timelines show it.
 */
export const pauses = sqliteTable(
  "pauses",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    kind: text({ enum: ["account", "key", "host", "sign_up"] }).notNull(),
    subject: text().notNull(),
    reason: text(),
    /** The actions it covers are cancelled step by step; it ends by itself when none is left. */
    cancels: flag("cancels").notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").$type<Actor>().notNull(),
    endedAt: time("ended_at"),
    endedBy: text("ended_by").$type<Actor>(),
  },
  (table) => [
    // Pauses in force: every claim reads this index, and nothing is paused twice.
    uniqueIndex("pauses_in_force")
      .on(table.accountId, table.kind, table.subject)
      .where(sql`${table.endedAt} is null`),
    index("pauses_by_subject").on(table.accountId, table.kind, table.subject, table.createdAt),
    index("pauses_by_end")
      .on(table.endedAt)
      .where(sql`${table.endedAt} is not null`),
    check("pauses_subject", sql`${table.kind} <> '' and (${table.kind} = 'account') = (${table.subject} = '')`),
  ],
);

/**
 * Rejected requests and their repetitions ('asked'), kept for 24 hours, so that a request is repeated twice at most.
 * `digest` identifies the request; `similar` also those that differ only in ids, query and body, and is empty in rows of
 * older versions.
 */
export const rejections = sqliteTable(
  "rejections",
  {
    seq: integer().primaryKey(),
    accountId: text("account_id").notNull(),
    keyId: text("key_id").notNull(),
    digest: text().notNull(),
    kind: text({ enum: ["rejected", "asked"] }).notNull(),
    at: time("at").notNull(),
    actionId: text("action_id").notNull(),
    run: integer().notNull(),
    actor: text().$type<Actor>().notNull(),
    reason: text(),
    similar: text("similar_digest").notNull().default(""),
  },
  (table) => [
    index("rejections_by_request").on(table.accountId, table.keyId, table.digest, table.at),
    index("rejections_by_similar").on(table.accountId, table.keyId, table.similar, table.at),
    index("rejections_by_key").on(table.accountId, table.keyId, table.at),
    index("rejections_by_age").on(table.at),
  ],
);

/**
 * Who did what to the account. Rows are never changed; only retention deletes them. Pruning keeps the newest row, so
 * that no number is used twice.
 */
export const audit = sqliteTable(
  "audit",
  {
    seq: integer().primaryKey(),
    at: time("at").notNull(),
    accountId: text("account_id").notNull(),
    actor: text().$type<AuditRow["actor"]>().notNull(),
    kind: text().$type<AuditRow["kind"]>().notNull(),
    subject: text().notNull(),
    client: text().notNull(),
    detail: text({ mode: "json" }).$type<AuditRow["detail"]>().notNull(),
  },
  (table) => [index("audit_by_account").on(table.accountId, table.seq)],
);

/** Bulk jobs. Their ids are in the order of time. */
export const bulkJobs = sqliteTable(
  "bulk_jobs",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    operation: text({ enum: ["retry", "cancel"] }).notNull(),
    /** The filter as the API has it, as JSON. */
    filter: text().notNull(),
    reason: text(),
    status: text({ enum: ["running", "finished", "stopped"] }).notNull(),
    matching: integer().notNull(),
    done: integer().notNull(),
    failed: integer().notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").$type<Actor>().notNull(),
    /** Whoever began it, a key or a person: it acts with their rights of the moment. */
    keyId: text("key_id").notNull(),
    personId: text("person_id").notNull(),
    client: text().notNull(),
    finishedAt: time("finished_at"),
    stoppedBy: text("stopped_by").$type<Actor>(),
  },
  (table) => [
    index("bulk_jobs_by_account").on(table.accountId, table.id),
    index("bulk_jobs_running")
      .on(table.id)
      .where(sql`${table.status} = 'running'`),
    index("bulk_jobs_by_end").on(table.finishedAt),
  ],
);

/** The actions of a bulk job, and what became of each. */
export const bulkResults = sqliteTable(
  "bulk_results",
  {
    jobId: text("job_id").notNull(),
    actionId: text("action_id").notNull(),
    /** The run that it was in when the job began. */
    run: integer().notNull(),
    status: text({ enum: ["waiting", "done", "failed"] }).notNull(),
    /** The status of the action after it was done. */
    actionStatus: text("action_status"),
    code: text(),
    message: text(),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.actionId] }),
    index("bulk_results_by_status").on(table.jobId, table.status, table.actionId),
  ],
);

/**
 * What the overview counts, by slots of one length for each of its ranges (`src/core/activity.ts`). Filled from the
 * timeline up to the position of the fact `activity`, which the same commit writes.
 */
export const activity = sqliteTable(
  "activity",
  {
    accountId: text("account_id").notNull(),
    slotMinutes: integer("slot_minutes").notNull(),
    /** When the slot begins. */
    at: time("at").notNull(),
    kind: text({ enum: ["all", "host", "key", "other_hosts", "other_keys"] }).notNull(),
    name: text().notNull(),
    created: integer().notNull(),
    completed: integer().notNull(),
    failed: integer().notNull(),
    attempts: integer().notNull(),
    failedAttempts: integer("failed_attempts").notNull(),
    approved: integer().notNull(),
    rejected: integer().notNull(),
    /** Histograms of durations: pairs of a bucket and its count. */
    latency: text().notNull(),
    waits: text().notNull(),
    lastError: text("last_error"),
    lastFailedAt: time("last_failed_at"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.slotMinutes, table.at, table.kind, table.name] }),
    index("activity_by_age").on(table.slotMinutes, table.at),
  ],
);

/** What an account has done for the first time, and which person (else empty) has hidden the list of it. */
export const firstSteps = sqliteTable(
  "first_steps",
  {
    accountId: text("account_id").notNull(),
    personId: text("person_id").notNull(),
    step: text({ enum: ["action", "approval", "agent", "signature", "hidden"] }).notNull(),
    at: time("at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.personId, table.step] })],
);

/** Facts about the store, such as the check value of the master key. */
export const facts = sqliteTable("facts", { name: text().primaryKey(), value: text().notNull() });

/** The columns of a table, or of an alias of it. */
type Columns<Builders> = Readonly<Record<keyof Builders, Column>>;

/**
 * Rows that are not final, have a value that the service never writes, and that nothing else would find: after a manual
 * change, or a partial restore. These are rows that can't be named, claimed or rescued, and held rows with any bad
 * value; other bad values show when a row is claimed, by `Columns`. The indexes with these conditions are empty and cost
 * a microsecond per write: that is why they check no more, and why there is no IN, which costs three times all the rest.
 * The planner uses them only for conditions of the same structure.
 */
export function isBrokenAction(table: Columns<typeof actionColumns>, tests: ValueTests = SQLITE_VALUES): SQL {
  const { isText, isTextOrNull, isInteger, isTime, isTimeOrNull } = tests;
  const { status, method, onUnknown, approve } = table;
  const isSoundWhenHeld = all(
    ...[table.url, table.hostname, table.createdBy].map((column) => isText(column)),
    sql`(${method} = 'GET' or ${method} = 'POST' or ${method} = 'PUT' or ${method} = 'PATCH' or ${method} = 'DELETE')`,
    sql`(${onUnknown} = 'retry' or ${onUnknown} = 'stop') and (${approve} = 0 or ${approve} = 1)`,
    ...[table.dedupe, table.idempotencyKey, table.callback, table.notifyEmail, table.approvedBy].map((column) =>
      isTextOrNull(column),
    ),
    ...[table.approvedDigest, table.sealedHeaders, table.body, table.title, table.extras].map((column) =>
      isTextOrNull(column),
    ),
    isInteger(table.run, sql`> 0`),
    isInteger(table.attempts, sql`> -1`),
    isInteger(table.retries, sql`> 0`),
    isTime(table.createdAt),
    ...[table.startedAt, table.finishedAt, table.approvedAt, table.expiresAt].map((column) => isTimeOrNull(column)),
  );
  const isSound = all(
    ...[table.id, table.accountId, table.host, table.keyId].map((column) => isText(column)),
    isInteger(table.revision),
    ...[table.dueAt, table.leaseUntil].map((column) => isTimeOrNull(column)),
    sql`(${status} <> 'awaiting_approval' or (${isSoundWhenHeld}))`,
  );
  return sql`${status} <> 'completed' and ${status} <> 'failed' and ${status} <> 'cancelled' and not (${isSound})`;
}

/** The same for rows of the outbox. */
export function isBrokenNotification(table: Columns<typeof outboxColumns>, tests: ValueTests = SQLITE_VALUES): SQL {
  const { isText, isInteger, isTimeOrNull } = tests;
  const { status, kind } = table;
  const isSound = all(
    ...[table.id, table.accountId, table.host, table.keyId].map((column) => isText(column)),
    sql`(${kind} = 'callback' or ${kind} = 'mail' or ${kind} = 'message')`,
    isInteger(table.attempts),
    ...[table.dueAt, table.leaseUntil].map((column) => isTimeOrNull(column)),
  );
  return sql`${status} <> 'delivered' and ${status} <> 'given_up' and ${status} <> 'dropped' and not (${isSound})`;
}

function all(...conditions: readonly SQL[]): SQL {
  return sql.join([...conditions], sql` and `);
}
