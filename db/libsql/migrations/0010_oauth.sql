CREATE TABLE `oauth_artifacts` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text,
	`grant_id` text,
	`sealed_payload` text NOT NULL,
	`created_at` integer NOT NULL,
	`consumed_at` integer,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `oauth_artifacts_by_grant` ON `oauth_artifacts` (`grant_id`,`created_at`) WHERE "oauth_artifacts"."grant_id" is not null;--> statement-breakpoint
CREATE INDEX `oauth_artifacts_by_account` ON `oauth_artifacts` (`account_id`,`kind`,`created_at`);--> statement-breakpoint
CREATE INDEX `oauth_artifacts_by_end` ON `oauth_artifacts` (`expires_at`);