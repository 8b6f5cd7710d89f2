CREATE TABLE "credentials" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"settings" text collate "C" NOT NULL,
	"sealed_secret" text collate "C" NOT NULL,
	"hint" text collate "C",
	"hosts" text collate "C" NOT NULL,
	"paths" text collate "C",
	"methods" text collate "C",
	"keys" text collate "C" NOT NULL,
	"enabled" smallint NOT NULL,
	"expires_at" bigint,
	"revision" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"replaced_at" bigint NOT NULL,
	"last_used_at" bigint,
	"echoes" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "credentials_by_name" ON "credentials" USING btree ("account_id","name");