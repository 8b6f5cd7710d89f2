CREATE TABLE "credential_requests" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"host" text collate "C" NOT NULL,
	"name" text collate "C",
	"kind" text collate "C",
	"paths" text collate "C",
	"methods" text collate "C",
	"reason" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"expires_at" bigint NOT NULL,
	"decision" text collate "C",
	"decided_at" bigint,
	"decided_by" text collate "C",
	"decision_reason" text collate "C",
	"credential" text collate "C"
);
--> statement-breakpoint
CREATE INDEX "credential_requests_by_account" ON "credential_requests" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "credential_requests_by_key" ON "credential_requests" USING btree ("key_id","id");--> statement-breakpoint
CREATE INDEX "credential_requests_open" ON "credential_requests" USING btree ("account_id","expires_at","id") WHERE "credential_requests"."decision" is null;--> statement-breakpoint
CREATE INDEX "credential_requests_by_end" ON "credential_requests" USING btree ("expires_at");