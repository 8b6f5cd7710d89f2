-- Hosts that callbacks of keys with a hold may go to, as listed by an owner.
CREATE TABLE callback_hosts (
  account_id TEXT NOT NULL,
  host TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, host)
) WITHOUT ROWID;

-- Role and hold of the key at the moment of the create. Where the key is unknown the strictest apply. Only rows that
-- are held or notify somebody need them: no other row is written.
ALTER TABLE actions ADD COLUMN key_role TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE actions ADD COLUMN key_hold TEXT NOT NULL DEFAULT 'none';
UPDATE actions SET
  key_role = coalesce((SELECT k.role FROM api_keys k WHERE k.id = actions.key_id), 'agent'),
  key_hold = coalesce((SELECT k.hold FROM api_keys k WHERE k.id = actions.key_id),
    CASE approve WHEN 1 THEN 'all' ELSE 'none' END)
  WHERE revision > 0 AND (approve = 1 OR callback IS NOT NULL OR notify_email IS NOT NULL);

-- Origins that received callbacks signed with the secret of calls: it signs them too until this time, 30 days from now.
CREATE TABLE callback_overlaps (
  account_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (account_id, origin)
) WITHOUT ROWID;
INSERT OR IGNORE INTO callback_overlaps (account_id, origin, until)
  SELECT account_id, CASE WHEN lower(substr(trim(target), 1, 6)) = 'https:' THEN 'https://' ELSE 'http://' END || host,
    CAST(strftime('%s', 'now') AS INTEGER) * 1000 + 2592000000
  FROM outbox WHERE kind = 'callback';
