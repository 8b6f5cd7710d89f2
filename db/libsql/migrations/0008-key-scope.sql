-- On which actions of the account an agent's key acts: 'own', or 'account'. `replaces` is the key whose actions were handed
-- over to this one.
ALTER TABLE api_keys ADD COLUMN scope TEXT NOT NULL DEFAULT 'own';
ALTER TABLE api_keys ADD COLUMN replaces TEXT;
-- What a key created, newest first: for lists, which say the term. Without it the planner takes this index where one by
-- status and key finds fewer rows.
CREATE INDEX actions_by_key ON actions (account_id, key_id, id) WHERE key_id <> '';

-- When an owner of the first account allowed one that was signed up, or the setting SIGNUPS did. Null: once sign-ups close,
-- a pause of the kind 'sign_up' stops it.
ALTER TABLE accounts ADD COLUMN allowed_at INTEGER;
ALTER TABLE accounts ADD COLUMN allowed_by TEXT;
