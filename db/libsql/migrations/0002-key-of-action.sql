-- The key that created an action, so that each key of an account has its own queue. Empty: no key did, or an older
-- version did not store it.
ALTER TABLE actions ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
-- The queues. Host before key, since the overview groups by host.
DROP INDEX actions_pending;
CREATE INDEX actions_pending ON actions (account_id, host, key_id, due_at) WHERE status = 'pending';
DROP INDEX outbox_pending;
CREATE INDEX outbox_pending ON outbox (kind, account_id, host, key_id, due_at) WHERE status = 'pending';
-- Held actions by key: for the limit of each key, and for the inbox.
CREATE INDEX actions_held_by_key ON actions (account_id, key_id, id) WHERE status = 'awaiting_approval';
