CREATE TABLE "action_metadata" (
	"action_id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"value" text collate "C" NOT NULL,
	CONSTRAINT "action_metadata_action_id_name_pk" PRIMARY KEY("action_id","name")
);
--> statement-breakpoint
CREATE TABLE "bulk_jobs" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"operation" text collate "C" NOT NULL,
	"filter" text collate "C" NOT NULL,
	"reason" text collate "C",
	"status" text collate "C" NOT NULL,
	"matching" bigint NOT NULL,
	"done" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"person_id" text collate "C" NOT NULL,
	"client" text collate "C" NOT NULL,
	"finished_at" bigint,
	"stopped_by" text collate "C"
);
--> statement-breakpoint
CREATE TABLE "bulk_results" (
	"job_id" text collate "C" NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"status" text collate "C" NOT NULL,
	"action_status" text collate "C",
	"code" text collate "C",
	"message" text collate "C",
	CONSTRAINT "bulk_results_job_id_action_id_pk" PRIMARY KEY("job_id","action_id")
);
--> statement-breakpoint
CREATE TABLE "channels" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"sealed_config" text collate "C" NOT NULL,
	"remind_after_minutes" bigint,
	"enabled" smallint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "host_settings" (
	"account_id" text collate "C" NOT NULL,
	"host" text collate "C" NOT NULL,
	"settings" text collate "C" NOT NULL,
	"updated_at" bigint NOT NULL,
	"updated_by" text collate "C" NOT NULL,
	CONSTRAINT "host_settings_account_id_host_pk" PRIMARY KEY("account_id","host")
);
--> statement-breakpoint
CREATE TABLE "identities" (
	"issuer" text collate "C" NOT NULL,
	"subject" text collate "C" NOT NULL,
	"person_id" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "identities_issuer_subject_pk" PRIMARY KEY("issuer","subject")
);
--> statement-breakpoint
CREATE TABLE "invitations" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"email" text collate "C" NOT NULL,
	"email_key" text collate "C" NOT NULL,
	"role" text collate "C" NOT NULL,
	"hash" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "invitations_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "key_days" (
	"key_id" text collate "C" NOT NULL,
	"day" bigint NOT NULL,
	"created" bigint NOT NULL,
	CONSTRAINT "key_days_key_id_day_pk" PRIMARY KEY("key_id","day")
);
--> statement-breakpoint
DROP INDEX "actions_broken";--> statement-breakpoint
DROP INDEX "outbox_broken";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "title" text collate "C";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "extras" text collate "C";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "expires_at" bigint;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "hosts" text collate "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "methods" text collate "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "daily_actions" bigint;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "expires_at" bigint;--> statement-breakpoint
ALTER TABLE "members" ADD COLUMN "role" text collate "C" DEFAULT 'owner' NOT NULL;--> statement-breakpoint
ALTER TABLE "members" ADD COLUMN "last_seen_at" bigint;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "client" text collate "C";--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "browser" text collate "C";--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "last_seen_at" bigint;--> statement-breakpoint
CREATE INDEX "action_metadata_by_value" ON "action_metadata" USING btree ("account_id","name","value","action_id");--> statement-breakpoint
CREATE INDEX "bulk_jobs_by_account" ON "bulk_jobs" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "bulk_jobs_running" ON "bulk_jobs" USING btree ("id") WHERE "bulk_jobs"."status" = 'running';--> statement-breakpoint
CREATE INDEX "bulk_jobs_by_end" ON "bulk_jobs" USING btree ("finished_at");--> statement-breakpoint
CREATE INDEX "bulk_results_by_status" ON "bulk_results" USING btree ("job_id","status","action_id");--> statement-breakpoint
CREATE INDEX "channels_by_account" ON "channels" USING btree ("account_id","created_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "identities_once" ON "identities" USING btree ("person_id","issuer");--> statement-breakpoint
CREATE UNIQUE INDEX "invitations_once" ON "invitations" USING btree ("account_id","email_key");--> statement-breakpoint
CREATE INDEX "invitations_by_address" ON "invitations" USING btree ("email_key","expires_at");--> statement-breakpoint
CREATE INDEX "invitations_by_end" ON "invitations" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "key_days_by_age" ON "key_days" USING btree ("day");--> statement-breakpoint
CREATE INDEX "actions_expiring" ON "actions" USING btree ("expires_at","id") WHERE "actions"."expires_at" is not null and ("actions"."status" = 'pending' or "actions"."status" = 'awaiting_approval');--> statement-breakpoint
CREATE INDEX "actions_broken" ON "actions" USING btree ("id") WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'failed' and "actions"."status" <> 'cancelled' and not (true and true and true and true and "actions"."revision" < 9007199254740991 and coalesce("actions"."due_at", 0) < 8640000000000001 and coalesce("actions"."due_at", 0) > -8640000000000001 and coalesce("actions"."lease_until", 0) < 8640000000000001 and coalesce("actions"."lease_until", 0) > -8640000000000001 and ("actions"."status" <> 'awaiting_approval' or (true and true and true and ("actions"."method" = 'GET' or "actions"."method" = 'POST' or "actions"."method" = 'PUT' or "actions"."method" = 'PATCH' or "actions"."method" = 'DELETE') and ("actions"."on_unknown" = 'retry' or "actions"."on_unknown" = 'stop') and ("actions"."approve" = 0 or "actions"."approve" = 1) and true and true and true and true and true and true and true and true and true and true and "actions"."run" > 0 and "actions"."run" < 9007199254740991 and "actions"."attempts" > -1 and "actions"."attempts" < 9007199254740991 and "actions"."retries" > 0 and "actions"."retries" < 9007199254740991 and "actions"."created_at" < 8640000000000001 and "actions"."created_at" > -8640000000000001 and coalesce("actions"."started_at", 0) < 8640000000000001 and coalesce("actions"."started_at", 0) > -8640000000000001 and coalesce("actions"."finished_at", 0) < 8640000000000001 and coalesce("actions"."finished_at", 0) > -8640000000000001 and coalesce("actions"."approved_at", 0) < 8640000000000001 and coalesce("actions"."approved_at", 0) > -8640000000000001 and coalesce("actions"."expires_at", 0) < 8640000000000001 and coalesce("actions"."expires_at", 0) > -8640000000000001)));--> statement-breakpoint
CREATE INDEX "outbox_broken" ON "outbox" USING btree ("id") WHERE "outbox"."status" <> 'delivered' and "outbox"."status" <> 'given_up' and "outbox"."status" <> 'dropped' and not (true and true and true and true and ("outbox"."kind" = 'callback' or "outbox"."kind" = 'mail' or "outbox"."kind" = 'message') and "outbox"."attempts" < 9007199254740991 and coalesce("outbox"."due_at", 0) < 8640000000000001 and coalesce("outbox"."due_at", 0) > -8640000000000001 and coalesce("outbox"."lease_until", 0) < 8640000000000001 and coalesce("outbox"."lease_until", 0) > -8640000000000001);