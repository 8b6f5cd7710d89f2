CREATE TABLE "oauth_artifacts" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"kind" text collate "C" NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"key_id" text collate "C",
	"grant_id" text collate "C",
	"sealed_payload" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"consumed_at" bigint,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "oauth_artifacts_by_grant" ON "oauth_artifacts" USING btree ("grant_id","created_at") WHERE "oauth_artifacts"."grant_id" is not null;--> statement-breakpoint
CREATE INDEX "oauth_artifacts_by_account" ON "oauth_artifacts" USING btree ("account_id","kind","created_at");--> statement-breakpoint
CREATE INDEX "oauth_artifacts_by_end" ON "oauth_artifacts" USING btree ("expires_at");