CREATE TABLE "rule_counts" (
	"rule_id" text collate "C" NOT NULL,
	"subject" text collate "C" NOT NULL,
	"start_at" bigint NOT NULL,
	"amount" text collate "C" NOT NULL,
	"told" smallint NOT NULL,
	"until" bigint NOT NULL,
	CONSTRAINT "rule_counts_rule_id_subject_start_at_pk" PRIMARY KEY("rule_id","subject","start_at")
);
--> statement-breakpoint
ALTER TABLE "actions" ADD COLUMN "counted" text collate "C";--> statement-breakpoint
CREATE INDEX "rule_counts_by_end" ON "rule_counts" USING btree ("until");--> statement-breakpoint
CREATE INDEX "actions_ruled" ON "actions" USING btree ("account_id","created_at") WHERE "actions"."policy" is not null;