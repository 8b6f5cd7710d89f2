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
ALTER TABLE `actions` ADD `response_headers` text;