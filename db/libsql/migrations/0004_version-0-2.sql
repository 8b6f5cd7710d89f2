ALTER TABLE `actions` ADD `late_result` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `created_by` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `revoked_by` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `created_by_id` text;--> statement-breakpoint
ALTER TABLE `invitations` ADD `created_by_id` text;--> statement-breakpoint
ALTER TABLE `rejections` ADD `similar_digest` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `rejections_by_similar` ON `rejections` (`account_id`,`key_id`,`similar_digest`,`at`);--> statement-breakpoint
-- Written by hand: who created and who revoked the keys of older versions, from the audit log.
UPDATE `api_keys` SET `created_by` = `found`.`actor` FROM (SELECT `account_id`, `subject`, `actor`, min(`seq`) FROM `audit` WHERE `kind` = 'key_created' GROUP BY `account_id`, `subject`) AS `found` WHERE `found`.`account_id` = `api_keys`.`account_id` AND `found`.`subject` = `api_keys`.`id`;--> statement-breakpoint
UPDATE `api_keys` SET `revoked_by` = `found`.`actor` FROM (SELECT `account_id`, `subject`, `actor`, min(`seq`) FROM `audit` WHERE `kind` = 'key_revoked' GROUP BY `account_id`, `subject`) AS `found` WHERE `found`.`account_id` = `api_keys`.`account_id` AND `found`.`subject` = `api_keys`.`id` AND `api_keys`.`revoked_at` IS NOT NULL;--> statement-breakpoint
UPDATE `api_keys` SET `created_by_id` = (SELECT `id` FROM `people` WHERE `email_key` = lower(substr(`api_keys`.`created_by`, 6))) WHERE `created_by` LIKE 'user:%';--> statement-breakpoint
UPDATE `invitations` SET `created_by_id` = (SELECT `id` FROM `people` WHERE `email_key` = lower(substr(`invitations`.`created_by`, 6))) WHERE `created_by` LIKE 'user:%';
