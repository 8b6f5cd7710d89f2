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
ALTER TABLE "actions" ADD COLUMN "response_headers" text collate "C";