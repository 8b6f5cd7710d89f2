-- Which actions of the account an agent's key may use: 'own' or 'account'. `replaces` is the key whose actions it took
-- over.
ALTER TABLE api_keys ADD COLUMN scope TEXT NOT NULL DEFAULT 'own';
ALTER TABLE api_keys ADD COLUMN replaces TEXT;
-- Actions of a key, newest first: for lists, which repeat the condition. Without it the planner prefers this index
-- where one by status and key finds fewer rows.
CREATE INDEX actions_by_key ON actions (account_id, key_id, id) WHERE key_id <> '';

-- When an owner of the first account, or the setting SIGNUPS, allowed a signed-up account. Null: once sign-ups close, a
-- pause of the kind 'sign_up' stops it.
ALTER TABLE accounts ADD COLUMN allowed_at INTEGER;
ALTER TABLE accounts ADD COLUMN allowed_by TEXT;
