CREATE TABLE `grants` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`action_id` text NOT NULL,
	`likeness` text NOT NULL,
	`vary` text NOT NULL,
	`max` text NOT NULL,
	`calls` integer NOT NULL,
	`used` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`created_by_id` text NOT NULL,
	`ended_at` integer,
	`ended_by` text,
	CONSTRAINT "grants_used" CHECK("grants"."used" between 0 and "grants"."calls")
);
--> statement-breakpoint
CREATE INDEX `grants_in_force` ON `grants` (`account_id`,`expires_at`) WHERE "grants"."ended_at" is null;--> statement-breakpoint
CREATE INDEX `grants_by_end` ON `grants` (`expires_at`);