-- What the tables and statements need and drizzle-kit can't describe.

-- The next position of the timeline in this transaction: base + transaction * 4096 + its number in the transaction. So
-- positions rise in the order in which transactions began to write, and none is given out twice.
CREATE FUNCTION next_position() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  number bigint := coalesce(nullif(current_setting('outgate.position', true), ''), '0')::bigint;
BEGIN
  IF number > 4095 THEN
    RAISE EXCEPTION 'one transaction can''t have more than 4096 rows of the timeline' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  PERFORM set_config('outgate.position', (number + 1)::text, true);
  RETURN (SELECT base FROM positions) + pg_current_xact_id()::text::bigint * 4096 + number;
END $$;
--> statement-breakpoint
-- The first position at which a transaction may still add a row. Readers of the timeline stop before it: later rows may
-- be committed earlier.
CREATE FUNCTION settled_position() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT base FROM positions) + pg_snapshot_xmin(pg_current_snapshot())::text::bigint * 4096;
END $$;
--> statement-breakpoint
-- A field of a JSON object as a text; null if the text was altered to something else.
CREATE FUNCTION json_field(object text, name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN object::json ->> name;
EXCEPTION WHEN data_exception THEN
  RETURN null;
END $$;
--> statement-breakpoint
-- Whether a key may have one more held action. It counts rows once for each key and transaction, and from then on what it
-- has allowed itself: a commit may have hundreds of them, and counting for each would take seconds. The caller holds the
-- key's lock. One of 16 settings remembers the key, so that a session does not collect one for each.
CREATE FUNCTION has_held_room(account text, key text, most bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  name text := account || ' ' || key || ' ';
  setting text := 'outgate.held_' || (hashtext(name) & 15);
  known text := coalesce(current_setting(setting, true), '');
  number bigint;
BEGIN
  IF starts_with(known, name) THEN
    number := substr(known, length(name) + 1)::bigint;
  ELSE
    SELECT count(*) INTO number FROM (SELECT FROM actions
      WHERE account_id = account AND key_id = key AND status = 'awaiting_approval' LIMIT most) held;
  END IF;
  IF number >= most THEN
    RETURN false;
  END IF;
  PERFORM set_config(setting, name || (number + 1), true);
  RETURN true;
END $$;
