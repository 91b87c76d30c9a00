-- +goose Up

-- Autovacuum leaves the journal alone until there are a hundred million new rows
-- or some that are dead: its rows are inserted once, and go with their partition
-- where runs are kept for a time. Vacuuming what was inserted a minute ago read and
-- wrote all pages once more, a tenth of a CPU for half a minute in the fifth minute
-- of full speed, and gained little: rows so young cannot be frozen, so that their
-- pages are visited again. Where runs are kept for ever, older rows still
-- are frozen piece by piece, and not all of them when transaction ids run out.
-- Statistics are taken when there is as much again: every access is by the primary
-- key.

-- +goose StatementBegin
-- How partitions of the journal are stored.
CREATE FUNCTION engine.journal_options() RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT 'autovacuum_vacuum_insert_threshold = 100000000, autovacuum_vacuum_insert_scale_factor = 0.4, autovacuum_analyze_scale_factor = 1' $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE p record;
BEGIN
  PERFORM pg_advisory_xact_lock(7237102917306); -- as journal_alone: no partition comes or goes meanwhile
  FOR p IN SELECT part FROM engine.journal_part ORDER BY lo LOOP
    EXECUTE format('ALTER TABLE %s SET (%s)', p.part, engine.journal_options());
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Cuts the tail: it ends at the bound, and a new, empty one begins there.
CREATE OR REPLACE FUNCTION engine.journal_cut(at int8) RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE tail record;
BEGIN
  LOCK TABLE ONLY engine.journal IN ACCESS EXCLUSIVE MODE;
  SELECT * INTO STRICT tail FROM engine.journal_part ORDER BY hi DESC LIMIT 1;
  EXECUTE format('ALTER TABLE engine.journal DETACH PARTITION %s', tail.part);
  EXECUTE format('ALTER TABLE engine.journal ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
    tail.part, CASE tail.lo WHEN 0 THEN 'MINVALUE' ELSE tail.lo::text END, at);
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS journal_bound', tail.part);
  EXECUTE format('CREATE TABLE engine.%I PARTITION OF engine.journal FOR VALUES FROM (%s) TO (MAXVALUE) WITH (%s)',
    'journal_' || at, at, engine.journal_options());
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- First half of dropping the partitions below a bound: copies what belongs to
-- runs that are still there, few as they are, into the table that will stand in
-- their place. Commits go on.
CREATE OR REPLACE FUNCTION engine.journal_gather(below int8) RETURNS int8 LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE copied int8;
BEGIN
  EXECUTE format('CREATE TABLE engine.%I (LIKE engine.journal INCLUDING ALL, CONSTRAINT journal_bound CHECK (run_id < %s)) WITH (%s)',
    'journal_rest_' || below, below, engine.journal_options());
  EXECUTE format('INSERT INTO engine.%I SELECT j.* FROM engine.run r JOIN engine.journal j USING (run_id) WHERE r.run_id < %s AND j.run_id < %s',
    'journal_rest_' || below, below, below);
  GET DIAGNOSTICS copied = ROW_COUNT;
  RETURN copied;
END $$;
-- +goose StatementEnd
