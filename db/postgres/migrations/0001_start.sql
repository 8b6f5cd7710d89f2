CREATE TABLE "accounts" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"sealed_root_secret" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"allowed_at" bigint,
	"allowed_by" text collate "C",
	"seq" bigserial NOT NULL,
	CONSTRAINT "accounts_seq_unique" UNIQUE("seq")
);
--> statement-breakpoint
CREATE TABLE "action_keys" (
	"account_id" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"key" text collate "C" NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "action_keys_account_id_kind_key_pk" PRIMARY KEY("account_id","kind","key")
);
--> statement-breakpoint
CREATE TABLE "actions" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"revision" bigint NOT NULL,
	"status" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"attempts" bigint NOT NULL,
	"retries" bigint NOT NULL,
	"url" text collate "C" NOT NULL,
	"hostname" text collate "C" NOT NULL,
	"host" text collate "C" NOT NULL,
	"method" text collate "C" NOT NULL,
	"dedupe" text collate "C",
	"idempotency_key" text collate "C",
	"on_unknown" text collate "C" NOT NULL,
	"approve" smallint NOT NULL,
	"callback" text collate "C",
	"notify_email" text collate "C",
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"due_at" bigint,
	"scheduled_at" bigint NOT NULL,
	"lease_until" bigint,
	"started_at" bigint,
	"finished_at" bigint,
	"approved_at" bigint,
	"approved_by" text collate "C",
	"approved_digest" text collate "C",
	"last_error" text collate "C",
	"error_source" text collate "C",
	"response_code" bigint,
	"response_truncated" smallint,
	"duration_ms" bigint,
	"sealed_headers" text collate "C",
	"body" text collate "C",
	"response_body" text collate "C",
	"key_id" text collate "C" DEFAULT '' NOT NULL,
	"key_role" text collate "C" DEFAULT 'owner' NOT NULL,
	"key_hold" text collate "C" DEFAULT 'none' NOT NULL,
	"claimed_by" text collate "C",
	CONSTRAINT "actions_status" CHECK ("actions"."status" in ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')),
	CONSTRAINT "actions_counts" CHECK ("actions"."attempts" between 0 and "actions"."retries" and "actions"."revision" > 0 and "actions"."run" > 0),
	CONSTRAINT "actions_approved" CHECK ("actions"."status" not in ('pending', 'active') or "actions"."approve" = 0 or "actions"."approved_at" is not null),
	CONSTRAINT "actions_due" CHECK ("actions"."status" <> 'pending' or ("actions"."due_at" is not null and "actions"."attempts" < "actions"."retries")),
	CONSTRAINT "actions_leased" CHECK ("actions"."status" <> 'active' or ("actions"."lease_until" is not null and "actions"."attempts" > 0))
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"role" text collate "C" NOT NULL,
	"hold" text collate "C" NOT NULL,
	"hash" text collate "C" NOT NULL,
	"last4" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"last_used_at" bigint,
	"revoked_at" bigint,
	"scope" text collate "C" DEFAULT 'own' NOT NULL,
	"replaces" text collate "C",
	CONSTRAINT "api_keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "approval_links" (
	"action_id" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"decision" text collate "C" NOT NULL,
	"hash" text collate "C" NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "approval_links_action_id_run_decision_pk" PRIMARY KEY("action_id","run","decision")
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"actor" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"subject" text collate "C" NOT NULL,
	"client" text collate "C" NOT NULL,
	"detail" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "callback_hosts" (
	"account_id" text collate "C" NOT NULL,
	"host" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "callback_hosts_account_id_host_pk" PRIMARY KEY("account_id","host")
);
--> statement-breakpoint
CREATE TABLE "callback_overlaps" (
	"account_id" text collate "C" NOT NULL,
	"origin" text collate "C" NOT NULL,
	"until" bigint NOT NULL,
	CONSTRAINT "callback_overlaps_account_id_origin_pk" PRIMARY KEY("account_id","origin")
);
--> statement-breakpoint
CREATE TABLE "facts" (
	"name" text collate "C" PRIMARY KEY NOT NULL,
	"value" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"name" text collate "C" PRIMARY KEY NOT NULL,
	"node_id" text collate "C" NOT NULL,
	"until" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "members" (
	"account_id" text collate "C" NOT NULL,
	"person_id" text collate "C" NOT NULL,
	"joined_at" bigint NOT NULL,
	CONSTRAINT "members_account_id_person_id_pk" PRIMARY KEY("account_id","person_id")
);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"version" text collate "C" NOT NULL,
	"started_at" bigint NOT NULL,
	"seen_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"revision" bigint NOT NULL,
	"kind" text collate "C" NOT NULL,
	"event" text collate "C" NOT NULL,
	"target" text collate "C" NOT NULL,
	"host" text collate "C" NOT NULL,
	"payload" text collate "C",
	"status" text collate "C" NOT NULL,
	"attempts" bigint NOT NULL,
	"due_at" bigint,
	"scheduled_at" bigint NOT NULL,
	"lease_until" bigint,
	"created_at" bigint NOT NULL,
	"sent_at" bigint,
	"last_error" text collate "C",
	"key_id" text collate "C" DEFAULT '' NOT NULL,
	"claimed_by" text collate "C",
	CONSTRAINT "outbox_status" CHECK ("outbox"."status" in ('pending', 'active', 'delivered', 'given_up', 'dropped') and "outbox"."attempts" >= 0),
	CONSTRAINT "outbox_due" CHECK ("outbox"."status" <> 'pending' or "outbox"."due_at" is not null),
	CONSTRAINT "outbox_leased" CHECK ("outbox"."status" <> 'active' or ("outbox"."lease_until" is not null and "outbox"."attempts" > 0))
);
--> statement-breakpoint
CREATE TABLE "pauses" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"subject" text collate "C" NOT NULL,
	"reason" text collate "C",
	"cancels" smallint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"ended_at" bigint,
	"ended_by" text collate "C",
	CONSTRAINT "pauses_subject" CHECK ("pauses"."kind" <> '' and ("pauses"."kind" = 'account') = ("pauses"."subject" = ''))
);
--> statement-breakpoint
CREATE TABLE "people" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"email" text collate "C" NOT NULL,
	"email_key" text collate "C" NOT NULL,
	"password_hash" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "people_email_key_unique" UNIQUE("email_key")
);
--> statement-breakpoint
CREATE TABLE "positions" (
	"id" smallint PRIMARY KEY NOT NULL,
	"base" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "rejections" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"digest" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"at" bigint NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"actor" text collate "C" NOT NULL,
	"reason" text collate "C"
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"hash" text collate "C" PRIMARY KEY NOT NULL,
	"person_id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"secret_hash" text collate "C"
);
--> statement-breakpoint
CREATE TABLE "signing_seeds" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"origin" text collate "C" NOT NULL,
	"sealed_seed" text collate "C" NOT NULL,
	"rotated_at" bigint NOT NULL,
	CONSTRAINT "signing_seeds_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "timeline" (
	"seq" bigint PRIMARY KEY DEFAULT next_position() NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"at" bigint NOT NULL,
	"run" bigint NOT NULL,
	"revision" bigint NOT NULL,
	"type" text collate "C" NOT NULL,
	"subject" text collate "C" DEFAULT '' NOT NULL,
	"status" text collate "C" NOT NULL,
	"detail" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "welcome_links" (
	"hash" text collate "C" PRIMARY KEY NOT NULL,
	"person_id" text collate "C",
	"account_id" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "action_keys_by_age" ON "action_keys" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "actions_by_account" ON "actions" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "actions_by_hostname" ON "actions" USING btree ("account_id","hostname","id");--> statement-breakpoint
CREATE INDEX "actions_by_status" ON "actions" USING btree ("account_id","status","id") WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'active';--> statement-breakpoint
CREATE INDEX "actions_by_dedupe" ON "actions" USING btree ("account_id","dedupe","id") WHERE "actions"."dedupe" is not null;--> statement-breakpoint
CREATE INDEX "actions_by_key" ON "actions" USING btree ("account_id","key_id","id") WHERE "actions"."key_id" <> '';--> statement-breakpoint
CREATE INDEX "actions_pending" ON "actions" USING btree ("account_id","host","key_id","due_at","id") WHERE "actions"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "actions_active" ON "actions" USING btree ("account_id","id","lease_until") WHERE "actions"."status" = 'active';--> statement-breakpoint
CREATE INDEX "actions_held" ON "actions" USING btree ("id") WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX "actions_held_by_key" ON "actions" USING btree ("account_id","key_id","id") WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX "actions_broken" ON "actions" USING btree ("id") WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'failed' and "actions"."status" <> 'cancelled' and not (true and true and true and true and "actions"."revision" < 9007199254740991 and coalesce("actions"."due_at", 0) < 8640000000000001 and coalesce("actions"."due_at", 0) > -8640000000000001 and coalesce("actions"."lease_until", 0) < 8640000000000001 and coalesce("actions"."lease_until", 0) > -8640000000000001 and ("actions"."status" <> 'awaiting_approval' or (true and true and true and ("actions"."method" = 'GET' or "actions"."method" = 'POST' or "actions"."method" = 'PUT' or "actions"."method" = 'PATCH' or "actions"."method" = 'DELETE') and ("actions"."on_unknown" = 'retry' or "actions"."on_unknown" = 'stop') and ("actions"."approve" = 0 or "actions"."approve" = 1) and true and true and true and true and true and true and true and true and "actions"."run" > 0 and "actions"."run" < 9007199254740991 and "actions"."attempts" > -1 and "actions"."attempts" < 9007199254740991 and "actions"."retries" > 0 and "actions"."retries" < 9007199254740991 and "actions"."created_at" < 8640000000000001 and "actions"."created_at" > -8640000000000001 and coalesce("actions"."started_at", 0) < 8640000000000001 and coalesce("actions"."started_at", 0) > -8640000000000001 and coalesce("actions"."finished_at", 0) < 8640000000000001 and coalesce("actions"."finished_at", 0) > -8640000000000001 and coalesce("actions"."approved_at", 0) < 8640000000000001 and coalesce("actions"."approved_at", 0) > -8640000000000001)));--> statement-breakpoint
CREATE INDEX "api_keys_by_account" ON "api_keys" USING btree ("account_id","revoked_at" NULLS FIRST,"created_at","id");--> statement-breakpoint
CREATE INDEX "audit_by_account" ON "audit" USING btree ("account_id","seq");--> statement-breakpoint
CREATE INDEX "members_by_account" ON "members" USING btree ("account_id","joined_at","person_id");--> statement-breakpoint
CREATE INDEX "members_by_person" ON "members" USING btree ("person_id","joined_at","account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "outbox_once" ON "outbox" USING btree ("action_id","revision","kind","event");--> statement-breakpoint
CREATE INDEX "outbox_by_account" ON "outbox" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "outbox_pending" ON "outbox" USING btree ("kind","account_id","host","key_id","due_at","id") WHERE "outbox"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "outbox_active" ON "outbox" USING btree ("kind","lease_until") WHERE "outbox"."status" = 'active';--> statement-breakpoint
CREATE INDEX "outbox_mailed_to" ON "outbox" USING btree ("host","sent_at") WHERE "outbox"."kind" = 'mail' and "outbox"."sent_at" is not null;--> statement-breakpoint
CREATE INDEX "outbox_mailed_by" ON "outbox" USING btree ("account_id","sent_at") WHERE "outbox"."kind" = 'mail' and "outbox"."sent_at" is not null;--> statement-breakpoint
CREATE INDEX "outbox_broken" ON "outbox" USING btree ("id") WHERE "outbox"."status" <> 'delivered' and "outbox"."status" <> 'given_up' and "outbox"."status" <> 'dropped' and not (true and true and true and true and ("outbox"."kind" = 'callback' or "outbox"."kind" = 'mail') and "outbox"."attempts" < 9007199254740991 and coalesce("outbox"."due_at", 0) < 8640000000000001 and coalesce("outbox"."due_at", 0) > -8640000000000001 and coalesce("outbox"."lease_until", 0) < 8640000000000001 and coalesce("outbox"."lease_until", 0) > -8640000000000001);--> statement-breakpoint
CREATE UNIQUE INDEX "pauses_in_force" ON "pauses" USING btree ("account_id","kind","subject") WHERE "pauses"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "pauses_by_subject" ON "pauses" USING btree ("account_id","kind","subject","created_at");--> statement-breakpoint
CREATE INDEX "pauses_by_end" ON "pauses" USING btree ("ended_at") WHERE "pauses"."ended_at" is not null;--> statement-breakpoint
CREATE INDEX "rejections_by_request" ON "rejections" USING btree ("account_id","key_id","digest","at");--> statement-breakpoint
CREATE INDEX "rejections_by_key" ON "rejections" USING btree ("account_id","key_id","at");--> statement-breakpoint
CREATE INDEX "rejections_by_age" ON "rejections" USING btree ("at");--> statement-breakpoint
CREATE INDEX "sessions_by_person" ON "sessions" USING btree ("person_id","created_at","hash");--> statement-breakpoint
CREATE INDEX "sessions_by_end" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "signing_seeds_by_origin" ON "signing_seeds" USING btree ("account_id","origin","seq");--> statement-breakpoint
CREATE UNIQUE INDEX "timeline_once" ON "timeline" USING btree ("action_id","revision","type","subject");--> statement-breakpoint
CREATE INDEX "welcome_links_by_account" ON "welcome_links" USING btree ("account_id","person_id");--> statement-breakpoint
CREATE INDEX "welcome_links_by_end" ON "welcome_links" USING btree ("expires_at");--> statement-breakpoint
INSERT INTO positions (id, base) VALUES (1, 0);
--> statement-breakpoint
ALTER TABLE actions SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
--> statement-breakpoint
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
