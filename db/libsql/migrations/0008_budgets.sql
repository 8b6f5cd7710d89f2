CREATE TABLE `rule_counts` (
	`rule_id` text NOT NULL,
	`subject` text NOT NULL,
	`start_at` integer NOT NULL,
	`amount` text NOT NULL,
	`told` integer NOT NULL,
	`until` integer NOT NULL,
	PRIMARY KEY(`rule_id`, `subject`, `start_at`)
);
--> statement-breakpoint
CREATE INDEX `rule_counts_by_end` ON `rule_counts` (`until`);--> statement-breakpoint
ALTER TABLE `actions` ADD `counted` text;--> statement-breakpoint
CREATE INDEX `actions_ruled` ON `actions` (`account_id`,`created_at`) WHERE "actions"."policy" is not null;