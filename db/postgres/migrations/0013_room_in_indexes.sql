ALTER INDEX "actions_pkey" SET (fillfactor = 70);--> statement-breakpoint
ALTER INDEX "actions_by_account" SET (fillfactor = 70);--> statement-breakpoint
ALTER INDEX "actions_by_hostname" SET (fillfactor = 70);--> statement-breakpoint
ALTER INDEX "actions_by_key" SET (fillfactor = 70);
