CREATE TABLE `rules` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`position` integer NOT NULL,
	`version` integer NOT NULL,
	`definition` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`changed_at` integer NOT NULL,
	`changed_by` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `rules_in_order` ON `rules` (`account_id`,`position`);--> statement-breakpoint
ALTER TABLE `actions` ADD `policy` text;