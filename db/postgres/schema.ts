import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  check,
  customType,
  index,
  pgTable,
  primaryKey,
  smallint,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { POSTGRES_VALUES } from "../sql/values.ts";
import { isBrokenAction, isBrokenNotification, isWaitingToExpire } from "../libsql/schema.ts";

/**
 * The tables in PostgreSQL, for the migrations: what they mean stands in `libsql/schema.ts`, from which the statements
 * are built. A test holds that both have the same tables and columns. Times are in milliseconds, flags 0 and 1. Texts
 * are in the order of their bytes, as in SQLite. The queues' indexes end with the id, so that rows of one time have an order.
 */

const text = customType<{ data: string }>({ dataType: () => 'text collate "C"' });
const number = (name: string) => bigint(name, { mode: "number" });
const time = number;
const flag = (name: string) => smallint(name);

export const accounts = pgTable("accounts", {
  id: text().primaryKey(),
  sealedRootSecret: text("sealed_root_secret").notNull(),
  createdAt: time("created_at").notNull(),
  allowedAt: time("allowed_at"),
  allowedBy: text("allowed_by"),
  /** As its owners call it; null: by the address of its first person. */
  name: text(),
  /** The order in which they were added. SQLite has it without a column. */
  seq: bigserial({ mode: "number" }).notNull().unique(),
});

export const apiKeys = pgTable(
  "api_keys",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    role: text().notNull(),
    hold: text().notNull(),
    hash: text().notNull().unique(),
    last4: text().notNull(),
    createdAt: time("created_at").notNull(),
    lastUsedAt: time("last_used_at"),
    revokedAt: time("revoked_at"),
    scope: text().notNull().default("own"),
    replaces: text(),
    hosts: text(),
    methods: text(),
    dailyActions: number("daily_actions"),
    expiresAt: time("expires_at"),
    createdBy: text("created_by"),
    revokedBy: text("revoked_by"),
    createdById: text("created_by_id"),
  },
  (table) => [
    index("api_keys_by_account").on(table.accountId, table.revokedAt.asc().nullsFirst(), table.createdAt, table.id),
  ],
);

export const keyDays = pgTable(
  "key_days",
  {
    keyId: text("key_id").notNull(),
    day: number("day").notNull(),
    created: number("created").notNull(),
  },
  (table) => [primaryKey({ columns: [table.keyId, table.day] }), index("key_days_by_age").on(table.day)],
);

export const people = pgTable("people", {
  id: text().primaryKey(),
  email: text().notNull(),
  emailKey: text("email_key").notNull().unique(),
  passwordHash: text("password_hash").notNull(),
  createdAt: time("created_at").notNull(),
});

export const members = pgTable(
  "members",
  {
    accountId: text("account_id").notNull(),
    personId: text("person_id").notNull(),
    joinedAt: time("joined_at").notNull(),
    role: text().notNull().default("owner"),
    lastSeenAt: time("last_seen_at"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.personId] }),
    index("members_by_account").on(table.accountId, table.joinedAt, table.personId),
    index("members_by_person").on(table.personId, table.joinedAt, table.accountId),
  ],
);

export const sessions = pgTable(
  "sessions",
  {
    hash: text().primaryKey(),
    personId: text("person_id").notNull(),
    accountId: text("account_id").notNull(),
    createdAt: time("created_at").notNull(),
    expiresAt: time("expires_at").notNull(),
    secretHash: text("secret_hash"),
    client: text(),
    browser: text(),
    lastSeenAt: time("last_seen_at"),
  },
  (table) => [
    index("sessions_by_person").on(table.personId, table.createdAt, table.hash),
    index("sessions_by_end").on(table.expiresAt),
  ],
);

