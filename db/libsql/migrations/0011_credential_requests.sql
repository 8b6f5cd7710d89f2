CREATE TABLE `credential_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`host` text NOT NULL,
	`name` text,
	`kind` text,
	`paths` text,
	`methods` text,
	`reason` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`expires_at` integer NOT NULL,
	`decision` text,
	`decided_at` integer,
	`decided_by` text,
	`decision_reason` text,
	`credential` text
);
--> statement-breakpoint
CREATE INDEX `credential_requests_by_account` ON `credential_requests` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `credential_requests_by_key` ON `credential_requests` (`key_id`,`id`);--> statement-breakpoint
CREATE INDEX `credential_requests_open` ON `credential_requests` (`account_id`,`expires_at`,`id`) WHERE "credential_requests"."decision" is null;--> statement-breakpoint
CREATE INDEX `credential_requests_by_end` ON `credential_requests` (`expires_at`);