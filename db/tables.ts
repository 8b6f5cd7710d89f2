/**
 * All tables, with their indexes and checks, for both databases. Times are stored in milliseconds, flags as 0 and 1. Each is listed a
 * second time behind them. Both databases need a migration for each change (docs/development.md).
 */
import { type Column, type SQL, sql } from "drizzle-orm";
import { ACTION_STATUSES } from "../src/core/action.ts";
import type { AuditRow } from "../src/core/audit.ts";
import type { ChannelKind } from "../src/core/channel.ts";
import type { CredentialDecision, CredentialKind, CredentialSettings } from "../src/core/credential.ts";
import { OAUTH_KINDS } from "../src/core/oauth-store.ts";
import { type Actor, HOLDS, MEMBER_ROLES, ROLES } from "../src/core/roles.ts";
import { HTTP_METHODS, type HttpMethod } from "../src/core/target.ts";
import * as sqlite from "drizzle-orm/sqlite-core";

/** How SQLite builds tables, indexes and columns. `postgres/schema.ts` has PostgreSQL's. */
export const SQLITE = {
  table: sqlite.sqliteTable,
  index: sqlite.index,
  uniqueIndex: sqlite.uniqueIndex,
  primaryKey: sqlite.primaryKey,
  check: sqlite.check,
  text: sqlite.text,
  number: (name?: string) => (name === undefined ? sqlite.integer() : sqlite.integer(name)),
  time: (name: string) => sqlite.integer(name, { mode: "timestamp_ms" }),
  flag: (name: string) => sqlite.integer(name, { mode: "boolean" }),
  json: <Value>() => sqlite.text({ mode: "json" }).$type<Value>(),
  /** Numbers rows in the order of inserts. */
  serial: () => sqlite.integer().primaryKey(),
  /** Numbers rows of the timeline. */
  position: () => sqlite.integer().primaryKey(),
  /** Columns that order rows without a number: none, since SQLite numbers all rows. */
  addedOrder: {},
  nullsFirst: (column: sqlite.SQLiteColumn): sqlite.SQLiteColumn | SQL => column,
  /** The last columns of a queue's index, so that rows with the same time have an order. */
  inOrder: (_id: sqlite.SQLiteColumn): readonly sqlite.SQLiteColumn[] => [],
};

