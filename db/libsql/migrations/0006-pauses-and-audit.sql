-- What an owner has paused: `subject` is the id of a key, or empty for the whole account. A row stays after its pause
-- has ended, since timelines show it.
CREATE TABLE pauses (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT,
  -- The actions it covers are cancelled step by step; it ends by itself when none is left.
  cancels INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  ended_at INTEGER,
  ended_by TEXT,
  CHECK (kind <> '' AND (kind = 'account') = (subject = ''))
);
-- Pauses in force: every claim reads this index, and nothing is paused twice.
CREATE UNIQUE INDEX pauses_in_force ON pauses (account_id, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX pauses_by_subject ON pauses (account_id, kind, subject, created_at);
CREATE INDEX pauses_by_end ON pauses (ended_at) WHERE ended_at IS NOT NULL;

-- Who did what to the account. Rows are never changed; only retention deletes them. Pruning keeps the newest row, so
-- that no number is used twice.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY NOT NULL,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  client TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX audit_by_account ON audit (account_id, seq);
