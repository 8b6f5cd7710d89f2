ALTER TABLE "actions" ADD COLUMN "late_result" text collate "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "created_by" text collate "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "revoked_by" text collate "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "created_by_id" text collate "C";--> statement-breakpoint
ALTER TABLE "invitations" ADD COLUMN "created_by_id" text collate "C";--> statement-breakpoint
ALTER TABLE "rejections" ADD COLUMN "similar_digest" text collate "C" DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "rejections_by_similar" ON "rejections" USING btree ("account_id","key_id","similar_digest","at");--> statement-breakpoint
-- Written by hand: who created and who revoked the keys of older versions, from the audit log.
UPDATE "api_keys" SET "created_by" = "found"."actor" FROM (SELECT DISTINCT ON ("account_id", "subject") "account_id", "subject", "actor" FROM "audit" WHERE "kind" = 'key_created' ORDER BY "account_id", "subject", "seq") AS "found" WHERE "found"."account_id" = "api_keys"."account_id" AND "found"."subject" = "api_keys"."id";--> statement-breakpoint
UPDATE "api_keys" SET "revoked_by" = "found"."actor" FROM (SELECT DISTINCT ON ("account_id", "subject") "account_id", "subject", "actor" FROM "audit" WHERE "kind" = 'key_revoked' ORDER BY "account_id", "subject", "seq") AS "found" WHERE "found"."account_id" = "api_keys"."account_id" AND "found"."subject" = "api_keys"."id" AND "api_keys"."revoked_at" IS NOT NULL;--> statement-breakpoint
UPDATE "api_keys" SET "created_by_id" = (SELECT "id" FROM "people" WHERE "email_key" = lower(substr("api_keys"."created_by", 6))) WHERE "created_by" LIKE 'user:%';--> statement-breakpoint
UPDATE "invitations" SET "created_by_id" = (SELECT "id" FROM "people" WHERE "email_key" = lower(substr("invitations"."created_by", 6))) WHERE "created_by" LIKE 'user:%';
