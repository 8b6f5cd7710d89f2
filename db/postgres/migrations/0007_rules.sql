CREATE TABLE "rules" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"position" bigint NOT NULL,
	"version" bigint NOT NULL,
	"definition" text collate "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"changed_at" bigint NOT NULL,
	"changed_by" text collate "C" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "policy" text collate "C";--> statement-breakpoint
CREATE UNIQUE INDEX "rules_in_order" ON "rules" USING btree ("account_id","position");