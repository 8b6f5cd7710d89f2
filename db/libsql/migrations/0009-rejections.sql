-- Rejected requests and their repetitions, kept for 24 hours, so that a request is repeated twice at most. `kind` is
-- rejected or asked; `digest` identifies the request.
CREATE TABLE rejections (
  seq INTEGER PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  action_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT
);
CREATE INDEX rejections_by_request ON rejections (account_id, key_id, digest, at);
CREATE INDEX rejections_by_key ON rejections (account_id, key_id, at);
CREATE INDEX rejections_by_age ON rejections (at);
