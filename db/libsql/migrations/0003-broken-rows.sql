-- Rows that are not final, have a value that the service never writes, and that nothing else would find: after a manual
-- change, or a partial restore. These are rows that can't be named, claimed or rescued, and held rows with any bad
-- value; other bad values show when a row is claimed. The indexes are empty and cost a microsecond per write. That is
-- why they check no more, and why there is no IN, which costs three times all the rest. `broken.ts` has the same
-- conditions word by word.
CREATE INDEX actions_broken ON actions (id) WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text' AND typeof(revision) = 'integer'
  AND revision < 9007199254740991 AND typeof(ifnull(due_at, 0)) = 'integer'
  AND ifnull(due_at, 0) < 8640000000000001 AND ifnull(due_at, 0) > -8640000000000001
  AND typeof(ifnull(lease_until, 0)) = 'integer' AND ifnull(lease_until, 0) < 8640000000000001
  AND ifnull(lease_until, 0) > -8640000000000001
  AND (status <> 'awaiting_approval' OR (
    typeof(url) = 'text' AND typeof(hostname) = 'text' AND typeof(created_by) = 'text'
    AND (method = 'GET' OR method = 'POST' OR method = 'PUT' OR method = 'PATCH' OR method = 'DELETE')
    AND (on_unknown = 'retry' OR on_unknown = 'stop') AND (approve = 0 OR approve = 1)
    AND typeof(ifnull(dedupe, '')) = 'text' AND typeof(ifnull(idempotency_key, '')) = 'text'
    AND typeof(ifnull(callback, '')) = 'text' AND typeof(ifnull(notify_email, '')) = 'text'
    AND typeof(ifnull(approved_by, '')) = 'text' AND typeof(ifnull(approved_digest, '')) = 'text'
    AND typeof(ifnull(sealed_headers, '')) = 'text' AND typeof(ifnull(body, '')) = 'text'
    AND typeof(run) = 'integer' AND run > 0 AND run < 9007199254740991 AND typeof(attempts) = 'integer'
    AND attempts > -1 AND attempts < 9007199254740991 AND typeof(retries) = 'integer' AND retries > 0
    AND retries < 9007199254740991 AND typeof(created_at) = 'integer' AND created_at < 8640000000000001
    AND created_at > -8640000000000001 AND typeof(ifnull(started_at, 0)) = 'integer'
    AND ifnull(started_at, 0) < 8640000000000001 AND ifnull(started_at, 0) > -8640000000000001
    AND typeof(ifnull(finished_at, 0)) = 'integer' AND ifnull(finished_at, 0) < 8640000000000001
    AND ifnull(finished_at, 0) > -8640000000000001 AND typeof(ifnull(approved_at, 0)) = 'integer'
    AND ifnull(approved_at, 0) < 8640000000000001 AND ifnull(approved_at, 0) > -8640000000000001)));
CREATE INDEX outbox_broken ON outbox (id) WHERE status <> 'delivered' AND status <> 'given_up' AND status <> 'dropped' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text'
  AND (kind = 'callback' OR kind = 'mail') AND typeof(attempts) = 'integer' AND attempts < 9007199254740991
  AND typeof(ifnull(due_at, 0)) = 'integer' AND ifnull(due_at, 0) < 8640000000000001
  AND ifnull(due_at, 0) > -8640000000000001 AND typeof(ifnull(lease_until, 0)) = 'integer'
  AND ifnull(lease_until, 0) < 8640000000000001 AND ifnull(lease_until, 0) > -8640000000000001);
