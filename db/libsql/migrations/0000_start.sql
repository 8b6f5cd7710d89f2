CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`sealed_root_secret` text NOT NULL,
	`created_at` integer NOT NULL,
	`allowed_at` integer,
	`allowed_by` text
);
--> statement-breakpoint
CREATE TABLE `action_keys` (
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`action_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `kind`, `key`)
);
--> statement-breakpoint
CREATE INDEX `action_keys_by_age` ON `action_keys` (`created_at`);--> statement-breakpoint
CREATE TABLE `actions` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`revision` integer NOT NULL,
	`status` text NOT NULL,
	`run` integer NOT NULL,
	`attempts` integer NOT NULL,
	`retries` integer NOT NULL,
	`url` text NOT NULL,
	`hostname` text NOT NULL,
	`host` text NOT NULL,
	`method` text NOT NULL,
	`dedupe` text,
	`idempotency_key` text,
	`on_unknown` text NOT NULL,
	`approve` integer NOT NULL,
	`callback` text,
	`notify_email` text,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`due_at` integer,
	`scheduled_at` integer NOT NULL,
	`lease_until` integer,
	`started_at` integer,
	`finished_at` integer,
	`approved_at` integer,
	`approved_by` text,
	`approved_digest` text,
	`last_error` text,
	`error_source` text,
	`response_code` integer,
	`response_truncated` integer,
	`duration_ms` integer,
	`sealed_headers` text,
	`body` text,
	`response_body` text,
	`key_id` text DEFAULT '' NOT NULL,
	`key_role` text DEFAULT 'owner' NOT NULL,
	`key_hold` text DEFAULT 'none' NOT NULL,
	CONSTRAINT "actions_status" CHECK("actions"."status" in ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')),
	CONSTRAINT "actions_counts" CHECK("actions"."attempts" between 0 and "actions"."retries" and "actions"."revision" > 0 and "actions"."run" > 0),
	CONSTRAINT "actions_approved" CHECK("actions"."status" not in ('pending', 'active') or "actions"."approve" = 0 or "actions"."approved_at" is not null),
	CONSTRAINT "actions_due" CHECK("actions"."status" <> 'pending' or ("actions"."due_at" is not null and "actions"."attempts" < "actions"."retries")),
	CONSTRAINT "actions_leased" CHECK("actions"."status" <> 'active' or ("actions"."lease_until" is not null and "actions"."attempts" > 0))
);
--> statement-breakpoint
CREATE INDEX `actions_by_account` ON `actions` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `actions_by_hostname` ON `actions` (`account_id`,`hostname`,`id`);--> statement-breakpoint
CREATE INDEX `actions_by_status` ON `actions` (`account_id`,`status`,`id`) WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'active';--> statement-breakpoint
CREATE INDEX `actions_by_dedupe` ON `actions` (`account_id`,`dedupe`,`id`) WHERE "actions"."dedupe" is not null;--> statement-breakpoint
CREATE INDEX `actions_by_key` ON `actions` (`account_id`,`key_id`,`id`) WHERE "actions"."key_id" <> '';--> statement-breakpoint
CREATE INDEX `actions_pending` ON `actions` (`account_id`,`host`,`key_id`,`due_at`) WHERE "actions"."status" = 'pending';--> statement-breakpoint
CREATE INDEX `actions_active` ON `actions` (`account_id`,`id`,`lease_until`) WHERE "actions"."status" = 'active';--> statement-breakpoint
CREATE INDEX `actions_held` ON `actions` (`id`) WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX `actions_held_by_key` ON `actions` (`account_id`,`key_id`,`id`) WHERE "actions"."status" = 'awaiting_approval';--> statement-breakpoint
CREATE INDEX `actions_broken` ON `actions` (`id`) WHERE "actions"."status" <> 'completed' and "actions"."status" <> 'failed' and "actions"."status" <> 'cancelled' and not (typeof("actions"."id") = 'text' and typeof("actions"."account_id") = 'text' and typeof("actions"."host") = 'text' and typeof("actions"."key_id") = 'text' and typeof("actions"."revision") = 'integer' and "actions"."revision" < 9007199254740991 and typeof(ifnull("actions"."due_at", 0)) = 'integer' and ifnull("actions"."due_at", 0) < 8640000000000001 and ifnull("actions"."due_at", 0) > -8640000000000001 and typeof(ifnull("actions"."lease_until", 0)) = 'integer' and ifnull("actions"."lease_until", 0) < 8640000000000001 and ifnull("actions"."lease_until", 0) > -8640000000000001 and ("actions"."status" <> 'awaiting_approval' or (typeof("actions"."url") = 'text' and typeof("actions"."hostname") = 'text' and typeof("actions"."created_by") = 'text' and ("actions"."method" = 'GET' or "actions"."method" = 'POST' or "actions"."method" = 'PUT' or "actions"."method" = 'PATCH' or "actions"."method" = 'DELETE') and ("actions"."on_unknown" = 'retry' or "actions"."on_unknown" = 'stop') and ("actions"."approve" = 0 or "actions"."approve" = 1) and typeof(ifnull("actions"."dedupe", '')) = 'text' and typeof(ifnull("actions"."idempotency_key", '')) = 'text' and typeof(ifnull("actions"."callback", '')) = 'text' and typeof(ifnull("actions"."notify_email", '')) = 'text' and typeof(ifnull("actions"."approved_by", '')) = 'text' and typeof(ifnull("actions"."approved_digest", '')) = 'text' and typeof(ifnull("actions"."sealed_headers", '')) = 'text' and typeof(ifnull("actions"."body", '')) = 'text' and typeof("actions"."run") = 'integer' and "actions"."run" > 0 and "actions"."run" < 9007199254740991 and typeof("actions"."attempts") = 'integer' and "actions"."attempts" > -1 and "actions"."attempts" < 9007199254740991 and typeof("actions"."retries") = 'integer' and "actions"."retries" > 0 and "actions"."retries" < 9007199254740991 and typeof("actions"."created_at") = 'integer' and "actions"."created_at" < 8640000000000001 and "actions"."created_at" > -8640000000000001 and typeof(ifnull("actions"."started_at", 0)) = 'integer' and ifnull("actions"."started_at", 0) < 8640000000000001 and ifnull("actions"."started_at", 0) > -8640000000000001 and typeof(ifnull("actions"."finished_at", 0)) = 'integer' and ifnull("actions"."finished_at", 0) < 8640000000000001 and ifnull("actions"."finished_at", 0) > -8640000000000001 and typeof(ifnull("actions"."approved_at", 0)) = 'integer' and ifnull("actions"."approved_at", 0) < 8640000000000001 and ifnull("actions"."approved_at", 0) > -8640000000000001)));--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`hold` text NOT NULL,
	`hash` text NOT NULL,
	`last4` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`revoked_at` integer,
	`scope` text DEFAULT 'own' NOT NULL,
	`replaces` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_by_account` ON `api_keys` (`account_id`,`revoked_at`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `approval_links` (
	`action_id` text NOT NULL,
	`run` integer NOT NULL,
	`decision` text NOT NULL,
	`hash` text NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`action_id`, `run`, `decision`)
);
--> statement-breakpoint
CREATE TABLE `audit` (
	`seq` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`account_id` text NOT NULL,
	`actor` text NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`client` text NOT NULL,
	`detail` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `audit_by_account` ON `audit` (`account_id`,`seq`);--> statement-breakpoint
CREATE TABLE `callback_hosts` (
	`account_id` text NOT NULL,
	`host` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `host`)
);
--> statement-breakpoint
CREATE TABLE `callback_overlaps` (
	`account_id` text NOT NULL,
	`origin` text NOT NULL,
	`until` integer NOT NULL,
	PRIMARY KEY(`account_id`, `origin`)
);
--> statement-breakpoint
CREATE TABLE `facts` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `members` (
	`account_id` text NOT NULL,
	`person_id` text NOT NULL,
	`joined_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `person_id`)
);
--> statement-breakpoint
CREATE INDEX `members_by_account` ON `members` (`account_id`,`joined_at`,`person_id`);--> statement-breakpoint
CREATE INDEX `members_by_person` ON `members` (`person_id`,`joined_at`,`account_id`);--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` text PRIMARY KEY NOT NULL,
	`action_id` text NOT NULL,
	`account_id` text NOT NULL,
	`run` integer NOT NULL,
	`revision` integer NOT NULL,
	`kind` text NOT NULL,
	`event` text NOT NULL,
	`target` text NOT NULL,
	`host` text NOT NULL,
	`payload` text,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`due_at` integer,
	`scheduled_at` integer NOT NULL,
	`lease_until` integer,
	`created_at` integer NOT NULL,
	`sent_at` integer,
	`last_error` text,
	`key_id` text DEFAULT '' NOT NULL,
	CONSTRAINT "outbox_status" CHECK("outbox"."status" in ('pending', 'active', 'delivered', 'given_up', 'dropped') and "outbox"."attempts" >= 0),
	CONSTRAINT "outbox_due" CHECK("outbox"."status" <> 'pending' or "outbox"."due_at" is not null),
	CONSTRAINT "outbox_leased" CHECK("outbox"."status" <> 'active' or ("outbox"."lease_until" is not null and "outbox"."attempts" > 0))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `outbox_once` ON `outbox` (`action_id`,`revision`,`kind`,`event`);--> statement-breakpoint
CREATE INDEX `outbox_by_account` ON `outbox` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `outbox_pending` ON `outbox` (`kind`,`account_id`,`host`,`key_id`,`due_at`) WHERE "outbox"."status" = 'pending';--> statement-breakpoint
CREATE INDEX `outbox_active` ON `outbox` (`kind`,`lease_until`) WHERE "outbox"."status" = 'active';--> statement-breakpoint
CREATE INDEX `outbox_mailed_to` ON `outbox` (`host`,`sent_at`) WHERE "outbox"."kind" = 'mail' and "outbox"."sent_at" is not null;--> statement-breakpoint
CREATE INDEX `outbox_mailed_by` ON `outbox` (`account_id`,`sent_at`) WHERE "outbox"."kind" = 'mail' and "outbox"."sent_at" is not null;--> statement-breakpoint
CREATE INDEX `outbox_broken` ON `outbox` (`id`) WHERE "outbox"."status" <> 'delivered' and "outbox"."status" <> 'given_up' and "outbox"."status" <> 'dropped' and not (typeof("outbox"."id") = 'text' and typeof("outbox"."account_id") = 'text' and typeof("outbox"."host") = 'text' and typeof("outbox"."key_id") = 'text' and ("outbox"."kind" = 'callback' or "outbox"."kind" = 'mail') and typeof("outbox"."attempts") = 'integer' and "outbox"."attempts" < 9007199254740991 and typeof(ifnull("outbox"."due_at", 0)) = 'integer' and ifnull("outbox"."due_at", 0) < 8640000000000001 and ifnull("outbox"."due_at", 0) > -8640000000000001 and typeof(ifnull("outbox"."lease_until", 0)) = 'integer' and ifnull("outbox"."lease_until", 0) < 8640000000000001 and ifnull("outbox"."lease_until", 0) > -8640000000000001);--> statement-breakpoint
CREATE TABLE `pauses` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`reason` text,
	`cancels` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`ended_at` integer,
	`ended_by` text,
	CONSTRAINT "pauses_subject" CHECK("pauses"."kind" <> '' and ("pauses"."kind" = 'account') = ("pauses"."subject" = ''))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `pauses_in_force` ON `pauses` (`account_id`,`kind`,`subject`) WHERE "pauses"."ended_at" is null;--> statement-breakpoint
CREATE INDEX `pauses_by_subject` ON `pauses` (`account_id`,`kind`,`subject`,`created_at`);--> statement-breakpoint
CREATE INDEX `pauses_by_end` ON `pauses` (`ended_at`) WHERE "pauses"."ended_at" is not null;--> statement-breakpoint
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`email_key` text NOT NULL,
	`password_hash` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `people_email_key_unique` ON `people` (`email_key`);--> statement-breakpoint
CREATE TABLE `rejections` (
	`seq` integer PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`digest` text NOT NULL,
	`kind` text NOT NULL,
	`at` integer NOT NULL,
	`action_id` text NOT NULL,
	`run` integer NOT NULL,
	`actor` text NOT NULL,
	`reason` text
);
--> statement-breakpoint
CREATE INDEX `rejections_by_request` ON `rejections` (`account_id`,`key_id`,`digest`,`at`);--> statement-breakpoint
CREATE INDEX `rejections_by_key` ON `rejections` (`account_id`,`key_id`,`at`);--> statement-breakpoint
CREATE INDEX `rejections_by_age` ON `rejections` (`at`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`hash` text PRIMARY KEY NOT NULL,
	`person_id` text NOT NULL,
	`account_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`secret_hash` text
);
--> statement-breakpoint
CREATE INDEX `sessions_by_person` ON `sessions` (`person_id`,`created_at`,`hash`);--> statement-breakpoint
CREATE INDEX `sessions_by_end` ON `sessions` (`expires_at`);--> statement-breakpoint
CREATE TABLE `signing_seeds` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`account_id` text NOT NULL,
	`origin` text NOT NULL,
	`sealed_seed` text NOT NULL,
	`rotated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `signing_seeds_id_unique` ON `signing_seeds` (`id`);--> statement-breakpoint
CREATE INDEX `signing_seeds_by_origin` ON `signing_seeds` (`account_id`,`origin`,`seq`);--> statement-breakpoint
CREATE TABLE `timeline` (
	`seq` integer PRIMARY KEY NOT NULL,
	`action_id` text NOT NULL,
	`account_id` text NOT NULL,
	`at` integer NOT NULL,
	`run` integer NOT NULL,
	`revision` integer NOT NULL,
	`type` text NOT NULL,
	`subject` text DEFAULT '' NOT NULL,
	`status` text NOT NULL,
	`detail` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `timeline_once` ON `timeline` (`action_id`,`revision`,`type`,`subject`);--> statement-breakpoint
CREATE TABLE `welcome_links` (
	`hash` text PRIMARY KEY NOT NULL,
	`person_id` text,
	`account_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `welcome_links_by_account` ON `welcome_links` (`account_id`,`person_id`);--> statement-breakpoint
CREATE INDEX `welcome_links_by_end` ON `welcome_links` (`expires_at`);