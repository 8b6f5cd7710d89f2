import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** The tables for drizzle. A test compares them with the migrations, which are authoritative. */
export const accounts = sqliteTable("accounts", {
  id: text().primaryKey(),
  sealedRootSecret: text("sealed_root_secret").notNull(),
  createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
  allowedAt: integer("allowed_at", { mode: "timestamp_ms" }),
  allowedBy: text("allowed_by"),
});

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    name: text().notNull(),
    role: text({ enum: ["owner", "approver", "agent", "reader"] }).notNull(),
    hold: text({ enum: ["none", "writes", "all"] }).notNull(),
    hash: text().notNull().unique(),
    last4: text().notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    lastUsedAt: integer("last_used_at", { mode: "timestamp_ms" }),
    revokedAt: integer("revoked_at", { mode: "timestamp_ms" }),
    scope: text({ enum: ["own", "account"] })
      .notNull()
      .default("own"),
    replaces: text(),
  },
  (table) => [index("api_keys_by_account").on(table.accountId, table.revokedAt, table.createdAt, table.id)],
);

export const people = sqliteTable("people", {
  id: text().primaryKey(),
  email: text().notNull(),
  emailKey: text("email_key").notNull().unique(),
  passwordHash: text("password_hash").notNull(),
  createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
});

export const members = sqliteTable(
  "members",
  {
    accountId: text("account_id").notNull(),
    personId: text("person_id").notNull(),
    joinedAt: integer("joined_at", { mode: "timestamp_ms" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.personId] }),
    index("members_by_account").on(table.accountId, table.joinedAt, table.personId),
    index("members_by_person").on(table.personId, table.joinedAt),
  ],
);

export const sessions = sqliteTable(
  "sessions",
  {
    hash: text().primaryKey(),
    personId: text("person_id").notNull(),
    accountId: text("account_id").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    expiresAt: integer("expires_at", { mode: "timestamp_ms" }).notNull(),
    secretHash: text("secret_hash"),
  },
  (table) => [
    index("sessions_by_person").on(table.personId, table.createdAt),
    index("sessions_by_end").on(table.expiresAt),
  ],
);

export const welcomeLinks = sqliteTable(
  "welcome_links",
  {
    hash: text().primaryKey(),
    personId: text("person_id"),
    accountId: text("account_id").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    expiresAt: integer("expires_at", { mode: "timestamp_ms" }).notNull(),
  },
  (table) => [
    index("welcome_links_by_account").on(table.accountId, table.personId),
    index("welcome_links_by_end").on(table.expiresAt),
  ],
);

export const signingSeeds = sqliteTable(
  "signing_seeds",
  {
    seq: integer().primaryKey(),
    id: text().notNull().unique(),
    accountId: text("account_id").notNull(),
    origin: text().notNull(),
    sealedSeed: text("sealed_seed").notNull(),
    rotatedAt: integer("rotated_at").notNull(),
  },
  (table) => [index("signing_seeds_by_origin").on(table.accountId, table.origin, table.seq)],
);

export const actions = sqliteTable(
  "actions",
  {
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
    approve: integer().notNull(),
    callback: text(),
    notifyEmail: text("notify_email"),
    createdAt: integer("created_at").notNull(),
    createdBy: text("created_by").notNull(),
    dueAt: integer("due_at"),
    scheduledAt: integer("scheduled_at").notNull(),
    leaseUntil: integer("lease_until"),
    startedAt: integer("started_at"),
    finishedAt: integer("finished_at"),
    approvedAt: integer("approved_at"),
    approvedBy: text("approved_by"),
    approvedDigest: text("approved_digest"),
    lastError: text("last_error"),
    errorSource: text("error_source"),
    responseCode: integer("response_code"),
    responseTruncated: integer("response_truncated"),
    durationMs: integer("duration_ms"),
    sealedHeaders: text("sealed_headers"),
    body: text(),
    responseBody: text("response_body"),
    keyId: text("key_id").notNull().default(""),
    keyRole: text("key_role").notNull().default("owner"),
    keyHold: text("key_hold").notNull().default("none"),
  },
  (table) => [
    index("actions_by_account").on(table.accountId, table.id),
    index("actions_by_hostname").on(table.accountId, table.hostname, table.id),
    index("actions_by_status").on(table.accountId, table.status, table.id),
    index("actions_by_dedupe").on(table.accountId, table.dedupe, table.id),
    index("actions_pending").on(table.accountId, table.host, table.keyId, table.dueAt),
    index("actions_active").on(table.accountId, table.id, table.leaseUntil),
    index("actions_held").on(table.id),
    index("actions_held_by_key").on(table.accountId, table.keyId, table.id),
    index("actions_broken").on(table.id),
    index("actions_by_key").on(table.accountId, table.keyId, table.id),
  ],
);

