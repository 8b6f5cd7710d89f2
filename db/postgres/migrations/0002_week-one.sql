CREATE TABLE "action_metadata" (
	"action_id" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"value" text collate "C" NOT NULL,
	CONSTRAINT "action_metadata_action_id_name_pk" PRIMARY KEY("action_id","name")
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
DROP INDEX "actions_broken";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "title" text collate "C";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "extras" text collate "C";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "expires_at" bigint;--> statement-breakpoint
CREATE INDEX "action_metadata_by_value" ON "action_metadata" USING btree ("account_id","name","value","action_id");--> statement-breakpoint
CREATE INDEX "actions_expiring" ON "actions" USING btree ("expires_at","id") WHERE "actions"."expires_at" is not null and ("actions"."status" = 'pending' or "actions"."status" = 'awaiting_approval');--> statement-breakpoint
CREATE INDEX "actions_broken" ON "actions" USING btree ("id") WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'failed' and "actions"."status" <> 'cancelled' and not (true and true and true and true and "actions"."revision" < 9007199254740991 and coalesce("actions"."due_at", 0) < 8640000000000001 and coalesce("actions"."due_at", 0) > -8640000000000001 and coalesce("actions"."lease_until", 0) < 8640000000000001 and coalesce("actions"."lease_until", 0) > -8640000000000001 and ("actions"."status" <> 'awaiting_approval' or (true and true and true and ("actions"."method" = 'GET' or "actions"."method" = 'POST' or "actions"."method" = 'PUT' or "actions"."method" = 'PATCH' or "actions"."method" = 'DELETE') and ("actions"."on_unknown" = 'retry' or "actions"."on_unknown" = 'stop') and ("actions"."approve" = 0 or "actions"."approve" = 1) and true and true and true and true and true and true and true and true and true and true and "actions"."run" > 0 and "actions"."run" < 9007199254740991 and "actions"."attempts" > -1 and "actions"."attempts" < 9007199254740991 and "actions"."retries" > 0 and "actions"."retries" < 9007199254740991 and "actions"."created_at" < 8640000000000001 and "actions"."created_at" > -8640000000000001 and coalesce("actions"."started_at", 0) < 8640000000000001 and coalesce("actions"."started_at", 0) > -8640000000000001 and coalesce("actions"."finished_at", 0) < 8640000000000001 and coalesce("actions"."finished_at", 0) > -8640000000000001 and coalesce("actions"."approved_at", 0) < 8640000000000001 and coalesce("actions"."approved_at", 0) > -8640000000000001 and coalesce("actions"."expires_at", 0) < 8640000000000001 and coalesce("actions"."expires_at", 0) > -8640000000000001)));