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
