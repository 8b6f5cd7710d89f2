CREATE TABLE `activity` (
	`account_id` text NOT NULL,
	`slot_minutes` integer NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`created` integer NOT NULL,
	`completed` integer NOT NULL,
	`failed` integer NOT NULL,
	`attempts` integer NOT NULL,
	`failed_attempts` integer NOT NULL,
	`approved` integer NOT NULL,
	`rejected` integer NOT NULL,
	`latency` text NOT NULL,
	`waits` text NOT NULL,
	`last_error` text,
	`last_failed_at` integer,
	PRIMARY KEY(`account_id`, `slot_minutes`, `at`, `kind`, `name`)
);
--> statement-breakpoint
CREATE INDEX `activity_by_age` ON `activity` (`slot_minutes`,`at`);--> statement-breakpoint
CREATE TABLE `attempts` (
	`action_id` text NOT NULL,
	`run` integer NOT NULL,
	`attempt` integer NOT NULL,
	`response_truncated` integer NOT NULL,
	`response_headers` text,
	`response_body` text,
	PRIMARY KEY(`action_id`, `run`, `attempt`)
);
--> statement-breakpoint
CREATE TABLE `first_steps` (
	`account_id` text NOT NULL,
	`person_id` text NOT NULL,
	`step` text NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `person_id`, `step`)
);
--> statement-breakpoint
ALTER TABLE `accounts` ADD `name` text;--> statement-breakpoint
ALTER TABLE `actions` ADD `response_headers` text;--> statement-breakpoint
CREATE INDEX `actions_held_by_host` ON `actions` (`account_id`,`host`,`key_id`,`id`) WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX `actions_approved` ON `actions` (`account_id`,`hostname`,`key_id`) WHERE "actions"."status" = 'completed' and "actions"."approved_at" is not null;