export const welcomeLinks = pgTable(
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

export const invitations = pgTable(
  "invitations",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    email: text().notNull(),
    emailKey: text("email_key").notNull(),
    role: text().notNull(),
    hash: text().notNull().unique(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").notNull(),
    expiresAt: time("expires_at").notNull(),
    createdById: text("created_by_id"),
  },
  (table) => [
    uniqueIndex("invitations_once").on(table.accountId, table.emailKey),
    index("invitations_by_address").on(table.emailKey, table.expiresAt),
    index("invitations_by_end").on(table.expiresAt),
  ],
);

export const identities = pgTable(
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

export const signingSeeds = pgTable(
  "signing_seeds",
  {
    seq: bigserial({ mode: "number" }).primaryKey(),
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
  revision: number("revision").notNull(),
  status: text().notNull(),
  run: number("run").notNull(),
  attempts: number("attempts").notNull(),
  retries: number("retries").notNull(),
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
  createdBy: text("created_by").notNull(),
  dueAt: time("due_at"),
  scheduledAt: time("scheduled_at").notNull(),
  leaseUntil: time("lease_until"),
  startedAt: time("started_at"),
  finishedAt: time("finished_at"),
  approvedAt: time("approved_at"),
  approvedBy: text("approved_by"),
  approvedDigest: text("approved_digest"),
  lastError: text("last_error"),
  errorSource: text("error_source"),
  responseCode: number("response_code"),
  responseTruncated: flag("response_truncated"),
  durationMs: number("duration_ms"),
  sealedHeaders: text("sealed_headers"),
  body: text(),
  responseBody: text("response_body"),
  keyId: text("key_id").notNull().default(""),
  keyRole: text("key_role").notNull().default("owner"),
  keyHold: text("key_hold").notNull().default("none"),
  /** The node whose claim it is. */
  claimedBy: text("claimed_by"),
  title: text(),
  extras: text(),
  expiresAt: time("expires_at"),
  responseHeaders: text("response_headers"),
  lateResult: text("late_result"),
};

export const actions = pgTable("actions", actionColumns, (table) => {
  const isPending = sql`${table.status} = 'pending'`;
  const isHeld = sql`${table.status} = 'awaiting_approval'`;
  return [
    index("actions_by_account").on(table.accountId, table.id),
    index("actions_by_hostname").on(table.accountId, table.hostname, table.id),
    index("actions_by_status")
      .on(table.accountId, table.status, table.id)
      .where(sql`${table.status} <> 'completed' and ${table.status} <> 'active'`),
    index("actions_by_dedupe")
      .on(table.accountId, table.dedupe, table.id)
      .where(sql`${table.dedupe} is not null`),
    index("actions_by_key")
      .on(table.accountId, table.keyId, table.id)
      .where(sql`${table.keyId} <> ''`),
    index("actions_pending").on(table.accountId, table.host, table.keyId, table.dueAt, table.id).where(isPending),
    index("actions_active")
      .on(table.accountId, table.id, table.leaseUntil)
      .where(sql`${table.status} = 'active'`),
    index("actions_held").on(table.id).where(isHeld),
    index("actions_held_by_key").on(table.accountId, table.keyId, table.id).where(isHeld),
    index("actions_held_by_host").on(table.accountId, table.host, table.keyId, table.id).where(isHeld),
    // Where approved calls went.
    index("actions_approved")
      .on(table.accountId, table.hostname, table.keyId)
      .where(sql`${table.status} = 'completed' and ${table.approvedAt} is not null`),
    index("actions_expiring").on(table.expiresAt, table.id).where(isWaitingToExpire(table)),
    index("actions_broken").on(table.id).where(isBrokenAction(table, POSTGRES_VALUES)),
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

export const actionKeys = pgTable(
  "action_keys",
  {
    accountId: text("account_id").notNull(),
    kind: text().notNull(),
    key: text().notNull(),
    actionId: text("action_id").notNull(),
    createdAt: time("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.kind, table.key] }),
    index("action_keys_by_age").on(table.createdAt),
  ],
);

export const attempts = pgTable(
  "attempts",
  {
    actionId: text("action_id").notNull(),
    run: number("run").notNull(),
    attempt: number("attempt").notNull(),
    responseTruncated: flag("response_truncated").notNull(),
    responseHeaders: text("response_headers"),
    responseBody: text("response_body"),
  },
  (table) => [primaryKey({ columns: [table.actionId, table.run, table.attempt] })],
);

export const actionMetadata = pgTable(
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

export const timeline = pgTable(
  "timeline",
  {
    seq: number("seq")
      .primaryKey()
      .default(sql`next_position()`),
    actionId: text("action_id").notNull(),
    accountId: text("account_id").notNull(),
    at: time("at").notNull(),
    run: number("run").notNull(),
    revision: number("revision").notNull(),
    type: text().notNull(),
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
  run: number("run").notNull(),
  revision: number("revision").notNull(),
  kind: text().notNull(),
  event: text().notNull(),
  target: text().notNull(),
  host: text().notNull(),
  payload: text(),
  status: text().notNull(),
  attempts: number("attempts").notNull(),
  dueAt: time("due_at"),
  scheduledAt: time("scheduled_at").notNull(),
  leaseUntil: time("lease_until"),
  createdAt: time("created_at").notNull(),
  sentAt: time("sent_at"),
  lastError: text("last_error"),
  keyId: text("key_id").notNull().default(""),
  claimedBy: text("claimed_by"),
};

export const outbox = pgTable("outbox", outboxColumns, (table) => {
  const isSentMail = sql`${table.kind} = 'mail' and ${table.sentAt} is not null`;
  return [
    uniqueIndex("outbox_once").on(table.actionId, table.revision, table.kind, table.event),
    index("outbox_by_account").on(table.accountId, table.id),
    index("outbox_pending")
      .on(table.kind, table.accountId, table.host, table.keyId, table.dueAt, table.id)
      .where(sql`${table.status} = 'pending'`),
    index("outbox_active")
      .on(table.kind, table.leaseUntil)
      .where(sql`${table.status} = 'active'`),
    index("outbox_mailed_to").on(table.host, table.sentAt).where(isSentMail),
    index("outbox_mailed_by").on(table.accountId, table.sentAt).where(isSentMail),
    index("outbox_broken").on(table.id).where(isBrokenNotification(table, POSTGRES_VALUES)),
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

export const callbackHosts = pgTable(
  "callback_hosts",
  {
    accountId: text("account_id").notNull(),
    host: text().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.host] })],
);

export const hostSettings = pgTable(
  "host_settings",
  {
    accountId: text("account_id").notNull(),
    host: text().notNull(),
    settings: text().notNull(),
    updatedAt: time("updated_at").notNull(),
    updatedBy: text("updated_by").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.host] })],
);

export const channels = pgTable(
  "channels",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    kind: text().notNull(),
    sealedConfig: text("sealed_config").notNull(),
    remindAfterMinutes: number("remind_after_minutes"),
    enabled: flag("enabled").notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").notNull(),
  },
  (table) => [index("channels_by_account").on(table.accountId, table.createdAt, table.id)],
);

export const callbackOverlaps = pgTable(
  "callback_overlaps",
  {
    accountId: text("account_id").notNull(),
    origin: text().notNull(),
    until: time("until").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.origin] })],
);

export const approvalLinks = pgTable(
  "approval_links",
  {
    actionId: text("action_id").notNull(),
    run: number("run").notNull(),
    decision: text().notNull(),
    hash: text().notNull(),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.actionId, table.run, table.decision] })],
);

