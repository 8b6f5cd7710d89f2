DROP INDEX "actions_broken";--> statement-breakpoint
DROP INDEX "outbox_broken";