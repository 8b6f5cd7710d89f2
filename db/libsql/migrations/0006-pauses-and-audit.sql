-- What an owner has stopped: `subject` is the id of a key, or empty for the whole account. A row stays when its pause has
-- ended, since timelines tell of it.
CREATE TABLE pauses (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT,
  -- What it stops is cancelled, step by step; it ends by itself when nothing is left.
  cancels INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  ended_at INTEGER,
  ended_by TEXT,
  CHECK (kind <> '' AND (kind = 'account') = (subject = ''))
);
-- Those in force: what every claim asks for, and what keeps one thing from being paused twice.
CREATE UNIQUE INDEX pauses_in_force ON pauses (account_id, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX pauses_by_subject ON pauses (account_id, kind, subject, created_at);
CREATE INDEX pauses_by_end ON pauses (ended_at) WHERE ended_at IS NOT NULL;

-- Who did what to the account. Rows are added and never changed; only retention deletes. Whoever prunes keeps the newest row,
-- so that no number comes twice.
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