export const pauses = pgTable(
  "pauses",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    kind: text().notNull(),
    subject: text().notNull(),
    reason: text(),
    cancels: flag("cancels").notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").notNull(),
    endedAt: time("ended_at"),
    endedBy: text("ended_by"),
  },
  (table) => [
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

export const rejections = pgTable(
  "rejections",
  {
    seq: bigserial({ mode: "number" }).primaryKey(),
    accountId: text("account_id").notNull(),
    keyId: text("key_id").notNull(),
    digest: text().notNull(),
    kind: text().notNull(),
    at: time("at").notNull(),
    actionId: text("action_id").notNull(),
    run: number("run").notNull(),
    actor: text().notNull(),
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

export const audit = pgTable(
  "audit",
  {
    seq: bigserial({ mode: "number" }).primaryKey(),
    at: time("at").notNull(),
    accountId: text("account_id").notNull(),
    actor: text().notNull(),
    kind: text().notNull(),
    subject: text().notNull(),
    client: text().notNull(),
    detail: text().notNull(),
  },
  (table) => [index("audit_by_account").on(table.accountId, table.seq)],
);

export const bulkJobs = pgTable(
  "bulk_jobs",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    operation: text().notNull(),
    filter: text().notNull(),
    reason: text(),
    status: text().notNull(),
    matching: number("matching").notNull(),
    done: number("done").notNull(),
    failed: number("failed").notNull(),
    createdAt: time("created_at").notNull(),
    createdBy: text("created_by").notNull(),
    keyId: text("key_id").notNull(),
    personId: text("person_id").notNull(),
    client: text().notNull(),
    finishedAt: time("finished_at"),
    stoppedBy: text("stopped_by"),
  },
  (table) => [
    index("bulk_jobs_by_account").on(table.accountId, table.id),
    index("bulk_jobs_running")
      .on(table.id)
      .where(sql`${table.status} = 'running'`),
    index("bulk_jobs_by_end").on(table.finishedAt),
  ],
);

export const bulkResults = pgTable(
  "bulk_results",
  {
    jobId: text("job_id").notNull(),
    actionId: text("action_id").notNull(),
    run: number("run").notNull(),
    status: text().notNull(),
    actionStatus: text("action_status"),
    code: text(),
    message: text(),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.actionId] }),
    index("bulk_results_by_status").on(table.jobId, table.status, table.actionId),
  ],
);

export const activity = pgTable(
  "activity",
  {
    accountId: text("account_id").notNull(),
    slotMinutes: number("slot_minutes").notNull(),
    at: time("at").notNull(),
    kind: text().notNull(),
    name: text().notNull(),
    created: number("created").notNull(),
    completed: number("completed").notNull(),
    failed: number("failed").notNull(),
    attempts: number("attempts").notNull(),
    failedAttempts: number("failed_attempts").notNull(),
    approved: number("approved").notNull(),
    rejected: number("rejected").notNull(),
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

export const firstSteps = pgTable(
  "first_steps",
  {
    accountId: text("account_id").notNull(),
    personId: text("person_id").notNull(),
    step: text().notNull(),
    at: time("at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.personId, table.step] })],
);

export const facts = pgTable("facts", { name: text().primaryKey(), value: text().notNull() });

/** One row: what is added to the positions of the timeline, so that they rise after a move to another server too. */
export const positions = pgTable("positions", { id: smallint().primaryKey(), base: number("base").notNull() });

/** The processes that serve from this database. */
export const nodes = pgTable("nodes", {
  id: text().primaryKey(),
  version: text().notNull(),
  startedAt: time("started_at").notNull(),
  /** By the database's clock, as all times here. */
  seenAt: time("seen_at").notNull(),
});

/** Which node runs a periodic job, and until when. */
export const jobs = pgTable("jobs", {
  name: text().primaryKey(),
  nodeId: text("node_id").notNull(),
  until: time("until").notNull(),
});
