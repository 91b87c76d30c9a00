-- +goose Up

-- An engine needs no right to change the schema: docs/postgres-roles.md lists what it
-- needs. Two things are missing for that.

-- First: no body of a function depends on the caller's search path. What is read in
-- views is stored parsed, so that the planner can still put it in the place of the
-- call. The others set the path for themselves.
CREATE OR REPLACE FUNCTION engine.be_int(b bytea, off int, n int) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || lpad(encode(substr(b, off + 1, n), 'hex'), 16, '0'))::bit(64)::int8;

CREATE OR REPLACE FUNCTION engine.run_state(s int2) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE s WHEN 1 THEN 'queued' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused' WHEN 5 THEN 'compensating'
  WHEN 6 THEN 'parked' WHEN 7 THEN 'compensation_failed' WHEN 10 THEN 'succeeded' WHEN 11 THEN 'failed' WHEN 12 THEN 'compensated'
  WHEN 13 THEN 'cancelled' END;

CREATE OR REPLACE FUNCTION engine.step_state(s int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE s WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'held' WHEN 4 THEN 'backoff' WHEN 5 THEN 'waiting'
  WHEN 6 THEN 'succeeded' WHEN 7 THEN 'skipped' WHEN 8 THEN 'caught' WHEN 9 THEN 'failed' WHEN 10 THEN 'cancelled'
  WHEN 11 THEN 'undoing' WHEN 12 THEN 'undone' WHEN 13 THEN 'undo_failed' END;

CREATE OR REPLACE FUNCTION engine.run_public(id int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT 'r-' || ltrim(string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (id / p % 36)::int4 + 1, 1), '' ORDER BY p DESC), '0')
  FROM unnest('{1,36,1296,46656,1679616,60466176,2176782336,78364164096,2821109907456,101559956668416,3656158440062976,131621703842267136,4738381338321616896}'::int8[]) p
);

CREATE OR REPLACE FUNCTION engine.journal_alone() RETURNS boolean LANGUAGE sql
RETURN pg_try_advisory_xact_lock(7237102917306);

ALTER FUNCTION engine.refuse_run_change() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.steps_legal(bytea) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_options() SET search_path = pg_catalog, pg_temp;

-- Second: retention drops partitions of the journal and makes new ones, which only
-- the owner may do. These functions do it with the owner's rights. Roles that are to
-- call them are named by GRANT; the owner may always.
ALTER FUNCTION engine.journal_limited() SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_quiet(int8) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_limit(int8) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_trust() SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_free() SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_cut(int8) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_gather(int8) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION engine.journal_drop(int8) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
REVOKE EXECUTE ON FUNCTION engine.journal_limited(), engine.journal_quiet(int8), engine.journal_limit(int8), engine.journal_trust(),
  engine.journal_free(), engine.journal_cut(int8), engine.journal_gather(int8), engine.journal_drop(int8) FROM PUBLIC;
