-- The key that created an action, so that the keys of an account wait in queues of their own. Empty: no key did, or the
-- version that stored it did not keep it.
ALTER TABLE actions ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
-- The queues. Host before key, since the overview counts by host.
DROP INDEX actions_pending;
CREATE INDEX actions_pending ON actions (account_id, host, key_id, due_at) WHERE status = 'pending';
DROP INDEX outbox_pending;
CREATE INDEX outbox_pending ON outbox (kind, account_id, host, key_id, due_at) WHERE status = 'pending';
-- What waits for a person, by who asks: for the bound of each key, and for the inbox to show every one of them.
CREATE INDEX actions_held_by_key ON actions (account_id, key_id, id) WHERE status = 'awaiting_approval';
