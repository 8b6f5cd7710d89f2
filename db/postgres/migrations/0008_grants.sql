CREATE TABLE "grants" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"action_id" text collate "C" NOT NULL,
	"likeness" text collate "C" NOT NULL,
	"vary" text collate "C" NOT NULL,
	"max" text collate "C" NOT NULL,
	"calls" bigint NOT NULL,
	"used" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"created_by_id" text collate "C" NOT NULL,
	"ended_at" bigint,
	"ended_by" text collate "C",
	CONSTRAINT "grants_used" CHECK ("grants"."used" between 0 and "grants"."calls")
);
--> statement-breakpoint
CREATE INDEX "grants_in_force" ON "grants" USING btree ("account_id","expires_at") WHERE "grants"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "grants_by_end" ON "grants" USING btree ("expires_at");