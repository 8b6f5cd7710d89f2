CREATE TABLE `credentials` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`settings` text NOT NULL,
	`sealed_secret` text NOT NULL,
	`hint` text,
	`hosts` text NOT NULL,
	`paths` text,
	`methods` text,
	`keys` text NOT NULL,
	`enabled` integer NOT NULL,
	`expires_at` integer,
	`revision` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`replaced_at` integer NOT NULL,
	`last_used_at` integer,
	`echoes` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `credentials_by_name` ON `credentials` (`account_id`,`name`);