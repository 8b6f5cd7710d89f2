CREATE TABLE `action_metadata` (
	`action_id` text NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`action_id`, `name`)
);
--> statement-breakpoint
CREATE INDEX `action_metadata_by_value` ON `action_metadata` (`account_id`,`name`,`value`,`action_id`);--> statement-breakpoint
CREATE TABLE `bulk_jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`operation` text NOT NULL,
	`filter` text NOT NULL,
	`reason` text,
	`status` text NOT NULL,
	`matching` integer NOT NULL,
	`done` integer NOT NULL,
	`failed` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`key_id` text NOT NULL,
	`person_id` text NOT NULL,
	`client` text NOT NULL,
	`finished_at` integer,
	`stopped_by` text
);
--> statement-breakpoint
CREATE INDEX `bulk_jobs_by_account` ON `bulk_jobs` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `bulk_jobs_running` ON `bulk_jobs` (`id`) WHERE "bulk_jobs"."status" = 'running';--> statement-breakpoint
CREATE INDEX `bulk_jobs_by_end` ON `bulk_jobs` (`finished_at`);--> statement-breakpoint
CREATE TABLE `bulk_results` (
	`job_id` text NOT NULL,
	`action_id` text NOT NULL,
	`run` integer NOT NULL,
	`status` text NOT NULL,
	`action_status` text,
	`code` text,
	`message` text,
	PRIMARY KEY(`job_id`, `action_id`)
);
--> statement-breakpoint
CREATE INDEX `bulk_results_by_status` ON `bulk_results` (`job_id`,`status`,`action_id`);--> statement-breakpoint
CREATE TABLE `channels` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`sealed_config` text NOT NULL,
	`remind_after_minutes` integer,
	`enabled` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `channels_by_account` ON `channels` (`account_id`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `host_settings` (
	`account_id` text NOT NULL,
	`host` text NOT NULL,
	`settings` text NOT NULL,
	`updated_at` integer NOT NULL,
	`updated_by` text NOT NULL,
	PRIMARY KEY(`account_id`, `host`)
);
--> statement-breakpoint
CREATE TABLE `identities` (
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`person_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`issuer`, `subject`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `identities_once` ON `identities` (`person_id`,`issuer`);--> statement-breakpoint
CREATE TABLE `invitations` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`email` text NOT NULL,
	`email_key` text NOT NULL,
	`role` text NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_hash_unique` ON `invitations` (`hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_once` ON `invitations` (`account_id`,`email_key`);--> statement-breakpoint
CREATE INDEX `invitations_by_address` ON `invitations` (`email_key`,`expires_at`);--> statement-breakpoint
CREATE INDEX `invitations_by_end` ON `invitations` (`expires_at`);--> statement-breakpoint
CREATE TABLE `key_days` (
	`key_id` text NOT NULL,
	`day` integer NOT NULL,
	`created` integer NOT NULL,
	PRIMARY KEY(`key_id`, `day`)
);
--> statement-breakpoint
CREATE INDEX `key_days_by_age` ON `key_days` (`day`);--> statement-breakpoint
DROP INDEX `actions_broken`;--> statement-breakpoint
ALTER TABLE `actions` ADD `title` text;--> statement-breakpoint
ALTER TABLE `actions` ADD `extras` text;--> statement-breakpoint
ALTER TABLE `actions` ADD `expires_at` integer;--> statement-breakpoint
CREATE INDEX `actions_expiring` ON `actions` (`expires_at`,`id`) WHERE "actions"."expires_at" is not null and ("actions"."status" = 'pending' or "actions"."status" = 'awaiting_approval');--> statement-breakpoint
CREATE INDEX `actions_broken` ON `actions` (`id`) WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'failed' and "actions"."status" <> 'cancelled' and not (typeof("actions"."id") = 'text' and typeof("actions"."account_id") = 'text' and typeof("actions"."host") = 'text' and typeof("actions"."key_id") = 'text' and typeof("actions"."revision") = 'integer' and "actions"."revision" < 9007199254740991 and typeof(ifnull("actions"."due_at", 0)) = 'integer' and ifnull("actions"."due_at", 0) < 8640000000000001 and ifnull("actions"."due_at", 0) > -8640000000000001 and typeof(ifnull("actions"."lease_until", 0)) = 'integer' and ifnull("actions"."lease_until", 0) < 8640000000000001 and ifnull("actions"."lease_until", 0) > -8640000000000001 and ("actions"."status" <> 'awaiting_approval' or (typeof("actions"."url") = 'text' and typeof("actions"."hostname") = 'text' and typeof("actions"."created_by") = 'text' and ("actions"."method" = 'GET' or "actions"."method" = 'POST' or "actions"."method" = 'PUT' or "actions"."method" = 'PATCH' or "actions"."method" = 'DELETE') and ("actions"."on_unknown" = 'retry' or "actions"."on_unknown" = 'stop') and ("actions"."approve" = 0 or "actions"."approve" = 1) and typeof(ifnull("actions"."dedupe", '')) = 'text' and typeof(ifnull("actions"."idempotency_key", '')) = 'text' and typeof(ifnull("actions"."callback", '')) = 'text' and typeof(ifnull("actions"."notify_email", '')) = 'text' and typeof(ifnull("actions"."approved_by", '')) = 'text' and typeof(ifnull("actions"."approved_digest", '')) = 'text' and typeof(ifnull("actions"."sealed_headers", '')) = 'text' and typeof(ifnull("actions"."body", '')) = 'text' and typeof(ifnull("actions"."title", '')) = 'text' and typeof(ifnull("actions"."extras", '')) = 'text' and typeof("actions"."run") = 'integer' and "actions"."run" > 0 and "actions"."run" < 9007199254740991 and typeof("actions"."attempts") = 'integer' and "actions"."attempts" > -1 and "actions"."attempts" < 9007199254740991 and typeof("actions"."retries") = 'integer' and "actions"."retries" > 0 and "actions"."retries" < 9007199254740991 and typeof("actions"."created_at") = 'integer' and "actions"."created_at" < 8640000000000001 and "actions"."created_at" > -8640000000000001 and typeof(ifnull("actions"."started_at", 0)) = 'integer' and ifnull("actions"."started_at", 0) < 8640000000000001 and ifnull("actions"."started_at", 0) > -8640000000000001 and typeof(ifnull("actions"."finished_at", 0)) = 'integer' and ifnull("actions"."finished_at", 0) < 8640000000000001 and ifnull("actions"."finished_at", 0) > -8640000000000001 and typeof(ifnull("actions"."approved_at", 0)) = 'integer' and ifnull("actions"."approved_at", 0) < 8640000000000001 and ifnull("actions"."approved_at", 0) > -8640000000000001 and typeof(ifnull("actions"."expires_at", 0)) = 'integer' and ifnull("actions"."expires_at", 0) < 8640000000000001 and ifnull("actions"."expires_at", 0) > -8640000000000001)));--> statement-breakpoint
DROP INDEX `outbox_broken`;--> statement-breakpoint
CREATE INDEX `outbox_broken` ON `outbox` (`id`) WHERE "outbox"."status" <> 'delivered' and "outbox"."status" <> 'given_up' and "outbox"."status" <> 'dropped' and not (typeof("outbox"."id") = 'text' and typeof("outbox"."account_id") = 'text' and typeof("outbox"."host") = 'text' and typeof("outbox"."key_id") = 'text' and ("outbox"."kind" = 'callback' or "outbox"."kind" = 'mail' or "outbox"."kind" = 'message') and typeof("outbox"."attempts") = 'integer' and "outbox"."attempts" < 9007199254740991 and typeof(ifnull("outbox"."due_at", 0)) = 'integer' and ifnull("outbox"."due_at", 0) < 8640000000000001 and ifnull("outbox"."due_at", 0) > -8640000000000001 and typeof(ifnull("outbox"."lease_until", 0)) = 'integer' and ifnull("outbox"."lease_until", 0) < 8640000000000001 and ifnull("outbox"."lease_until", 0) > -8640000000000001);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `hosts` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `methods` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `daily_actions` integer;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `expires_at` integer;--> statement-breakpoint
ALTER TABLE `members` ADD `role` text DEFAULT 'owner' NOT NULL;--> statement-breakpoint
ALTER TABLE `members` ADD `last_seen_at` integer;--> statement-breakpoint
ALTER TABLE `sessions` ADD `client` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `browser` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `last_seen_at` integer;