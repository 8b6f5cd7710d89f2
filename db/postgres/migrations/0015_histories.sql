ALTER TABLE "positions" ADD COLUMN "history" text collate "C" DEFAULT '' NOT NULL;--> statement-breakpoint
-- The history of the server's log. It begins another one when a standby is promoted, or a backup restored to a point in time: the
-- numbers of transactions that it has lost are then given out again. Empty: a server such as Aurora, which doesn't tell.
CREATE FUNCTION server_history() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN OTHERS THEN
  RETURN '';
END $$;
--> statement-breakpoint
UPDATE positions SET history = server_history();
--> statement-breakpoint
-- The number that is added to positions. In another history it goes far beyond, past those that were given out and lost. Whoever
-- comes first changes it; others wait for that, and see it.
CREATE FUNCTION position_base() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  known positions%ROWTYPE;
  present text := server_history();
BEGIN
  SELECT * INTO known FROM positions;
  IF present IN (known.history, '') THEN
    RETURN known.base;
  END IF;
  UPDATE positions SET base = base + 1099511627776, history = present WHERE history <> present;
  RETURN (SELECT base FROM positions);
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION next_position() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT next_positions(1)
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION next_positions(count bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  number bigint := coalesce(nullif(current_setting('outgate.position', true), ''), '0')::bigint;
BEGIN
  IF number + count > 4096 THEN
    RAISE EXCEPTION 'one transaction can''t have more than 4096 rows of the timeline' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  PERFORM set_config('outgate.position', (number + count)::text, true);
  RETURN position_base() + pg_current_xact_id()::text::bigint * 4096 + number;
END $$;