/** Describes the tables with the builders of a database. */
export function describeTables(dialect: typeof SQLITE) {
  const { table, index, uniqueIndex, primaryKey, check } = dialect;
  const { text, number, time, flag, json, serial, position, addedOrder } = dialect;
  const { nullsFirst, inOrder } = dialect;

  // In the order in which a move to PostgreSQL copies them. Facts come last, so that what they say about the other tables, such as the
  // check value of the master key, is there only when those tables are.
  return {
    accounts: table("accounts", {
      id: text().primaryKey(),
      sealedRootSecret: text("sealed_root_secret").notNull(),
      createdAt: time("created_at").notNull(),
      /**
       * When an owner of the first account, or the setting SIGNUPS, allowed a signed-up account. Null: once sign-ups close,
       * a pause of the kind 'sign_up' stops it.
       */
      allowedAt: time("allowed_at"),
      allowedBy: text("allowed_by"),
      /** Null: pages show the address of its first person instead. */
      name: text(),
      ...addedOrder,
    }),

    apiKeys: table(
      "api_keys",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        name: text().notNull(),
        role: text({ enum: ROLES }).notNull(),
        hold: text({ enum: HOLDS }).notNull(),
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
        /** Limits: JSON lists of hosts and methods, how many creates a day, and when it expires. Null: no limit. */
        hosts: json<readonly string[]>(),
        methods: json<readonly HttpMethod[]>(),
        dailyActions: number("daily_actions"),
        expiresAt: time("expires_at"),
        /** Who created and who revoked it; null: not known. */
        createdBy: text("created_by").$type<Actor>(),
        revokedBy: text("revoked_by").$type<Actor>(),
        /** Id of the person or key that created it; null: neither did, or it is not known. */
        createdById: text("created_by_id"),
      },
      // For lists, with active keys first, since NULL sorts before every time.
      (row) => [index("api_keys_by_account").on(row.accountId, nullsFirst(row.revokedAt), row.createdAt, row.id)],
    ),

    /** How many actions a key with a daily limit created on a day (days since 1970, UTC). */
    keyDays: table(
      "key_days",
      {
        keyId: text("key_id").notNull(),
        day: number().notNull(),
        created: number().notNull(),
      },
      (row) => [primaryKey({ columns: [row.keyId, row.day] }), index("key_days_by_age").on(row.day)],
    ),

    people: table("people", {
      id: text().primaryKey(),
      email: text().notNull(),
      /** The address without case. */
      emailKey: text("email_key").notNull().unique(),
      /** Empty: they sign in only by OpenID Connect. */
      passwordHash: text("password_hash").notNull(),
      createdAt: time("created_at").notNull(),
    }),

    /** The people of an account. */
    members: table(
      "members",
      {
        accountId: text("account_id").notNull(),
        personId: text("person_id").notNull(),
        joinedAt: time("joined_at").notNull(),
        role: text({ enum: MEMBER_ROLES }).notNull().default("owner"),
        /** When they last used this account. A login begins in the account that was used last. */
        lastSeenAt: time("last_seen_at"),
      },
      (row) => [
        primaryKey({ columns: [row.accountId, row.personId] }),
        index("members_by_account").on(row.accountId, row.joinedAt, row.personId), // people of an account, the first first
        index("members_by_person").on(row.personId, row.joinedAt, row.accountId), // accounts of a person, at a login
      ],
    ),

    sessions: table(
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
        /** For the person's list of sessions: the client that began it, and when it was last used. */
        client: text(),
        browser: text(),
        lastSeenAt: time("last_seen_at"),
      },
      (row) => [
        index("sessions_by_person").on(row.personId, row.createdAt, row.hash), // sessions of a person
        index("sessions_by_end").on(row.expiresAt), // to prune
      ],
    ),

    /** Links that the operator issues. Without a person, a link invites the account's first; with one, it resets the password. */
    welcomeLinks: table(
      "welcome_links",
      {
        hash: text().primaryKey(),
        personId: text("person_id"),
        accountId: text("account_id").notNull(),
        createdAt: time("created_at").notNull(),
        expiresAt: time("expires_at").notNull(),
      },
      (row) => [
        index("welcome_links_by_account").on(row.accountId, row.personId), // earlier links, which a new one voids
        index("welcome_links_by_end").on(row.expiresAt), // to prune
      ],
    ),

    /** Open invitations to an account, one per address. The row is deleted when it is accepted or withdrawn. */
    invitations: table(
      "invitations",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        email: text().notNull(),
        /** The address without case. */
        emailKey: text("email_key").notNull(),
        role: text({ enum: MEMBER_ROLES }).notNull(),
        /** SHA-256 of the token in its link. */
        hash: text().notNull().unique(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        expiresAt: time("expires_at").notNull(),
        /** Id of the person or key that created it; null: not known. */
        createdById: text("created_by_id"),
      },
      (row) => [
        uniqueIndex("invitations_once").on(row.accountId, row.emailKey), // those of an account, one for an address
        index("invitations_by_address").on(row.emailKey, row.expiresAt), // those of whoever signs in
        index("invitations_by_end").on(row.expiresAt), // to prune
      ],
    ),

    /** The person that an OpenID Connect provider's subject stands for. Not found by address, which another person may get later. */
    identities: table(
      "identities",
      {
        issuer: text().notNull(),
        subject: text().notNull(),
        personId: text("person_id").notNull(),
        createdAt: time("created_at").notNull(),
      },
      (row) => [
        primaryKey({ columns: [row.issuer, row.subject] }),
        uniqueIndex("identities_once").on(row.personId, row.issuer), // whether a person has a subject
      ],
    ),

    /**
     * Signing secrets are derived from the newest seed that applies: of one origin, or (empty) of all origins. Ordered by
     * `seq`, since the wall clock may be set back between two rotations.
     */
    signingSeeds: table(
      "signing_seeds",
      {
        seq: serial(),
        id: text().notNull().unique(),
        accountId: text("account_id").notNull(),
        origin: text().notNull(),
        sealedSeed: text("sealed_seed").notNull(),
        rotatedAt: time("rotated_at").notNull(),
      },
      (row) => [index("signing_seeds_by_origin").on(row.accountId, row.origin, row.seq)], // the two newest, at each signature
    ),

    /** Hosts, listed by an owner, to which callbacks of keys with a hold may go. */
    callbackHosts: table(
      "callback_hosts",
      {
        accountId: text("account_id").notNull(),
        host: text().notNull(),
        createdAt: time("created_at").notNull(),
      },
      (row) => [primaryKey({ columns: [row.accountId, row.host] })],
    ),

    /** An account's settings for calls to a host (JSON of the API's members), or to all hosts if the host is empty. */
    hostSettings: table(
      "host_settings",
      {
        accountId: text("account_id").notNull(),
        host: text().notNull(),
        settings: text().notNull(),
        updatedAt: time("updated_at").notNull(),
        updatedBy: text("updated_by").$type<Actor>().notNull(),
      },
      (row) => [primaryKey({ columns: [row.accountId, row.host] })],
    ),

    /** The rules of an account, in the order in which they judge: JSON of `src/rules/rule.ts`. */
    rules: table(
      "rules",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        position: number().notNull(),
        /** Counts from 1; every change of its definition adds one. */
        version: number().notNull(),
        definition: text().notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        changedAt: time("changed_at").notNull(),
        changedBy: text("changed_by").$type<Actor>().notNull(),
      },
      (row) => [uniqueIndex("rules_in_order").on(row.accountId, row.position)], // the rules of an account
    ),

    /** What was counted for rules with `sum` or `more_than` (`src/core/account-rules.ts`). */
    ruleCounts: table(
      "rule_counts",
      {
        ruleId: text("rule_id").notNull(),
        subject: text().notNull(),
        /** When the period that it counts begins. */
        start: number("start_at").notNull(),
        /** A whole number of any size. */
        amount: text().notNull(),
        /** Whether the audit log has it that a call went beyond the limit. */
        reported: flag("told").notNull(),
        until: time("until").notNull(),
      },
      (row) => [
        primaryKey({ columns: [row.ruleId, row.subject, row.start] }),
        index("rule_counts_by_end").on(row.until), // to prune
      ],
    ),

    /** What people allow agents for a while (`src/core/grant.ts`). A row stays after the grant has ended, while calls wait that name it. */
    grants: table(
      "grants",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        keyId: text("key_id").notNull(),
        actionId: text("action_id").notNull(),
        likeness: text().notNull(),
        vary: json<readonly string[]>().notNull(),
        max: json<Readonly<Record<string, number>>>().notNull(),
        calls: number().notNull(),
        used: number().notNull(),
        expiresAt: time("expires_at").notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        createdById: text("created_by_id").notNull(),
        endedAt: time("ended_at"),
        endedBy: text("ended_by").$type<Actor>(),
      },
      (row) => [
        index("grants_in_force")
          .on(row.accountId, row.expiresAt)
          .where(sql`${row.endedAt} is null`),
        index("grants_by_end").on(row.expiresAt), // grants in force of all accounts
        check("grants_used", sql`${row.used} between 0 and ${row.calls}`),
      ],
    ),

    /** Credentials that agents name and never see (`src/core/credential.ts`). */
    credentials: table(
      "credentials",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        name: text().notNull(),
        settings: json<CredentialSettings>().notNull(),
        sealedSecret: text("sealed_secret").notNull(),
        hint: text(),
        hosts: json<readonly string[]>().notNull(),
        paths: json<readonly string[]>(),
        methods: json<readonly HttpMethod[]>(),
        keys: json<readonly string[]>().notNull(),
        enabled: flag("enabled").notNull(),
        expiresAt: time("expires_at"),
        revision: number().notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        replacedAt: time("replaced_at").notNull(),
        lastUsedAt: time("last_used_at"),
        echoes: json<readonly string[]>().notNull(),
      },
      (row) => [uniqueIndex("credentials_by_name").on(row.accountId, row.name)], // those of an account, and whether a name is taken
    ),

    credentialRequests: table(
      "credential_requests",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        keyId: text("key_id").notNull(),
        host: text().notNull(),
        name: text(),
        kind: text().$type<CredentialKind>(),
        paths: json<readonly string[]>(),
        methods: json<readonly HttpMethod[]>(),
        reason: text().notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        expiresAt: time("expires_at").notNull(),
        decision: text().$type<CredentialDecision>(),
        decidedAt: time("decided_at"),
        decidedBy: text("decided_by").$type<Actor>(),
        decisionReason: text("decision_reason"),
        credential: text(),
      },
      (row) => [
        index("credential_requests_by_account").on(row.accountId, row.id), // lists
        index("credential_requests_by_key").on(row.keyId, row.id), // what a key has asked for
        index("credential_requests_open")
          .on(row.accountId, row.expiresAt, row.id)
          .where(sql`${row.decision} is null`),
        index("credential_requests_by_end").on(row.expiresAt), // to prune
      ],
    ),

    /** What the authorization server stores (`src/core/oauth-store.ts`). `id` and `grant_id` are hashes. */
    oauthArtifacts: table(
      "oauth_artifacts",
      {
        id: text().primaryKey(),
        kind: text({ enum: OAUTH_KINDS }).notNull(),
        accountId: text("account_id").notNull(),
        keyId: text("key_id"),
        grantId: text("grant_id"),
        sealedPayload: text("sealed_payload").notNull(),
        createdAt: time("created_at").notNull(),
        consumedAt: time("consumed_at"),
        expiresAt: time("expires_at").notNull(),
      },
      (row) => [
        index("oauth_artifacts_by_grant")
          .on(row.grantId, row.createdAt)
          .where(sql`${row.grantId} is not null`),
        index("oauth_artifacts_by_account").on(row.accountId, row.kind, row.createdAt), // connections and clients
        index("oauth_artifacts_by_end").on(row.expiresAt), // to prune
      ],
    ),

    /** Where an account asks for approval: email addresses, or the URL of an incoming webhook, sealed. */
    channels: table(
      "channels",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        name: text().notNull(),
        kind: text().$type<ChannelKind>().notNull(),
        sealedConfig: text("sealed_config").notNull(),
        remindAfterMinutes: number("remind_after_minutes"),
        enabled: flag("enabled").notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
      },
      (row) => [index("channels_by_account").on(row.accountId, row.createdAt, row.id)], // the channels of an account
    ),

    /** Origins that got callbacks signed with the secret of calls. Until this time, that secret signs their callbacks, too. */
    callbackOverlaps: table(
      "callback_overlaps",
      {
        accountId: text("account_id").notNull(),
        origin: text().notNull(),
        until: time("until").notNull(),
      },
      (row) => [primaryKey({ columns: [row.accountId, row.origin] })],
    ),

    /**
     * What an owner has paused: `subject` is the id of a key, a host, or empty for the whole account. A row stays after the
     * pause has ended, since timelines show it.
     */
    pauses: table(
      "pauses",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        kind: text({ enum: ["account", "key", "host", "sign_up"] }).notNull(),
        subject: text().notNull(),
        reason: text(),
        /** The actions that it covers are cancelled step by step. It ends when none is left. */
        cancels: flag("cancels").notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        endedAt: time("ended_at"),
        endedBy: text("ended_by").$type<Actor>(),
      },
      (row) => [
        // For pauses in force: every claim reads this index, and it keeps anything from being paused twice.
        uniqueIndex("pauses_in_force")
          .on(row.accountId, row.kind, row.subject)
          .where(sql`${row.endedAt} is null`),
        index("pauses_by_subject").on(row.accountId, row.kind, row.subject, row.createdAt), // pauses of an action, also ended ones
        index("pauses_by_end")
          .on(row.endedAt)
          .where(sql`${row.endedAt} is not null`),
        check("pauses_subject", sql`${row.kind} <> '' and (${row.kind} = 'account') = (${row.subject} = '')`),
      ],
    ),

    /**
     * Rejected requests and their repetitions ('asked'), kept for 24 hours, so that a request is repeated twice at most. `digest` identifies the
     * request; `similar` also matches requests that differ only in ids, query and body. It is empty in rows of older versions.
     */
    rejections: table(
      "rejections",
      {
        seq: serial(),
        accountId: text("account_id").notNull(),
        keyId: text("key_id").notNull(),
        digest: text().notNull(),
        kind: text({ enum: ["rejected", "asked"] }).notNull(),
        at: time("at").notNull(),
        actionId: text("action_id").notNull(),
        run: number().notNull(),
        actor: text().$type<Actor>().notNull(),
        reason: text(),
        similar: text("similar_digest").notNull().default(""),
      },
      (row) => [
        index("rejections_by_request").on(row.accountId, row.keyId, row.digest, row.at), // how often a request was made
        index("rejections_by_similar").on(row.accountId, row.keyId, row.similar, row.at), // how many like it were rejected
        index("rejections_by_key").on(row.accountId, row.keyId, row.at), // whether a key may be rejected more
        index("rejections_by_age").on(row.at), // to prune
      ],
    ),

    actions: table(
      "actions",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        revision: number().notNull(),
        status: text({ enum: ACTION_STATUSES }).notNull(),
        run: number().notNull(),
        attempts: number().notNull(),
        retries: number().notNull(),
        url: text().notNull(),
        hostname: text().notNull(),
        host: text().notNull(),
        method: text({ enum: HTTP_METHODS }).notNull(),
        dedupe: text(),
        idempotencyKey: text("idempotency_key"),
        onUnknown: text("on_unknown", { enum: ["retry", "stop"] }).notNull(),
        approve: flag("approve").notNull(),
        callback: text(),
        notifyEmail: text("notify_email"),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        dueAt: time("due_at"),
        /** When `dueAt` was written. A time in the future means that the clock was set back since. 0: `dueAt` is a `run_at`. */
        scheduledAt: time("scheduled_at").notNull(),
        leaseUntil: time("lease_until"),
        startedAt: time("started_at"),
        finishedAt: time("finished_at"),
        approvedAt: time("approved_at"),
        approvedBy: text("approved_by"),
        approvedDigest: text("approved_digest"),
        lastError: text("last_error"),
        errorSource: text("error_source", { enum: ["target", "dispatch"] }),
        responseCode: number("response_code"),
        responseTruncated: flag("response_truncated"),
        durationMs: number("duration_ms"),
        // Long values come last, since columns after them are slow to read in SQLite.
        sealedHeaders: text("sealed_headers"),
        body: text(),
        responseBody: text("response_body"),
        /** The key that created it, in whose queue it is. Empty: no key did, or it is not known. */
        keyId: text("key_id").notNull().default(""),
        /** Role and hold of the key at the create. */
        keyRole: text("key_role", { enum: ROLES }).notNull().default("owner"),
        keyHold: text("key_hold", { enum: HOLDS }).notNull().default("none"),
        /** The node whose claim made it active; stays when the attempt has ended. */
        claimedBy: text("claimed_by"),
        /** What the call does, in the requester's words. */
        title: text(),
        /** Optional members of the create: JSON of `src/core/action.ts`. */
        extras: text(),
        /** No attempt begins from this time on. */
        expiresAt: time("expires_at"),
        /** The headers of the last response: a JSON list of pairs, without values that may be secret. */
        responseHeaders: text("response_headers"),
        /** A result that came after its attempt was closed as unknown: JSON of `src/core/action.ts`. */
        lateResult: text("late_result"),
        /** Why it was held, or which rule let it pass: JSON of `src/core/action-policy.ts`. Null: nothing held it. */
        policy: text(),
        /** What its run has added to counts of rules: JSON of `src/core/account-rules.ts`. Null: nothing. */
        counted: text(),
      },
      (row) => {
        const isPending = sql`${row.status} = 'pending'`;
        const isHeld = sql`${row.status} = 'awaiting_approval'`;
        return [
          // For lists: all, by host, and by status except for the two statuses of nearly all actions, since each index entry costs an insert
          // and a delete.
          index("actions_by_account").on(row.accountId, row.id),
          index("actions_by_hostname").on(row.accountId, row.hostname, row.id),
          index("actions_by_status")
            .on(row.accountId, row.status, row.id)
            .where(sql`${row.status} <> 'completed' and ${row.status} <> 'active'`),
          index("actions_by_dedupe")
            .on(row.accountId, row.dedupe, row.id)
            .where(sql`${row.dedupe} is not null`),
          // Partial, so that only queries with this condition use it. Otherwise, it may be preferred to a better one by status.
          index("actions_by_key")
            .on(row.accountId, row.keyId, row.id)
            .where(sql`${row.keyId} <> ''`),
          // For delivery: the queue of each lane (host before key, since the overview groups by host), and actions in
          // flight, for lists and expired leases.
          index("actions_pending")
            .on(row.accountId, row.host, row.keyId, row.dueAt, ...inOrder(row.id))
            .where(isPending),
          index("actions_active")
            .on(row.accountId, row.id, row.leaseUntil)
            .where(sql`${row.status} = 'active'`),
          // For held actions: to count them, to cancel them when they expire, by key, and by host.
          index("actions_held").on(row.id).where(isHeld),
          index("actions_held_by_key").on(row.accountId, row.keyId, row.id).where(isHeld),
          index("actions_held_by_host").on(row.accountId, row.host, row.keyId, row.id).where(isHeld),
          // To know the hosts that approved calls went to.
          index("actions_approved")
            .on(row.accountId, row.hostname, row.keyId)
            .where(sql`${row.status} = 'completed' and ${row.approvedAt} is not null`),
          index("actions_expiring").on(row.expiresAt, row.id).where(isWaitingToExpire(row)),
          // To show what rules have done lately.
          index("actions_ruled")
            .on(row.accountId, row.createdAt)
            .where(sql`${row.policy} is not null`),
          // Neither a crash nor a manual change may leave a row that would be sent without approval, too often, or never.
          check(
            "actions_status",
            sql`${row.status} in ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')`,
          ),
          check(
            "actions_counts",
            sql`${row.attempts} between 0 and ${row.retries} and ${row.revision} > 0 and ${row.run} > 0`,
          ),
          check(
            "actions_approved",
            sql`${row.status} not in ('pending', 'active') or ${row.approve} = 0 or ${row.approvedAt} is not null`,
          ),
          check(
            "actions_due",
            sql`${row.status} <> 'pending' or (${row.dueAt} is not null and ${row.attempts} < ${row.retries})`,
          ),
          check(
            "actions_leased",
            sql`${row.status} <> 'active' or (${row.leaseUntil} is not null and ${row.attempts} > 0)`,
          ),
        ];
      },
    ),

    /** The newest responses of earlier attempts: an action itself has only its last result. */
    attempts: table(
      "attempts",
      {
        actionId: text("action_id").notNull(),
        run: number().notNull(),
        attempt: number().notNull(),
        responseTruncated: flag("response_truncated").notNull(),
        responseHeaders: text("response_headers"),
        responseBody: text("response_body"),
      },
      (row) => [primaryKey({ columns: [row.actionId, row.run, row.attempt] })],
    ),

    /** The action that a dedupe or idempotency key names. A unique index on actions could not express the window of 24 h. */
    actionKeys: table(
      "action_keys",
      {
        accountId: text("account_id").notNull(),
        kind: text({ enum: ["idempotency", "dedupe"] }).notNull(),
        key: text().notNull(),
        actionId: text("action_id").notNull(),
        createdAt: time("created_at").notNull(),
      },
      (row) => [
        primaryKey({ columns: [row.accountId, row.kind, row.key] }),
        index("action_keys_by_age").on(row.createdAt), // to prune
      ],
    ),

    /** The metadata of actions, so that lists can search it. */
    actionMetadata: table(
      "action_metadata",
      {
        actionId: text("action_id").notNull(),
        accountId: text("account_id").notNull(),
        name: text().notNull(),
        value: text().notNull(),
      },
      (row) => [
        primaryKey({ columns: [row.actionId, row.name] }),
        index("action_metadata_by_value").on(row.accountId, row.name, row.value, row.actionId), // lists by metadata
      ],
    ),

    /** Links of approval mails, by hash. They are deleted with their action, since old links lead to its receipt. */
    approvalLinks: table(
      "approval_links",
      {
        actionId: text("action_id").notNull(),
        run: number().notNull(),
        decision: text({ enum: ["approve", "reject"] }).notNull(),
        hash: text().notNull(),
        expiresAt: time("expires_at").notNull(),
      },
      (row) => [primaryKey({ columns: [row.actionId, row.run, row.decision] })],
    ),

    /** Callbacks, mails and messages to channels. */
    outbox: table(
      "outbox",
      {
        id: text().primaryKey(),
        actionId: text("action_id").notNull(),
        accountId: text("account_id").notNull(),
        run: number().notNull(),
        revision: number().notNull(),
        kind: text({ enum: ["callback", "mail", "message"] }).notNull(),
        event: text().notNull(),
        target: text().notNull(),
        host: text().notNull(),
        payload: text(),
        status: text({ enum: ["pending", "active", "delivered", "given_up", "dropped"] }).notNull(),
        attempts: number().notNull(),
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
      },
      (row) => {
        const isSentMail = sql`${row.kind} = 'mail' and ${row.sentAt} is not null`;
        return [
          uniqueIndex("outbox_once").on(row.actionId, row.revision, row.kind, row.event),
          index("outbox_by_account").on(row.accountId, row.id), // lists
          // For delivery: the queue of each lane, and expired leases.
          index("outbox_pending")
            .on(row.kind, row.accountId, row.host, row.keyId, row.dueAt, ...inOrder(row.id))
            .where(sql`${row.status} = 'pending'`),
          index("outbox_active")
            .on(row.kind, row.leaseUntil)
            .where(sql`${row.status} = 'active'`),
          // For the mails of the last hour, by recipient and by account.
          index("outbox_mailed_to").on(row.host, row.sentAt).where(isSentMail),
          index("outbox_mailed_by").on(row.accountId, row.sentAt).where(isSentMail),
          check(
            "outbox_status",
            sql`${row.status} in ('pending', 'active', 'delivered', 'given_up', 'dropped') and ${row.attempts} >= 0`,
          ),
          check("outbox_due", sql`${row.status} <> 'pending' or ${row.dueAt} is not null`),
          check(
            "outbox_leased",
            sql`${row.status} <> 'active' or (${row.leaseUntil} is not null and ${row.attempts} > 0)`,
          ),
        ];
      },
    ),

    /** `seq` is the position in the event stream. Pruning keeps the newest row, so that no number is used twice. */
    timeline: table(
      "timeline",
      {
        seq: position(),
        actionId: text("action_id").notNull(),
        accountId: text("account_id").notNull(),
        at: time("at").notNull(),
        run: number().notNull(),
        revision: number().notNull(),
        type: text().notNull(),
        /** For events of notifications: the outbox row and its attempt. Empty for changes of state. */
        subject: text().notNull().default(""),
        status: text({ enum: ACTION_STATUSES }).notNull(),
        detail: text().notNull(),
      },
      (row) => [uniqueIndex("timeline_once").on(row.actionId, row.revision, row.type, row.subject)],
    ),

    /**
     * Who did what to the account. Rows are never changed, and only retention deletes them. Pruning keeps the newest row, so
     * that no number is used twice.
     */
    audit: table(
      "audit",
      {
        seq: serial(),
        at: time("at").notNull(),
        accountId: text("account_id").notNull(),
        actor: text().$type<AuditRow["actor"]>().notNull(),
        kind: text().$type<AuditRow["kind"]>().notNull(),
        subject: text().notNull(),
        client: text().notNull(),
        detail: json<AuditRow["detail"]>().notNull(),
      },
      (row) => [index("audit_by_account").on(row.accountId, row.seq)], // pages of the log
    ),

    /** Bulk jobs. Their ids sort by time. */
    bulkJobs: table(
      "bulk_jobs",
      {
        id: text().primaryKey(),
        accountId: text("account_id").notNull(),
        operation: text({ enum: ["retry", "cancel"] }).notNull(),
        /** The filter as the API has it, as JSON. */
        filter: text().notNull(),
        reason: text(),
        status: text({ enum: ["running", "finished", "stopped"] }).notNull(),
        matching: number().notNull(),
        done: number().notNull(),
        failed: number().notNull(),
        createdAt: time("created_at").notNull(),
        createdBy: text("created_by").$type<Actor>().notNull(),
        /** The key or person that began it. The job acts with the rights that they have while it runs. */
        keyId: text("key_id").notNull(),
        personId: text("person_id").notNull(),
        client: text().notNull(),
        finishedAt: time("finished_at"),
        stoppedBy: text("stopped_by").$type<Actor>(),
      },
      (row) => [
        index("bulk_jobs_by_account").on(row.accountId, row.id), // lists
        index("bulk_jobs_running")
          .on(row.id)
          .where(sql`${row.status} = 'running'`),
        index("bulk_jobs_by_end").on(row.finishedAt), // to prune
      ],
    ),

    /** The actions of a bulk job, with the result for each. */
    bulkResults: table(
      "bulk_results",
      {
        jobId: text("job_id").notNull(),
        actionId: text("action_id").notNull(),
        /** The run of the action when the job began. */
        run: number().notNull(),
        status: text({ enum: ["waiting", "done", "failed"] }).notNull(),
        /** The status of the action afterwards. */
        actionStatus: text("action_status"),
        code: text(),
        message: text(),
      },
      (row) => [
        primaryKey({ columns: [row.jobId, row.actionId] }),
        index("bulk_results_by_status").on(row.jobId, row.status, row.actionId), // failures, and what waits
      ],
    ),

    /**
     * What the overview counts, by time slots, of one length for each of its ranges (`src/core/activity.ts`). Filled from the
     * timeline up to the position in the fact `activity`, which the same commit writes.
     */
    activity: table(
      "activity",
      {
        accountId: text("account_id").notNull(),
        slotMinutes: number("slot_minutes").notNull(),
        /** When the slot begins. */
        at: time("at").notNull(),
        kind: text({ enum: ["all", "host", "key", "other_hosts", "other_keys"] }).notNull(),
        name: text().notNull(),
        created: number().notNull(),
        completed: number().notNull(),
        failed: number().notNull(),
        attempts: number().notNull(),
        failedAttempts: number("failed_attempts").notNull(),
        approved: number().notNull(),
        rejected: number().notNull(),
        /** Histograms of durations: pairs of a bucket and its count. */
        latency: text().notNull(),
        waits: text().notNull(),
        lastError: text("last_error"),
        lastFailedAt: time("last_failed_at"),
      },
      (row) => [
        primaryKey({ columns: [row.accountId, row.slotMinutes, row.at, row.kind, row.name] }),
        index("activity_by_age").on(row.slotMinutes, row.at), // to prune
      ],
    ),

    /** What an account has done for the first time, and which person (otherwise empty) has hidden the list of it. */
    firstSteps: table(
      "first_steps",
      {
        accountId: text("account_id").notNull(),
        personId: text("person_id").notNull(),
        step: text({ enum: ["action", "approval", "agent", "signature", "hidden"] }).notNull(),
        at: time("at").notNull(),
      },
      (row) => [primaryKey({ columns: [row.accountId, row.personId, row.step] })],
    ),

    /** Facts about the store, such as the check value of the master key. */
    facts: table("facts", { name: text().primaryKey(), value: text().notNull() }),
  };
}

/** The tables with which statements for both databases are built, since both store the same values. */
export const tables = describeTables(SQLITE);

export const {
  accounts,
  apiKeys,
  keyDays,
  people,
  members,
  sessions,
  welcomeLinks,
  invitations,
  identities,
  signingSeeds,
  callbackHosts,
  hostSettings,
  rules,
  ruleCounts,
  grants,
  credentials,
  credentialRequests,
  oauthArtifacts,
  channels,
  callbackOverlaps,
  pauses,
  rejections,
  actions,
  attempts,
  actionKeys,
  actionMetadata,
  approvalLinks,
  outbox,
  timeline,
  audit,
  bulkJobs,
  bulkResults,
  activity,
  firstSteps,
  facts,
} = tables;

/** SQL LIKE pattern for the stored text of a late result with a 2xx status, which `lateResultText` puts first. */
export const LATE_SUCCESS = "2__ %";

/** The condition that an action is cancelled when it expires. An attempt in flight ends on its own. */
export function isWaitingToExpire({ expiresAt, status }: Readonly<Record<"expiresAt" | "status", Column>>): SQL {
  return sql`${expiresAt} is not null and (${status} = 'pending' or ${status} = 'awaiting_approval')`;
}