export const actionKeys = sqliteTable(
  "action_keys",
  {
    accountId: text("account_id").notNull(),
    kind: text().notNull(),
    key: text().notNull(),
    actionId: text("action_id").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.kind, table.key] }),
    index("action_keys_by_age").on(table.createdAt),
  ],
);

export const timeline = sqliteTable(
  "timeline",
  {
    seq: integer().primaryKey(),
    actionId: text("action_id").notNull(),
    accountId: text("account_id").notNull(),
    at: integer().notNull(),
    run: integer().notNull(),
    revision: integer().notNull(),
    type: text().notNull(),
    subject: text().notNull().default(""),
    status: text().notNull(),
    detail: text().notNull(),
  },
  (table) => [uniqueIndex("timeline_once").on(table.actionId, table.revision, table.type, table.subject)],
);

export const outbox = sqliteTable(
  "outbox",
  {
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
    dueAt: integer("due_at"),
    scheduledAt: integer("scheduled_at").notNull(),
    leaseUntil: integer("lease_until"),
    createdAt: integer("created_at").notNull(),
    sentAt: integer("sent_at"),
    lastError: text("last_error"),
    keyId: text("key_id").notNull().default(""),
  },
  (table) => [
    uniqueIndex("outbox_once").on(table.actionId, table.revision, table.kind, table.event),
    index("outbox_by_account").on(table.accountId, table.id),
    index("outbox_pending").on(table.kind, table.accountId, table.host, table.keyId, table.dueAt),
    index("outbox_active").on(table.kind, table.leaseUntil),
    index("outbox_mailed_to").on(table.host, table.sentAt),
    index("outbox_mailed_by").on(table.accountId, table.sentAt),
    index("outbox_broken").on(table.id),
  ],
);

export const callbackHosts = sqliteTable(
  "callback_hosts",
  {
    accountId: text("account_id").notNull(),
    host: text().notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.host] })],
);

export const callbackOverlaps = sqliteTable(
  "callback_overlaps",
  {
    accountId: text("account_id").notNull(),
    origin: text().notNull(),
    until: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.origin] })],
);

export const approvalLinks = sqliteTable(
  "approval_links",
  {
    actionId: text("action_id").notNull(),
    run: integer().notNull(),
    decision: text({ enum: ["approve", "reject"] }).notNull(),
    hash: text().notNull(),
    expiresAt: integer("expires_at", { mode: "timestamp_ms" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.actionId, table.run, table.decision] })],
);

export const pauses = sqliteTable(
  "pauses",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    kind: text().notNull(),
    subject: text().notNull(),
    reason: text(),
    cancels: integer().notNull(),
    createdAt: integer("created_at").notNull(),
    createdBy: text("created_by").notNull(),
    endedAt: integer("ended_at"),
    endedBy: text("ended_by"),
  },
  (table) => [
    uniqueIndex("pauses_in_force").on(table.accountId, table.kind, table.subject),
    index("pauses_by_subject").on(table.accountId, table.kind, table.subject, table.createdAt),
    index("pauses_by_end").on(table.endedAt),
  ],
);

export const rejections = sqliteTable(
  "rejections",
  {
    seq: integer().primaryKey(),
    accountId: text("account_id").notNull(),
    keyId: text("key_id").notNull(),
    digest: text().notNull(),
    kind: text().notNull(),
    at: integer().notNull(),
    actionId: text("action_id").notNull(),
    run: integer().notNull(),
    actor: text().notNull(),
    reason: text(),
  },
  (table) => [
    index("rejections_by_request").on(table.accountId, table.keyId, table.digest, table.at),
    index("rejections_by_key").on(table.accountId, table.keyId, table.at),
    index("rejections_by_age").on(table.at),
  ],
);

export const audit = sqliteTable(
  "audit",
  {
    seq: integer().primaryKey(),
    at: integer().notNull(),
    accountId: text("account_id").notNull(),
    actor: text().notNull(),
    kind: text().notNull(),
    subject: text().notNull(),
    client: text().notNull(),
    detail: text().notNull(),
  },
  (table) => [index("audit_by_account").on(table.accountId, table.seq)],
);

export const facts = sqliteTable("facts", { name: text().primaryKey(), value: text().notNull() });
