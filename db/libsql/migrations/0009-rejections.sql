-- What people have rejected, and that it was asked for again: kept for 24 hours, so that a request is asked for again twice
-- at most. `kind` is rejected or asked; `digest` names the request.
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
