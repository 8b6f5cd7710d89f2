CREATE TABLE accounts (
  id TEXT PRIMARY KEY NOT NULL,
  sealed_root_secret TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hold TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  last4 TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
);
-- For lists: active keys first, since NULL sorts before every time.
CREATE INDEX api_keys_by_account ON api_keys (account_id, revoked_at, created_at, id);

-- Accounts have people as members. `email_key` is the address without case.
CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL,
  email TEXT NOT NULL,
  email_key TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE members (
  account_id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, person_id)
) WITHOUT ROWID;
CREATE INDEX members_by_account ON members (account_id, joined_at, person_id);
CREATE INDEX members_by_person ON members (person_id, joined_at);

-- Only the SHA-256 of a token is stored.
CREATE TABLE sessions (
  hash TEXT PRIMARY KEY NOT NULL,
  person_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_person ON sessions (person_id, created_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- Without a person: invites the account's first one. With one: resets their password.
CREATE TABLE welcome_links (
  hash TEXT PRIMARY KEY NOT NULL,
  person_id TEXT,
  account_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX welcome_links_by_account ON welcome_links (account_id, person_id);
CREATE INDEX welcome_links_by_end ON welcome_links (expires_at);

-- Signing secrets are derived from the newest seed that applies: of one origin, or (empty) of all. Ordered by `seq`,
-- since the wall clock may be set back between two rotations.
CREATE TABLE signing_seeds (
  seq INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  sealed_seed TEXT NOT NULL,
  rotated_at INTEGER NOT NULL
);
CREATE INDEX signing_seeds_by_origin ON signing_seeds (account_id, origin, seq);

CREATE TABLE actions (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  status TEXT NOT NULL,
  run INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  url TEXT NOT NULL,
  hostname TEXT NOT NULL,
  host TEXT NOT NULL,
  method TEXT NOT NULL,
  dedupe TEXT,
  idempotency_key TEXT,
  on_unknown TEXT NOT NULL,
  approve INTEGER NOT NULL,
  callback TEXT,
  notify_email TEXT,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  due_at INTEGER,
  -- When `due_at` was written: a time in the future means that the clock was set back since.
  scheduled_at INTEGER NOT NULL,
  lease_until INTEGER,
  started_at INTEGER,
  finished_at INTEGER,
  approved_at INTEGER,
  approved_by TEXT,
  approved_digest TEXT,
  last_error TEXT,
  error_source TEXT,
  response_code INTEGER,
  response_truncated INTEGER,
  duration_ms INTEGER,
  -- Last: columns after a long value are slow to read.
  sealed_headers TEXT,
  body TEXT,
  response_body TEXT,
  -- No crash and no manual change may leave a row that would be sent without approval, too often, or never.
  CHECK (status IN ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')),
  CHECK (attempts BETWEEN 0 AND retries AND revision > 0 AND run > 0),
  CHECK (status NOT IN ('pending', 'active') OR approve = 0 OR approved_at IS NOT NULL),
  CHECK (status <> 'pending' OR (due_at IS NOT NULL AND attempts < retries)),
  CHECK (status <> 'active' OR (lease_until IS NOT NULL AND attempts > 0))
);
-- For lists: all, by host, and by status except the two statuses of nearly all actions. Each index entry costs an
-- insert and a delete.
CREATE INDEX actions_by_account ON actions (account_id, id);
CREATE INDEX actions_by_hostname ON actions (account_id, hostname, id);
CREATE INDEX actions_by_status ON actions (account_id, status, id) WHERE status <> 'completed' AND status <> 'active';
CREATE INDEX actions_by_dedupe ON actions (account_id, dedupe, id) WHERE dedupe IS NOT NULL;
-- For delivery: the queue of each lane; actions in flight, for lists and expired leases.
CREATE INDEX actions_pending ON actions (account_id, host, due_at) WHERE status = 'pending';
CREATE INDEX actions_active ON actions (account_id, id, lease_until) WHERE status = 'active';
-- Held actions: to count them, and to cancel them when they expire.
CREATE INDEX actions_held ON actions (id) WHERE status = 'awaiting_approval';

-- The action that a dedupe or idempotency key names. A unique index on actions can't express a window of 24 h.
CREATE TABLE action_keys (
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  action_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, kind, key)
) WITHOUT ROWID;
CREATE INDEX action_keys_by_age ON action_keys (created_at);

-- `seq` is the position in the event stream. Pruning keeps the newest row, so that no number is used twice.
CREATE TABLE timeline (
  seq INTEGER PRIMARY KEY NOT NULL,
  action_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  run INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  type TEXT NOT NULL,
  -- Of a notification's event: the outbox row and its attempt. Empty for changes of state.
  subject TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE UNIQUE INDEX timeline_once ON timeline (action_id, revision, type, subject);

CREATE TABLE outbox (
  id TEXT PRIMARY KEY NOT NULL,
  action_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  kind TEXT NOT NULL,
  event TEXT NOT NULL,
  target TEXT NOT NULL,
  host TEXT NOT NULL,
  payload TEXT,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER,
  scheduled_at INTEGER NOT NULL,
  lease_until INTEGER,
  created_at INTEGER NOT NULL,
  -- When a mail was last sent to the provider, for the hourly limits.
  sent_at INTEGER,
  last_error TEXT,
  CHECK (status IN ('pending', 'active', 'delivered', 'given_up', 'dropped') AND attempts >= 0),
  CHECK (status <> 'pending' OR due_at IS NOT NULL),
  CHECK (status <> 'active' OR (lease_until IS NOT NULL AND attempts > 0))
);
CREATE UNIQUE INDEX outbox_once ON outbox (action_id, revision, kind, event);
CREATE INDEX outbox_by_account ON outbox (account_id, id);
-- For delivery: the queue of each lane, and expired leases.
CREATE INDEX outbox_pending ON outbox (kind, account_id, host, due_at) WHERE status = 'pending';
CREATE INDEX outbox_active ON outbox (kind, lease_until) WHERE status = 'active';
-- The mails of the last hour, by recipient and by account.
CREATE INDEX outbox_mailed_to ON outbox (host, sent_at) WHERE kind = 'mail' AND sent_at IS NOT NULL;
CREATE INDEX outbox_mailed_by ON outbox (account_id, sent_at) WHERE kind = 'mail' AND sent_at IS NOT NULL;

-- Links of approval mails, by their hashes. They are deleted with their action, since old ones lead to its receipt.
CREATE TABLE approval_links (
  action_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  decision TEXT NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (action_id, run, decision)
) WITHOUT ROWID;

-- Facts about the store, such as the check value of the master key.
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
