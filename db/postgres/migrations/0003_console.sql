CREATE TABLE "activity" (
	"account_id" text collate "C" NOT NULL,
	"slot_minutes" bigint NOT NULL,
	"at" bigint NOT NULL,
	"kind" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"created" bigint NOT NULL,
	"completed" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"attempts" bigint NOT NULL,
	"failed_attempts" bigint NOT NULL,
	"approved" bigint NOT NULL,
	"rejected" bigint NOT NULL,
	"latency" text collate "C" NOT NULL,
	"waits" text collate "C" NOT NULL,
	"last_error" text collate "C",
	"last_failed_at" bigint,
	CONSTRAINT "activity_account_id_slot_minutes_at_kind_name_pk" PRIMARY KEY("account_id","slot_minutes","at","kind","name")
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"action_id" text collate "C" NOT NULL,
	"run" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"response_truncated" smallint NOT NULL,
	"response_headers" text collate "C",
	"response_body" text collate "C",
	CONSTRAINT "attempts_action_id_run_attempt_pk" PRIMARY KEY("action_id","run","attempt")
);
--> statement-breakpoint
CREATE TABLE "first_steps" (
	"account_id" text collate "C" NOT NULL,
	"person_id" text collate "C" NOT NULL,
	"step" text collate "C" NOT NULL,
	"at" bigint NOT NULL,
	CONSTRAINT "first_steps_account_id_person_id_step_pk" PRIMARY KEY("account_id","person_id","step")
);
--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "name" text collate "C";--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "response_headers" text collate "C";--> statement-breakpoint
CREATE INDEX "activity_by_age" ON "activity" USING btree ("slot_minutes","at");--> statement-breakpoint
CREATE INDEX "actions_held_by_host" ON "actions" USING btree ("account_id","host","key_id","id") WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX "actions_approved" ON "actions" USING btree ("account_id","hostname","key_id") WHERE "actions"."status" = 'completed' and "actions"."approved_at" is not null;