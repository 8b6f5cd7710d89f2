ALTER TABLE "nodes" DROP COLUMN "is_over";--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "over_hosts" text DEFAULT '' NOT NULL;