SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA engine;
CREATE DOMAIN engine.step_changes AS bytea;
CREATE FUNCTION engine.be_int(b bytea, off integer, n integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT ('x' || lpad(encode(substr(b, off + 1, n), 'hex'), 16, '0'))::bit(64)::int8 $$;
CREATE FUNCTION engine.journal_alone() RETURNS boolean
    LANGUAGE sql
    AS $$ SELECT pg_try_advisory_xact_lock(7237102917306) $$;
CREATE FUNCTION engine.journal_cut(at bigint) RETURNS void
    LANGUAGE plpgsql
    SET lock_timeout TO '100ms'
    AS $$
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
CREATE FUNCTION engine.journal_drop(below bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET lock_timeout TO '100ms'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  rest text := format('engine.%I', 'journal_rest_' || below);
  p record;
  old regclass[];
  o regclass;
BEGIN
  LOCK TABLE ONLY engine.journal IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('INSERT INTO %s SELECT j.* FROM engine.run r
    CROSS JOIN LATERAL (SELECT coalesce(max(seq), -1) AS seq FROM %s WHERE run_id = r.run_id) last
    JOIN engine.journal j ON j.run_id = r.run_id AND j.seq > last.seq
    WHERE r.run_id < %s AND j.run_id < %s', rest, rest, below, below);
  FOR p IN SELECT part FROM engine.journal_part WHERE hi <= below ORDER BY lo LOOP
    EXECUTE format('ALTER TABLE engine.journal DETACH PARTITION %s', p.part);
    old := old || p.part;
  END LOOP;
  EXECUTE format('ALTER TABLE engine.journal ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%s)', rest, below);
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT journal_bound', rest);
  FOREACH o IN ARRAY old LOOP
    EXECUTE format('DROP TABLE %s', o);
  END LOOP;
  RETURN cardinality(old);
END $$;
CREATE FUNCTION engine.journal_free() RETURNS void
    LANGUAGE plpgsql
    SET lock_timeout TO '100ms'
    AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS journal_bound', (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1));
END $$;
CREATE FUNCTION engine.journal_gather(below bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE copied int8;
BEGIN
  EXECUTE format('CREATE TABLE engine.%I (LIKE engine.journal INCLUDING ALL, CONSTRAINT journal_bound CHECK (run_id < %s)) WITH (%s)',
    'journal_rest_' || below, below, engine.journal_options());
  EXECUTE format('INSERT INTO engine.%I SELECT j.* FROM engine.run r JOIN engine.journal j USING (run_id) WHERE r.run_id < %s AND j.run_id < %s',
    'journal_rest_' || below, below, below);
  GET DIAGNOSTICS copied = ROW_COUNT;
  RETURN copied;
END $$;
CREATE FUNCTION engine.journal_limit(at bigint) RETURNS void
    LANGUAGE plpgsql
    SET lock_timeout TO '100ms'
    AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT journal_bound CHECK (run_id < %s) NOT VALID',
    (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1), at);
END $$;
CREATE FUNCTION engine.journal_limited() RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  SELECT coalesce((
    SELECT substring(pg_get_constraintdef(k.oid) FROM '''?([0-9]+)''?')::int8 FROM pg_constraint k
    WHERE k.conname = 'journal_bound' AND k.conrelid = (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1)), 0)
$$;
CREATE FUNCTION engine.journal_options() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 'autovacuum_vacuum_insert_threshold = 100000000, autovacuum_vacuum_insert_scale_factor = 0.4, autovacuum_analyze_scale_factor = 1' $$;
CREATE FUNCTION engine.journal_quiet(below bigint) RETURNS void
    LANGUAGE plpgsql
    SET lock_timeout TO '3s'
    AS $$
DECLARE p record;
BEGIN
  FOR p IN SELECT part FROM engine.journal_part WHERE lo < below ORDER BY lo LOOP
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', p.part);
  END LOOP;
END $$;
CREATE FUNCTION engine.journal_trust() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT journal_bound', (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1));
END $$;
CREATE FUNCTION engine.refuse_run_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'run %: state % cannot become %', OLD.run_id, OLD.state, NEW.state USING ERRCODE = 'check_violation';
END $$;
CREATE FUNCTION engine.run_public(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT 'r-' || ltrim(string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (id / p % 36)::int4 + 1, 1), '' ORDER BY p DESC), '0')
  FROM unnest('{1,36,1296,46656,1679616,60466176,2176782336,78364164096,2821109907456,101559956668416,3656158440062976,131621703842267136,4738381338321616896}'::int8[]) p
$$;
CREATE FUNCTION engine.run_state(s smallint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT CASE s WHEN 1 THEN 'queued' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused' WHEN 5 THEN 'compensating'
   WHEN 6 THEN 'parked' WHEN 7 THEN 'compensation_failed' WHEN 10 THEN 'succeeded' WHEN 11 THEN 'failed' WHEN 12 THEN 'compensated'
   WHEN 13 THEN 'cancelled' END $$;
CREATE FUNCTION engine.step_state(s integer) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT CASE s WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'held' WHEN 4 THEN 'backoff' WHEN 5 THEN 'waiting'
   WHEN 6 THEN 'succeeded' WHEN 7 THEN 'skipped' WHEN 8 THEN 'caught' WHEN 9 THEN 'failed' WHEN 10 THEN 'cancelled'
   WHEN 11 THEN 'undoing' WHEN 12 THEN 'undone' WHEN 13 THEN 'undo_failed' END $$;
CREATE FUNCTION engine.steps_legal(b bytea) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
  IF length(b) % 16 <> 0 THEN RETURN false; END IF;
  FOR i IN 0 .. length(b) / 16 - 1 LOOP
    IF get_byte(b, i * 16 + 4) NOT BETWEEN 1 AND 13
       OR get_byte(b, i * 16 + 4) = 2 AND substr(b, i * 16 + 9, 8) = '\x0000000000000000' THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN true;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE engine.alert (
    run_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    step text NOT NULL,
    code text NOT NULL,
    message text NOT NULL,
    id bigint NOT NULL,
    delivered_at timestamp with time zone
);
ALTER TABLE engine.alert ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME engine.alert_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE engine.context (
    workflow text NOT NULL,
    key text NOT NULL,
    run_id bigint NOT NULL
);
CREATE TABLE engine.definition (
    digest text NOT NULL,
    data bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE engine.fence (
    engine integer NOT NULL,
    writer smallint NOT NULL
)
WITH (fillfactor='10');
CREATE TABLE engine.inbox (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    kind smallint NOT NULL,
    by text NOT NULL,
    dedup text,
    data bytea,
    CONSTRAINT inbox_dedup_check CHECK (((dedup <> ''::text) AND (char_length(dedup) <= 100))),
    CONSTRAINT inbox_kind_check CHECK ((kind > 0))
);
ALTER TABLE engine.inbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME engine.inbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE engine.journal (
    run_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    writer bigint NOT NULL,
    seq integer NOT NULL,
    owner integer,
    run_state smallint,
    steps engine.step_changes,
    data bytea NOT NULL,
    CONSTRAINT journal_check CHECK (((seq > 0) OR ((owner IS NOT NULL) AND (run_state IS NOT NULL)))),
    CONSTRAINT journal_data_check CHECK ((length(data) > 0)),
    CONSTRAINT journal_seq_check CHECK ((seq >= 0))
)
PARTITION BY RANGE (run_id);
ALTER TABLE ONLY engine.journal ALTER COLUMN steps SET STORAGE EXTERNAL;
CREATE TABLE engine.journal_first (
    run_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    writer bigint NOT NULL,
    seq integer NOT NULL,
    owner integer,
    run_state smallint,
    steps engine.step_changes,
    data bytea NOT NULL,
    CONSTRAINT journal_check CHECK (((seq > 0) OR ((owner IS NOT NULL) AND (run_state IS NOT NULL)))),
    CONSTRAINT journal_data_check CHECK ((length(data) > 0)),
    CONSTRAINT journal_seq_check CHECK ((seq >= 0))
)
WITH (autovacuum_vacuum_insert_threshold='100000000', autovacuum_vacuum_insert_scale_factor='0.4', autovacuum_analyze_scale_factor='1');
ALTER TABLE ONLY engine.journal_first ALTER COLUMN steps SET STORAGE EXTERNAL;
CREATE VIEW engine.journal_part AS
 SELECT (c.relname)::text AS name,
    (c.oid)::regclass AS part,
    COALESCE(("substring"(b.bound, 'FROM \(''?([0-9]+)''?\)'::text))::bigint, (0)::bigint) AS lo,
    COALESCE(("substring"(b.bound, 'TO \(''?([0-9]+)''?\)'::text))::bigint, '9223372036854775807'::bigint) AS hi,
    pg_table_size((c.oid)::regclass) AS bytes
   FROM ((pg_inherits i
     JOIN pg_class c ON ((c.oid = i.inhrelid)))
     CROSS JOIN LATERAL ( SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b)
  WHERE (i.inhparent = ('engine.journal'::regclass)::oid);
CREATE TABLE engine.late_reply (
    run_id bigint NOT NULL,
    node integer NOT NULL,
    call integer NOT NULL,
    outcome text NOT NULL,
    at timestamp with time zone NOT NULL,
    step text NOT NULL,
    code text NOT NULL,
    data bytea
);
CREATE TABLE engine.log (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    step text NOT NULL,
    attempt integer NOT NULL,
    level text NOT NULL,
    message text NOT NULL
);
ALTER TABLE engine.log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME engine.log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE engine.member (
    engine integer NOT NULL,
    address text NOT NULL,
    joined_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    dead boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE engine.member ALTER COLUMN engine ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME engine.member_engine_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE engine.pass (
    name text NOT NULL,
    not_before timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE engine.run (
    run_id bigint NOT NULL,
    workflow_id integer NOT NULL,
    state smallint NOT NULL,
    owner integer NOT NULL,
    fence integer NOT NULL,
    next_check timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT run_check CHECK (((finished_at IS NOT NULL) = (state >= 10))),
    CONSTRAINT run_owner_check CHECK ((owner >= 0)),
    CONSTRAINT run_run_id_check CHECK ((run_id > 0)),
    CONSTRAINT run_state_check CHECK ((((state >= 1) AND (state <= 7)) OR ((state >= 10) AND (state <= 13))))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');
CREATE TABLE engine.run_name (
    run_id bigint NOT NULL,
    name text NOT NULL,
    key text,
    CONSTRAINT run_name_key_check CHECK (((key <> ''::text) AND (octet_length(key) <= 1024))),
    CONSTRAINT run_name_name_check CHECK (((name <> ''::text) AND (char_length(name) <= 100)))
);
CREATE TABLE engine.run_step (
    run_id bigint NOT NULL,
    node integer NOT NULL,
    step integer NOT NULL,
    name text NOT NULL
);
CREATE TABLE engine.workflow (
    workflow_id integer NOT NULL,
    digest text NOT NULL,
    name text NOT NULL
);
CREATE VIEW engine.runs AS
 SELECT r.run_id,
    COALESCE(n.name, engine.run_public(r.run_id)) AS run,
    w.name AS workflow,
    n.key,
    engine.run_state(r.state) AS status,
    NULLIF(r.owner, 0) AS locked_by,
    COALESCE(((NOT m.dead) AND (m.lease_until > clock_timestamp())), false) AS owner_alive,
    NULLIF(r.next_check, 'infinity'::timestamp with time zone) AS next_check,
    r.created_at,
    r.finished_at,
    w.digest,
    engine.run_state(r.state) AS state
   FROM (((engine.run r
     JOIN engine.workflow w USING (workflow_id))
     LEFT JOIN engine.run_name n USING (run_id))
     LEFT JOIN engine.member m ON ((m.engine = r.owner)));
CREATE TABLE engine.schema_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE engine.schema_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine.schema_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE engine.setting (
    name text NOT NULL,
    value text NOT NULL,
    CONSTRAINT setting_name_check CHECK ((name <> ''::text)),
    CONSTRAINT setting_value_check CHECK ((value <> ''::text))
);
CREATE TABLE engine.workflow_step (
    workflow_id integer NOT NULL,
    node integer NOT NULL,
    name text NOT NULL
);
CREATE VIEW engine.steps AS
 SELECT r.run_id,
    COALESCE(n.name, engine.run_public(r.run_id)) AS run,
    w.name AS workflow,
    n.key,
    engine.run_state(r.state) AS run_status,
    x.node,
    x.name AS step,
    engine.step_state(COALESCE(get_byte(x.c, 4), 1)) AS state,
    COALESCE((engine.be_int(x.c, 6, 2))::integer, 0) AS attempt,
    COALESCE(get_byte(x.c, 5), 0) AS failure_count,
        CASE
            WHEN (get_byte(x.c, 4) = 2) THEN r.owner
            ELSE NULL::integer
        END AS locked_by,
    ('2000-01-01 00:00:00+00'::timestamp with time zone + ((NULLIF(engine.be_int(x.c, 8, 8), 0))::double precision * '00:00:00.000001'::interval)) AS complete_by,
    engine.run_state(r.state) AS run_state
   FROM (((engine.run r
     JOIN engine.workflow w USING (workflow_id))
     LEFT JOIN engine.run_name n USING (run_id))
     CROSS JOIN LATERAL ( SELECT d.node,
            d.name,
            s.c
           FROM (( SELECT workflow_step.node,
                    workflow_step.name
                   FROM engine.workflow_step
                  WHERE (workflow_step.workflow_id = r.workflow_id)
                UNION ALL
                 SELECT run_step.node,
                    run_step.name
                   FROM engine.run_step
                  WHERE (run_step.run_id = r.run_id)) d
             LEFT JOIN ( SELECT DISTINCT ON ((engine.be_int(entry.c, 0, 4))) (engine.be_int(entry.c, 0, 4))::integer AS node,
                    entry.c
                   FROM ( SELECT j.seq,
                            e.e,
                            substr((j.steps)::bytea, ((e.e * 16) + 1), 16) AS c
                           FROM engine.journal j,
                            LATERAL generate_series(0, ((length((j.steps)::bytea) / 16) - 1)) e(e)
                          WHERE ((j.run_id = r.run_id) AND (j.steps IS NOT NULL))
                         OFFSET 0) entry
                  ORDER BY (engine.be_int(entry.c, 0, 4)), entry.seq DESC, entry.e DESC) s USING (node))) x);
ALTER TABLE engine.workflow ALTER COLUMN workflow_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME engine.workflow_workflow_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY engine.journal ATTACH PARTITION engine.journal_first FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
INSERT INTO engine.alert OVERRIDING SYSTEM VALUE VALUES (912702163564328027, '2026-11-23 13:52:32.985506+00', 'parked', 'pay', 'lost', 'as the script says', 1, NULL);
INSERT INTO engine.definition VALUES ('84743a27ca8c97248a5a4a7b28eacb323d727ff539bf8e062776a1dc63593740', '\x0102a213f319a2ac9d26e09c9aa27eb40b019aed6ad664aa41d31c4945f60d85de864746e0f2c5870155bef554653aee0261c430dd20580af060d4aa4ba520107f185be4137c9084338b985828aa6ffd95dc9fe889519578e559dbc51c42f74427294e2d6d6d6953225e7fed4a8850cec6c4d959ffd5c8d4f559ba1c8144eabcdaba199f7071f485998a581c3f8aa40f8ce8b18ae2fabb6844d8226154bb7d39aef5593665f102a73ce532724c767741798399a0624def3bbde8de8a20f84c747deb9122c30a0b7d335461f3f9d82dd5516da2a920159502bc390554fefbc5dcfc5d9ac384b227b97dbf9a2df5f15f228d4000806fced6dcb1a7ef60660d23fe4dfbf5b6d54c8dca55a167b294c03d5edde8b880767ee4699d94525bfeb07a43efdfecc027baad313dd3192c5b057d01cc306f51aa0de154cfc35108f0ede14b6384bfce43b3c474ff88464238dd2a00a874441b677f05df2bad5cb2418ec65f8ea6590f58ccd96bb6f6af5b2cb324711df511e92eac0febc17629d19f0e62a47d85a70e5a6e65d46678691cd99bc5cd9bdac5feb9dace3dff0413487854ca9ef94d7d8c48535ea13d342be24caa9c9bad01b97ba5850730c8c76f701856fa0af500209473c995474b004b92620a4410af6f96a527886cec29298354df78419eae10cf65ea11cc34ecaa14f027a6fca4b5ce238e8eda76e41216f648d5def979cf27b108f8ef2c115fed2ba41bee6283fca4e7b8fd332a0a2bdd1b67eda99488c5fc19ee1e6489beed81f79db5f18522a066c6c55e254a01d27bf425e708f76209b8b62e90d087bba449accdee419e455f2847575f8f78d63492cded9a71f7387493741f89bbe49681d9cd32c2116a19f344c16b5b8a4c40ed23e038e99f69161ee05da6c89c3e0cdf7f97ef12a7429f90ade9ef3da4617f38682cf19b512d95cf087954d46d6ee20a14edffad5b16dd9a5a58f6011f53898388be18e5a7032da6439fa855d1fa933cab86cb31d3a949a80eecefa00bd42c27cdc1ef95247f9ad864a515a9b91e3dcad37d779fc74e27eb7350e168176b665d605b8d0e4c61b0aa68f8377e0ee8273ee6e8b38f1f7f8d18658b706ff9716960098ff1d362c62eb1097eff25e7a14b97c3be5a927b1ca54992589fd4fe7c0bc41bc555f27bce6eb24eb91fe5f4d3ac2a11349225bf60c2df9f3ecf6afa8158d62a99f92c133de76ad0919d1caa4a83618153d6c06747b8f06c6c16a67139821c271bfdc6ab3be210dc7825049f7c12d4b6823b2eb4ec461c0d3aa4eecde02d27b619fa70bbb30ba33035989aa198d1c10dc5b0377d4f00b9e49d45655a8a37f684f3ed1f4267112976d2a073e8712fbb160446d4dd03632e16f10a0d3e175b5af35bfa5cbcf1ea2d92a71f7f36788891c02c7908ab8fab090c99124835794d11d7ac22523ab7fc00c8082259c0d68fa4972ccfa6a963cba84087ed4982042869d086742bf113c7d21a8d1e7af3952a040ad1daadf19b2dc07eca14b698f2ac478d30f1f6d6042f065e1389cecdfad1570890df038be64a9c5fedfa8c891c4b1c00f332bbd52457367d065bc17f3ef1d0b941703b477873687f099911e79f98b87e707e4033f81b01033cf70cfa05ef1a7efdf982ee33893923faf4f0139b35d893d5c05a12e29296916ce3346f31ad147111753b39362c8b2779ef76c8c91156c86164e669a57985257d02eb1bb734e8f28b291876b73513b231dacf0a1b27d8ca72d2bed4f468aea0c7cbea27ba154bc4cfbd2b29835a5cf9927eaa94f3042e28b8a4bdc669edd0d638fdc4674a97762581f4e22ea9b233708c6ff020a01b86954017f82ad563b418cb9b5a0dbbd4eca831ddbb9f9c64f65d50dbca3f76cc0c0bc48c123a0c32e2861ab1e376e6cde1088ab44b6ce1e7cf85c665a4d557ce2fda3753c5464bd8337598533ada2c8c9ccefb99db1a1e20449bec3c27d2b111f5e43985de2ffec8a76915180ae05565aae8a2ee3b92dd9524d90aeb2f1d0feea082e4eddae0eb6971f9f728688568e8f29bdbda9faa5c09a9e07c408dd739f3c3462bad0d77a3b8e42d2fb592b56d1494d70f1b38ddb3c91ca61ea25f99675e826219c41515772895157c94abeca4e6413c7d9b56105b79f95ba0952292a965d27bd79eda2a8fa6f43cc48ddc69da4af1744bc5e42bd68291303ba3a20b0bd1f1b2cd71320cc91e4321d1d4f909558fd8b68f5d7194e77fbddb2cd630854836b94a9f60c7a73159692fe33a2df133aeee5f7f9200211bfad084562feebc2ef92a4ab0168ce58272d903430b1377c7f91d04e2fc64c23a0d8cc9c80b7eaf24da059068e18033ee88f079a0a4b35389c44bf124fef0a727ffcb41cd5584ae77c5be1a40f095c4355124f7cd070097bd5fc2beea3a3961d6c458a4f2265ce54d327af4e9398a2af891e6d5da69391ea40bdd0419c2b8510f13fe77f6f821875a887ca2270cfe66890e0e78506ed52b51fd120a495ba4097ed7a07d9d2079eac574a6da8c7bb0511ac2e49a0cb4cd4c8f003096d183d2b956296bcbc57eec6296d196a222f72f34082a35af69e06789012b94b5818b8173908bf7b26583ac9eff9a2e4221ad42d7d0d6114d251b3a4a151657600caeb90e1e16363c560884f7f4d250a017cd655dc12528fa9a42097ae833b477b6b09d80d956af3c3bcbe07f4136f7b16aa22fedd4dcab2c612ef4d13a5709d5730fa60d31094dc6f3dcf97e5139feb6c2246fd95e71ead629243ac4fbf9d61127607b277ae1bc7b736be0ae1bbb95f7b39c019b6a2158a576316f81c69677a2b706838e387ff74bfdc763564092454737b382f5d73077efe503b51ddaa1459614d73cf23150f04cd98bf08492af76c2493954d32c6cc1357dd17af24652cb4c805b9b60c3dd042ddb4679efdfedd8cdae08c6d36df8c9dad90ad3efb42e9614fcf5f77f4a8c58deed9987ade5faa44d39f161028b6799a2af3ee2c7889fded5b5a664f9c1880dfc20856f41ce7acfc905eb2169e244f64512c8eb52666769cfc4f86d2e9e79c44be8ba6b38563b0ca3ff176f7bb02499910558e95eb2f0840109ab6c87b39d4cf29efc824b4e6c6971d22682e1042b67585c793f66a1baaa329e2486eb7a0d19f7d4a6fed9d24dd1e371d8cf031e96e4100415b838e106db796d3361ab1e102bb1ea714e86791c88f8e904d6be84f91b871a40009121d09c4ee317f26bf7601855abccb399957da21b6633649eec34893cb877a93b868c3562864b1194867cf1e81c3697178eae72202953e54f9a3bc365e5691d3b4b995e565dfde6a79e0271b10fec3060ad19dc8eb56559fb3be3985f3b1ff052031aa6ba2fc45a4d02a8f5b1b93bc7908bb61bc8a3cd45102c47d473ba2692a290cbf0b324726f450b1db40d19b0e5a0c7cc962506005fa4cf0e901788f39c5a25a20ba744a4a26550713278e7306ac7715ca649826ef32bc951bcce427e13aa308115c17d0ea4af694456b00ee9ae9f74ce3e104970becd0fb575d6d02d7270fa40fea13f60ac26b0c836b7dc9e18a588c085e2e94111ac54cdc80236cc74eeffc97f5cc8b4d0a9f93cbe47e5d2a29acc6ad66e26e9dbdb60b74ccd0e704e291b83dc373ed98b1a28d9b8a28f58e154f6d795b216c149f74d18d64bec0544a5b1c5ed43ca0578fdd554bf5ef0bbecaae2b29274197fddc965cbe8f5e69c12501dab9a8ed1739888919ddfdea49149833cef407c8d7cee64a9aec2090f3b0406d1f58ff61a911f829eba244c16ddb486adb0419c1c81d525a9e9bb8c612cc1e42a925176ff65b9faead92e09c72984e109d1fb5506184ac9b7dadce3d82d8399fceb20b0d31cb17a6a8c3e406e76ad381dc189112a6963461f3bb9df43dfd4f2b6d841a205717a1ccbf3f8ba1196b758a63f93ec560c402a238335450065e8bf32027f6ed70d94c9a05cec96a348cc81591587859de2478e5edfc917eadf5ec095693dc16d8680885070466ed79f063bbd22ac998b3c860c7d7974a7082723385df6d94a270ad9567a96f06484af9ba2ff6c54d4922b3c1f649b4f30bc7f961210383b59fa71302ef92bc86b87f95ee0fe1d359e7803e59796ed5857a766b2d2d65684a8348d0cc992dc6570c99401975e7cfcf73957343e8f84c8039f83a54f116f282d8fdc08799135764ffd23b97aaae39918446cfbb5476c17a2d6d1b955ec7e0ae12feaf5ecffae9dd9fb59a1f01ac89025122a0bbe25be4c9d8b166edc2801d7a3438a40829deb8d3f1ff287cb6e39e2b9b645c72b9fe218a9f61e99480dabd58f175fe1b26d25998910a11da353b3b837646f5c038552ec3194a4a5bb7e88035ef0309a4e538be32f04bedd1ed7d5570ccee5f6261b876cc1b2e11e7e5843f9fca8051b9f9b6f9f698d58d8f48f3fb9753314c1e60b1c20219c679b9c350c8cd5e2cdaf928fe7cecdb11c62fa6aa9b2f5ba6569185424c1541f8bcce8c19649755f60b7b1280d08b7b7e0c08280c6a45924a44c548df487c0c4a819f035c7e2f02208a2c669c1e4ca44284c7a1c9b71d3410cebe828d092aa6e959e5d718dfa9644ffdaed7eb5f196c3235a1d63dcd62c120fdf65b479aac1359a64747566a9f5804c302cd9200ca600707b04d6fb106477e775cc67ea098800861b641660e070224e9efa24ba63029a267fb606a6588dee0a40208b797f768216de05491c9337c2c290835a350196ef83345d1a289adece2bd8f4ef5c98b24f50c2b1c1b9ab0651d4e81f675d87664e6823a76560d3bd68db5566a265622e29a32ab0d9bcbc209635664700b055fa901f9a0d85250c2731cd93c2cfb9d57cda3e58cad969e82f3c573ca9c2330da5dd30e98b2de94baa73cdec715503e015649e953c5b55a3e0d082e75de0f29a76c8a1f51592c9a6af85dc2591484cfb408e8f5e5e9d6a992ad6f31b03a622eabf4d2518f0ef6ab94f8cd14c0ff52dee4aaa7dc3b83349ed2790de24dc10411a3be1d451105fc3724b7c8937a1c49f5023d7ab6e4b29f10f6c4fcfdafe55458ae3037bd65814421cd6438f341a4e34e46b3095936c1c8abc0532709e46d441b245b144758ed977cb70b05c48a78ed41102930c8ead128773b4c262b00e6f1f6e809bd5ad073147cc997605cb209c4db1f70b208068cae14af2055d09fc28ed8176c183608012f6aeecec41e63824363dff877e2c14728a76ccf0d927ef3c09e0a9986c24605c4de1b0e055d98525da018db494426ee0e15a40fead9e722716b57b341143dead41a46e93e25c3f37ef28ff78e0b22f0b038c8f5570e96bce6d87d5f46f420176736dfbe191ef2923e67a2fc010c3bffc75f4027bd5ac13b404395e135fd22c7cfde777aa929ae1c7569819718f07c807a2deefffa04fb4f731551302e15afe4551e8cde68f2f7e582f71e021a6c8e5840b49a6c0e175b9c8d036c40713bd818b70481019a7daf43fb73ee90b9ba7c38779df22d4c7a6c8c93f0755b6d114f31ab338f605e89d40e270580bb9651642997fb9da4056a8033fc778aef5996abb757c96caa57c6ede1b4b3eba049a7267d4d87fb7571262ddd7938ec8b5b591c224c641609b0aabe565e2dbdae4b19e16a44f8ae786a09b9e5c18fd25f4ebd515f12e3499e3f77fd9534860a9272cb93a95e3bcf2e7b7bd3b2e08d5c9dac6bbaec92de62d71bfeb275cf915986769e33218f317c8b8a2a84f6a39b1e6f468d125b511814a3ac881b9fee97d00b08d2bec96ddf7d5829cff9869fdb4e0e1d0871fedf84530e35f89f6b0500abed7aacad0bc6367e74d5d2f7eba6b9decca9a10f0ac8943fccef4fdcac13bde697d801937967a9fdfe3b41c1188241d2724eca170c8c094ac0ac367e65179b5b7cc08822cb6e15051de3dce9cca90c2d093c63660b14db9008f78c34454457f476f53b9f5e181f44a186caa7531b56a0cceae5138fa37cbab20c7b59f2b47a90f9d4613da103dfcb66ad25608bacc4cc644c7f563ec053a0cd83d8c1719c270b43da3347be1deba78a3bb5941395bee4337f914ec5bd267e302e6d78fd2af30289567eae8fdadfe562bafb5f75cebd361f5ad77381dbf80a8596d5e899cff617768c63a68928d7d3bfe30afab63ddd1d1d30afe475c3519f6bf9a6a77b73aa40366829da97c142845314eb3db2f6838d08cfaf2e908ec8d530ad220cf03f02bcee1687e171ba1226ecaddb3f207b6c53a523cad0bcd6d41b443a22e1506376ba97f2e622a6088e194f307182a53941d48e80b51a0947a6a4ae3a171a83cc40ccac6670a3d2e7a34e98b33eadf5f6909c567f0b8543188596e8bf64aa970a1284e1b6e839b34f689364553a4836c8da305c0803cfc0642909417f831dba344ce9ec9153804a23a501d5cd664b33ae8bcfa89e7dd0ca543f7f65d52d8b31ee158b5032f8f0932b909815f234d088e788568f77cb75252ff54ad9b042e0bc3ad62995c701a57a010ed0d0aaad1435eed16315abc13d0fa7bb66abda5cc45a9a24831aad30f49b10d374faa5386970331e7d830e03c440818c3f965e1124d69df6294be88a99fc77a2685856c254e48dec2c9f53195cd89a42e94664f4fb233548904da2b2cff63958c616f02fe6776af81bfbd48eb7f852cf2bb56c5578d9b3d5061c37ad2c6a234d1a8dc06242cc50de041516d0de892e008804820878feaff64e856d6c0015ba55e122da987493e9e47a8bf3f8d4e9c40ababfd206a30fd50e7fdc13036150acd21ddc6bce18972c3b5977b4ef0ab205b1e43046a300e2f1a243898b59eada1c6f6af026670dd27db221828655426488fd63e52dee962446112b15230bd1b66e1aeacdd42c3da4c05b729a1da2a6caa7e4db1b1ffdc32da9162cde5a02b1a9c85aad3be45ff0d08b096650fce88aec8121399f0bb64fd5a5fe2f20eb7d21dbcef5b57908a136914653a95b142c98a2ac58b309d703aaa56ec67a0ef3682db14ffb64b3726556649bdc83b5a337dba4da4bb6ceced1c2689ca9e4e1815b0930228e4df756b5e160640275e4c131bcb4126e5016c3123c9433d420e2cf74176e3f287240aef5298acb45fe1a562e59128baf4d0a1c001879eec3201baca9f682cdbc6d4ec3640bfeddd638ef2480f9b43589de0f57886ffaf1f9101ccb71d03586a49b53747fd76ba4ed96066e12ba9c5e3e34b8fdfaa25b5a3eb7d15f5a3b40b4e157c393382f049e57c596b8c4cdcb3d6253681e20312232e4f4fad28a08e5c85bec4c774fa3bd2bc24e7297156f9799376ed35b679237d263101f3915772653172782a1c1f60adc6de068fdfc15d25cd8f3b235f93f20a9a1805832504cbadeaab111c80bd30888e1a3ef33c86c3c961a5f9dfe12df03e5a73fec7f0a5d17845425cc345218ec700c3244606b168e0364ed4fab7986ab244a497d040cfe023c635978d312c28ce0fccabac75eeb9a54110ddb3021232c68fb547f86b75bc17112a5617ccf8d5742ee09e06263d64b0ac062c2070b566a41b5cff2ed62c40f63886c91d0fe7209bf6cfe224d08aeb4aab0c249c90e7f1bfcc010893017cb52cf95c94c405ae0407a2bc5d55312e27bb8d7da5bfc4af604e5676a186f6ade8e68622cbe3736f51ef216b0f23369e7eb11dde339aff9f5611e962d263aa6898b78c235d6256ecd834df94a7a5f808b8ae5817a8af0b0c8d7aa6efe11c747fab627abb4e5eb94a94faaded0846d92d92309f6cc335f521c9b644301a0ae3414a6d1e7418ab7fd417a0d687734c9c2b8c9145ce0108cc813178e08db19e4cb4bd1ce1d34cf8e2e46ff26c720d7f10a79cc012919b1a308e9cc3f193d0337efd23d5eaa0f779515534d6182b85bcede90ca72322d43c84b3bd79ece4ec22c635ae08260b6171af0f447ed10e31f5148ce7591c0446223a1c42da475993e5517bc170533c0e3121ed762f68d7b61a008ea215f79efdfc7bf4c8a9eca85374f672a4ecfd414317043d4eb906b3416acd2251f871ac492bc4e14289892dc6795a6a29998aa799c86fdb7bccd1c06b1c36fe6389462c6f721866cd8ead446a7e4900c80672698ae3d8c7ba6c3d9d6cdd6eff76e6751278a05ca28ab8eed267cd1eff63cb24661ced807799cb2a8b24a321c81350c3f68df250a8f5f895936a955f8e308eb225714daca6b672b72ff28d55ffbe3f614be2b4fb474bedb86d29330662efdc73bfd2267381a3b623f6c4bb9ffb5a486b3be37e85d0665769995eeb4c83995490d44a9d45b3ce7ff95b8d4d77fdb90ce95be8f712e7d1716b6f7de61fe576d17e613447bdd0cb830aee835018cc4b4eb4995c57301e50fd736a860c213d675b22bde13653fdfa10ba1159ad9f7da7c7abba19d4f282da4718b39b7c9714489cc3641619703a60d707a302f7c76e5634f085be48f083f46004da6fde5137dd19e7c6a4093317014e90951bf2d04acc7e83e508b3d0408f172b436938d689328bbcdf087ba583c809e39ed5e8a4e2e6ef2a9cab99e87697a150c9eadde51df0d1bf1e92257ac40f9d43787c949d46ceb62405bb5156f3a5d68e694e57b10883cba3e0f1ee6848af393a814b11e2d43bc91c53e8c37a1e2876d644a38d432053e734915a30e07b5dd7d8018ff863ab53c422c12b00e5c8d3b643c5701ba79f48d045fda84fcb820fd62e92a61f05c9c80873fb0aaa906c4f84831b7e20e69612be047dce1db176559f2c957226f28f61c7f958aef6fe0bf78983b41de35a21af3dcec4ccbf9fb195837b631537fe50ee099e2e95d115013c323db2341ef9d7997d09f72d2547d3ef33abcf8b7350f75342901f423d6f831b6df247801e0871826bba9659dee9b7801e2d40d52da681dbe9a67bd2107e8d4e390d53f233eb8414083108844ca4350a385b0a46f4f8c0829cd2b75a3942b79ffa554a5f9e55655f23538919096236bd6e4fbe77296e572fc583d465d829e3bfe8447e0852a586aa67ef0ef9f5ecf0578e6c7d895abe925fdb7c7c448b87724f110da53b20e357a9fc66c48e78c7afb76bb83141ad819c125ede4541c680708b193d622af01e1d6424ad102efb7bbfa0fa2ded951cd22f67cd6c323ad73f14684c55653987781664c2ee36e2d9a994b9f40d3119b29aeaa0c7d1178c84dae40a17ad919ee82eaac9e6f5fb544caf279a73b2249c9afc496e388fb8d19c7d2f140b53e85c20e133a164c4f770fd52a1fd45f81832d98009ea797b6d63559fa5f472e89250ea5ab393cd53175506045b93fdbc75fea51e3b4cccdbd5af6b146c171f8bae0c6b89fa22c620e004982000736247a5420488f035bafd2c1b8d7c78de7ce74ea3c0e155d45177e926e80685fd167af9cb4e8a9670b8dbc6287278a8c21cef79cc4b5db4f7df9076bc1fd8f702c42b9219f58f6d5398ed56ed0222b9f1c09cc8b9fc3547ee24e8ec39d11bd8252cd044c4064d10ddb30ccd9ba2c5122f4fc3de31bec2a58841b53204b32f7138b374ea679783689f4bd5d9492343bf80d6f79e3f5cb7dfdc4cfd565364f5c5e9ebf7b4fe55ee2ce9a8c296f96a1493e495e1194ff090c6d3a4603c2e178a36e0ecc08fa4220cc316adb4d8cb178dc1ac150bcd876cdc3dd23d031107c3c128f9bb7bcdcd732833a5c17cafc9638ddda18818dc849d84f674531dfc9aa751d3d0fa8009f7180086b96037ff0eb2f8c817387565a0aa004c1c1489a18ddd565aef71bf1eafd4fb26c626a235806459d5ead0fbb8b6dc3f171b73f5eccd4c1930b144d868d91fdd96116ce40833fc92752f561fac74c7ecdfff19c9eb9a70392ba9498f8cd847f73cca4316dd252441bbaf452418fcf23f13e0ce05169b44a2cf0fdbbd14f520c5b99981b264c154f48f0a087075b9027298af4cb8491079904d41662eff9c3680e72a512dbffe4fe50ba8b0ec1fb75941e1b70e532670eecb9590e1a9d585d3e7e9425ae4c864c985c0af73d8a06af3988b519164a5194f7c536fa769444093576a14bb7a541b4fc838f836be453d564e2309376f13e7dcb669ef2a5866cb7cf342acd8d575e28c9dc0aa4c956d987a32ee12e656c5f1baed5f6974382fc768e5aad31dc8f101ad6a4b8c75fce21b44ec7d367ce55414037ec260fc75c8ccdd6b85117a31ae02e3b94f7fbf57ad85586101e261d944e2d85573346fe135bd67c424f3b49d9450a9ec909aa0630291c3e7b467c5d360c88ec7c5229739d4ff27735c0f3f7b193d7a53dc0367cc55afc411c41c17be8fa1dd3dba72dee1fc9f8528af38cc9ac7eba4503236cab5486ed71d3da0790c1237821e90a84e380c3b49aac4c1aba57114adae79285de0d1ccd4c4827d19ac410b37a329e9d3099f0112d5e4b8994e5c50d8a234f7394b98ddecff2d1be624b25f5fde8faa23912959b215dfdc2b67efe93ca1a4a39463093c0208e517a6b0a40d14d632f90a87ec8d6c3b039a96ce735deb0c6d7283928a56fa1830e874b9671ed4db020a490dcdce79285cb6aa4212fa749a2f15f159df76aeabbe70baa5a08bab1576fed4bdf392d150c297c8b5bd70ea883a4c7b419d92524c3d0a447663f6a8b6afd30f8f1dd1c66acc73f3f1c6f2ca67bfe0a546831df29c41b3e2305b353747af7f031befab4cfff4d5ef7ff1ae926d5c022ec02e9a8d112981a5bfb62617fd3744a8c7db000725440682568a779a7e81726760c6a26c4a7585b031a72fd3686ff4f349934e143de3b177ce428879c65d75c0be4222c45b063aa8c593a6708c324f52da53da37fca6eff9eb5fe79007435b7ae2a66979bace8ae16a3ab0fcf3e8bf9e8ccb5f3bc5a06c0f33bcf24fdaa7ec43d4c7db2ba53b7fbd191cdd1551848cc6433a419326a0f6b743049351a65cb37da93c62bd038f00d6ade5c2c5a9481cf16c225aab6094a4287792e4d36adea57215cfa17f061895fd2708b7c89b93438ef791343a70446b979cdf6e26b1de70996a087b575070d3524b25057cff235fe316e4216b49e046c38583e966bd3449625e1c5b292055a30e916e00a476afb282ac09a0cf01cd04cfe9e47fd13f6128245e867b0ccb4a45698db63677b1add2cb9d526e33bf4cdbddaebc4d2eaa641a5e8ee45c67ba3815ba7a0ba237f2d1c09ab96f82f768b40da449359a82e858338d7a01cae08adf9edc38cd8076707aa0dfbc2807daff98554640ef1b97ea8fe5dcc7a97acb6345d4b03108763a54b336842d7d82447ea191eba0b5f84ff3cb2ed76af254bd22d1ee333b96559f019245fec45fa4f12a44d88b91eb7289d20d798ab7f6020a26733e452b6bdbb6d8cda03bf6f906d540a216c6633bcfcd0790162f6f977ecbb1feb4a024580e207cc7be6f0f0bf3c374098b289921dff459d5b00072209f18fdb61b8e7a350db079eb1b09ff2ecd37d8dc8b62f9efd9cae962e91d320e268cf2af75cb050166869553ffce73cb82e13cd36f7e5b90f41fe2ba393e8fd957c3a03a82b8753943e886a9317183f1a485286c83a77c84f3c57155037c5ffe56110debd0e8e6d05085fde70b97873867574b75f086b5388611e8b853a758fc1b8325a032c5256d4b87d6bd547a0b344a212b3626498f6a8df1614d33273d7bdb798ad6ddf689ade51cdef3a03074850af546ab8150fe91da1bfd1947e97b0a81770ce94201bcdd4f66e8c2ea9bf8c1a50386358c850d6c229d2f3f9e1188e8d93567788bc710a7f6e2742670be86c515352d81dddb59ac4c3ed45233ae1050169c6372153569f70238d7f9156a21676d70988e910650ea39d9da27bf59702b0f977dd5744054136404f829b5626aa2adfc8559e924b62a360d9b2fc563b7cc378a54285a6c05224a76854f027f29a97cadfeb9337ba35d9ec3aa35f4e907ad874d6ee8701515fbd6fc97a5ffded126692bf9e207294a204e15172da6bbcded5d10c2f82a4d2a58f7398e13511233563439555ed6f5863928d7eeb171c3ac899bf8d6f644dfa77e64e21be3cf2e55c9d33064c57bb0a512515880f24cb58a78e7587945b725d9c5c9222ee8568b1f4c080b3ff5f9ffbd74ab97d5d3ced952dade091e5ec8ce1310314f61971547f9f64ada2bc06ee97615d59adf1506f4ec357f122cb08ddbb9cbe2969774ebf85f3deb3d339be71894cea5619a3c3cad710fa938576d8bdce8f605c1b0fc1f6f8596287fb5a9511bac1805d8c59316d4dd5612822054b7ebba956353e6069a5e00cf2a009b61ff570a92242723066c47d41f9489b2ad04ffd39c1a825dd37ba38377809aebdf8a1a8ab144150a3780395b6228090e4f0a05e04da02f266399b3342b7a874fbd98d1edb439e2067ef472f30568f043a912d23ce33a1aa404fb7d934e1947ff7e56035c90af47361a45caa2c236ae0a7bb94f6e5f3f851d66f66592054ce6462d50cba98e276b083735f5d8c7754cfcd5fd8e30c46510eefc1e0fb7b84dbff210459005dfe3ccc76856ca0e638c818aaea4701c24399d7204d315e77a14beecd7ae20e1cd36b9946cea0157dcf6dfe2bf917c346c62b06744cab4d91776d6f82f1e0cdb64a46c44a61a9e3a39544f9bf3e131c9237b1767f2968e8be4cacfaec91dc37032ddceee867a839e82cb8889d371b57a1f3ad5b90d9b27dd306a106c4d3dc61da82a478fc793608aad5caaa2111a95234bfbe4aafebd8b46b296137136721b19a78c5722d784a1fa135cf44376df70d061c808d388b234b1286994b5e08aecb487c5440523bcb908490872f1f2f7f8d86f41098923f235a05c01c6a02870fa686c18327527bb53b53d58fda31254cc1c63b00321f34814fa7b640c2e43ae3272b5428ceb93cec3bdb47dfa89ed11c5b3b8c730758af103660286ef6ce8493a300c18ed791a8be56fe4d41b3969a3f95021906a1d981b1a001879158963bcf08ac08b19853cbcd6cc2a74c599e836555a221f407bcf62de11b2c485dbf30834bdac94b6ce31b7837dd0feb2609e17109e28d35bae933b5dfbc52cc59285f6e21ff42c99691c0c53b7b4e6d349eb634e61f89ff35b4d0b0917e1615fa01fe43c4c0fbd8e102bcb9273974b2c5bdd4ef60c268ebf1b0e75da76455df116027e932131e934961cadd2a3030d1ec0fededd49e0b0abffaac7309e480077552a35e901f62dbfeb04b2d7721863b0dc3bab23bd12069471d2313eaedfe5077aff301c555d751c1a69ff96c20ecd66c1a67aaab08406a761555b8c901ecee3557418e828fcc9429b77dc77301ccaf26bed9ca61b75206aa601ed28a737db96971f4429c7bddec68e8f31d4cf1c6bf4df708869e9609e4ad704ca71d2edd365ad9bec6c634663f54365d975cc70769154014f89d13ad9ca6fe2c9f311468cb055c0abbcf6656f47c4d692c547373800c364b0b2440a87ad1a16edb0fb22d6c1fad9980666b037a1eef7eca29d522b43d2a4618cd1a29e6e144a706fcc9d54103695d7c27ade1f56804385ee4242457c65226850046e1ddb3a7b1064621d41d6adb5b0eef72ec996d3480ce79a8c7b717f371858dc239576438ea82f3187ef0837610e05cc2b061a3b9161d593e99e7a7f304a2002ffdb693763817696d21a6680c7aa56090db83851ae2e6707e387ea0da86c0121eb7a127d22d2a58a8aba35dfcd9b0a8202ca531206ce0b524727f21b775aaa78152097018d49fc672c9fd6acc8b100d38aec03f3301a2534c4c95b802fc672dac82ad5d1d2f28f14b00bd09c6b294cf8d78723427280ae0dd44cf070ba84240257e1e785064e4865f5a9afc9afb8c6c384347cea0997c8a2547f49528bcb2858db0ddf6920f6816bb957b31813b1164e5554e179102eb192fb8bea1b2684354c17c071200e520942c1910728c4cbe7f0cf32269801655ad4a81748cab49da80ba4681b169384fc9da5810650812d2b87a408f7e9bd19b206268537aa9c223907dd7a1d28da57dd9ffd5878786d0cb8f40b23800fd6e76388a8e8a3ef710856f2654a4572e1463f7388b974a58b840f7616e9998a350769133c40e29d9c1246cc2d9b9b7d3adbbc5fd268428d438096a058a6f684e31ca60ba011c146a4b5bc64ce59ac6503a11dcc7623100ed6bba7a4ff2f92e3d2421d93a3751674d8e51c163fd29bce41a551638429db7c4fe3359711a52633c3e8c40d685f7646b29dcac38813115ea08acd9e8a4519e982908367211bb01425390dee9b28abfb93f75dba18b62fa8e122ef9de67376e6a842dfd489a0d0722f02d818d62d632dcc86874916f7660dd3ae36be7cf0a845ddb316a02e5d86afea60f64812b1b989cc4ab24763d0b364eb4808808c0eb13fc02548227864e3b41aea91d0f964424cf5618e94d2e91fa605406e8495f8f28c00c518a23d2e916e4f6c0339bab0163b92191c6919dba4ff123c6837bd03ee2ee3a7278fd872a3eef85963d216942a063729355bde2bf22579bd7b78c2114e82f31a03af5b331e1f1eedd7e02ddbc18779c31e010aae8dbe38c4748c4e45d0f31b979ca5d4f26e3b52f62f0bd59ef74fbcdde35ff2640ba51b0a28e2218152c48f413c12417b67f043eea4b45647092947481d81b3358ed7eb1b571dae4f34c8588e1203f74169d1546127449f31de835d800d4e839eaccc6327732cb4ffcf76cb769a8612091af791d4b08eb31ff33e4d44d872d8c3991880a935d3407d9b132f819a3e9b715ab32e0ec8aac8b1db14b50a1e81d1e9ac6bfa2911832707f19516bd7cb138de02cdf0ff04d903f5d27832c96eb4fa2e52174e645510f779381d09ad94ab306cf2d76560120fdb043e6d09ac2a25fa920dbd33773c6c6312232dc7ed896c15d7a4c7c62765e58fedbd0e02c9679f4894df9b4a6763c23f03f10eeb062ec072df4efa65ceb1ef7029cd3b8cecf5ba70c028ebdf5f0255e3174ac8edf7bbfa3e48f94080d1851fcf793dc387420951c7812a5bf16aab405d0e94a25d190915122aafa51e7ecdaff345c3590c68384baf27f40940b55481112ab28b31890d425161dff6d345df65e736c33bda6135cbe34de7aaad6a22ddab545afa5756e28d0f3e4d450ae66dafd34e435bb96207da6aecb64fb85ed175c31be528eeaf1b394bf64612719de8cb1ad228f0d110b4e8c58f8f3dd5cb18adfd28e79126bbf4507947195c0b384fd121f159cd39a3dc69f0b3007770d9fb5c0ca7eee3f921de82d1cf400280b15e91367b39001ca11e386cfbf4466f33efa1e4872af648246814b2b405f3ff95a77c79c9b853e66e4ba58a75f80625e09e4a4e29a39d96543cd7f4196c9a55930965b3abc20f75b9a7a2fd9281deb167e5a3b9ab05308281aa1f86b091c77be6a7c5e3230ebe7ccee4eff47d3ce39fada6e97138204ac81acde84e38f053b95de4ac10d1eea3961dfb789c750e9f2b7ee5eadc8af68d8567925a97a3c22359dcc5bd2a5fbeec69ba7bfc4a789c21e9a59ea7db95d5f4488fce2ff70b76a793f6e2c03fa729bb04d7c53401669adb0d54ffa1ed4659ee210c9cd6228a8a5bdf67b568fe577faf1aeb18c07773f3ad230365db9c287e8e9cbc924eed17f74feeda6526e5a2561f8f379146ac73fa5bd5efa32eaf925e09db053efb6417a87f670de18069713e3e9391bee7219ba8979bdda7f6612e384b59cd987bd0e832ae764a53cf3a649e7d6ffa723f99b4d74e9d4123aba7e68cd24a251cbde7ee3c8b42606b32e8a956c04e71cc0929aa0e319db8765df4e8863f1ccb0a2c8dfd163da39753ec6f2b9b1060b7b86f6300ee1ce5c3d59a1b7b70520d98e24c8c55063a118fff699f83d23201e43225b91a3d83591c3e8e35f3eb976fc4ec938dc6f56d7578cffd749a15d7ad7d3f7f6eff8dd956b51fce2e090ff07e101131594bc2b014fcc74360ca93fa16f093de940181c461ca25bb1fe959985d1d7c319686bdc2eb2886e9555347fe070b7c8b19597761a504a6aeb505e8f41be0ea3d6c8ee5ccc4322f7afa2aa0aa60589d872e8641dc4202a364385a5d0520324ba72a640f88bc1af80bf9902ca8738f4951556c4b6ab9379cd5ea5a649dbd0c5f9bd357d1f2bae66f797cd1e3a08a4eb89a36369e48499c3b199e76aa115fa05e1d785b0c772e7d45d131e458a8dedee4b4eec89bc36b3e0a20c2e61982bebc3af3b470a95ce1fd3482c8b2c682bca6b7cbcc411f55545593a5dd14e0a1b18054d6a9f30cad516383ee4774d3b6efcfaf9e0b308961b6bd1805dfa1b9a94e16009359f64f782578301e1de7526628b388a583f112ac76d14e8192136ae253d39d456f351013197ae2a76c0b3b247955921380ff6e38c2060c085ab338a4571561526cfba333dd54e91910977cd19501dd5e89d281a0476038eb5994b8754496a6a373750ae6dd543fdb038cb4f79b115f9597b537f27c3ce8a25da56a25697483a3456405e66bb86c0617aef4ec38efc3910744a0355493692aac3959326ff50db6460df6b82744e78c18e5780cd490086de46c754f0cb0a440e6c2c8b99ae498ba41b6bdec8b8cff644a6f2918dc6163da8d187eb3403efc96ada15d4d776e220d3a853ec4dfa7e3f3ee9e64693a06339bf7027c7e7956e951e92d5fede3e3e06337c9f13c817839872fcd59b9430897010f98aa2cb20f924c7b2617e251a57463a324852f9b153264774d184f9ed0f5fe9643962837839364576b92e21c860a9cdfc0e57dafd801b3c1a235d17c46d2b86b886fde709c972e04739ab2a2c8a5df2da2deaeb12e8ad1c2dbd1f68901ef150abae8db06aebc4ebbd507dd00072ca721d074ce7323196fb9bd4f3e52cd027f0d679da3abf90a41f8dcc5f65197f33776f913df801e231fd6e3af9665c6e9b4eccfa12ff3410c1617f5976e8ed4a507729b994d5c81ad192bbc4c5ebc22411d5bada7dee602ac2a9f69fe4d7d3546ceb8b83b92d7d86d17c46510c7b8ec8ac32e304659266dbee9293bfb246e6e336e2bdf62ddbd108dc955f0ceff7eb03230d9a8fb0b44b7a222685a9de6abd7c859fed497484f69b74ab59eb8ba01961038880e8b5ddeb735e97f0fcd3b557f85f4eacf6a2dcd438c22ba57c7cf96613707f042eae3e3537a74a54aed57eb6b9b0626374ae60127d4a62bfc6f89f252dd3507bf110907795c79849b68e2e3391585391cde418ec81591ca380e154a6fdd716216f57a9308ceeb61c081bdd51585ed6ca795ad12b21691e0afd0f5442694eca8db8f46c5edea46d043e5211183727ce1847c1c0a486c3b22305ab1ea4dfa16b03920df91c12c3933c53adf7a8b1ff7019f1eff660fbb3c08d943104958d12326caa5b525ecb53e70a9efebf72c78a41774e548cd3d9f5b764ff233253df10312f8a9b06c37b0e94352c82bcf882aa9f8b908fff7f08dfddedf8cd8cfd79c5e5ad0c11bc9be765249253c0546e808c23a9fa6fff403169876706b3c682240dc5dc0762a24228613f9f9cc0be8a83703fa90e59a0bea796fe0f6d39c20ea0788555b85a826de199c0d619baab00da8dee642829759be40c40748e507c287c6a72d2d8114ebad0d74b4a6d1edbe901ddbca1e19a874ccbad6477d40063de8aee808619ef59613d7e6be686443d3e2be7f305de870ba3ef4b8607ed7dc74b3935bcf7133941bdee421815e9537e336e44400013149d81cba51dbb808f39a72bb941232212be4a85d82693516217bbe7a443938fcc5a05e9cc6e1a7022653c607d6bf0615011581cf1991e8ed15033f615e54c2f2ec5e2f6520403b58f46accc2104d5146c66d582a86bd1a4a94a14c14271991f0bcb4ecb00c30546d1560db7341a01c70efaf862b5723197a742a342b12e1d10f132cc5f08bef3d80750727a3463fd2fee437db596daff6bd7100', '2026-11-23 13:52:32.690656+00');
INSERT INTO engine.fence VALUES (5, 0);
INSERT INTO engine.fence VALUES (5, 1);
INSERT INTO engine.fence VALUES (6, 0);
INSERT INTO engine.fence VALUES (6, 1);
INSERT INTO engine.journal_first VALUES (912702162362035330, '2026-11-23 13:52:32.693819+00', 4294967297, 0, 1, 2, '\x0000000002000001000303f0ae6001bb', '\x0102a213f333b5ad7de48579256951ecd8d15a87486e64cca4c864b3f55aabc5fdd2dd637f0be340edd6e6c0c66f2533ec032b2c5c3e64574d03a7cb30dae9ba409a6c7a75d0850196eb298b1e561fa48fdcb876f675205493e90965aca177572fcced7c26facfdf58e57e561a3c66ea5ca9f1e294767eed488cc517cc22c98a470884fde2185be4850ce0a8e17e3c8923d0d88704ecc6c9e5f6fbc38902693dfd2a46daf14a09efa2fcfe94e3d3785557e095dc08f84eef72958ee400a6f7e055fac98fa50093d1b29292d63f67a064428ff154393324de500d56877a73464f4af1136937a8d104463fb0001ecab32f358a5a62a17f');
INSERT INTO engine.journal_first VALUES (912702162362035330, '2026-11-23 13:52:32.699659+00', 4294967298, 1, NULL, NULL, '\x000000000600000100000000000000000000000102000001000303f0ae60188b', '\x0102a213f3a06e13e882efb62d9259d50b9d5ef9f7f5c8bb327f4cedae7758f7721502782fd0e4ae6fb3eff446421fef78ef9e0f3772d9cefbe8c766a5db92a55f9533db9e3c6cec20682b5c2acf2d6ec5868b08ccc581c84d487745dfc9439a18f9b0cff4906bc84fd9f32d3afc8aa3dd3fae26f82a5c37a8b5c60f0ff5b0273b01cf115a6f50a7e5bd42b2565ed3159ade9572ff993bb89b26fbb172ee6f82c6237d770c9d89858887820cf44bcb07b815d46af2744ba050d3b2185abd54c6b34a05a48ee040fe26ae34ea91a532a04eb07cf766b0a90ced87adfe0c3a4f96c496e58f8aa61a2e99cf058e47046b1b64e3ec503f5c14a91c0d630afc43f2be8add0024cae5a785bb7034990ac1c40fb840b275b6fa04b6');
INSERT INTO engine.journal_first VALUES (912702162362035330, '2026-11-23 13:52:32.700933+00', 4294967299, 2, NULL, NULL, '\x00000001060000010000000000000000000000020500000000000000000000000000000302000001000303f0ae601d850000000402000001000303f0ae601d85', '\x0102a213f3f2b58cdcf7e654c89fbd01d8526d4a2e87aef56e1d09cf97b0c2d28bafd6fcfea1e0fc7bb7531c5ed1480e38df59c38f257a7ed557589e8b81cc39661838518259dc8b47dfc80ff5ab2198bb4536318efbb5a23c834f7cc96fa590d0865c61a8159d66d0b5d2bc202a91cffe485d05fb95685fab5ca7a42b1fe286fce4f8ea624513163384a89d5174e9e1e00087adff2598682dde8f7f1fefd2e06562ec70278a439cd797fee045a61275d0aab937fa0745c59dc7915e1ad97f3eda5cce7a1618600e19cecceb23ba5e9ccd1fa1fbdcdf3b658afa2d54b00025e0a8c272a137efcb23e91c91f1481614ba05c859613839f3c01f9bfc087a4ec7ae4650f3117b06479f0625380ef2da98e91d3c42aace71aa8cdbe0b5a0c011bff835d4df0ae98d7422640b203c794d92c1dae8eb019682903386d53918f1a0f194');
INSERT INTO engine.journal_first VALUES (912702162362035330, '2026-11-23 13:52:32.705028+00', 4294967300, 3, NULL, NULL, '\x00000003060000010000000000000000', '\x1302060201127b2276616c7565223a226265726c696e227d100202108080800602020004');
INSERT INTO engine.journal_first VALUES (912702162362035330, '2026-11-23 13:52:32.705416+00', 4294967301, 4, NULL, 10, '\x0000000206000000000000000000000000000004060000010000000000000000', '\x1302080201107b2276616c7565223a226f736c6f227d8201060208736561740105223132412200000e7368697070656401115b226265726c696e222c226f736c6f225d00000210819080060c0200040004');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.826568+00', 8589934593, 0, 2, 2, '\x0000000002000001000303f0ae620848', '\x0102a213f3ee15740232057aba8e1266331c20c8db464f500eabbb93036186cf2fa7895851281570d5eb567d0b9defcbf4c7853e53083af9c9143b18f6c94660c13154a5c8555918f2f01deb03290e5362174f996b5cd3eb5fae859df246eeed2680f162c16c3eec6983c58e0eba6005ed4e0daaf7480aa0f7ebecc9d79756fc9994d9786e7571f79098508ea19dcb24136fdf4abcb5b45f39729ca0804ab5b6efc7286eec655cdddbf9f75b4327ed0dc2d14c47f09704992663489111f5b44fc338a71d50d8e1d22a75b6e07708bfdd74c23e050da119f8d88b49891d83466d50a84cf07df339ae1d76a4a3f41e03671ce68b4f818643');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.832635+00', 8589934594, 1, NULL, NULL, '\x000000000600000100000000000000000000000102000001000303f0ae621ffb', '\x0102a213f36bf8a2f6aa9b16e2c46f1578f80f923ca74e69e8cda66011a1b83e096ee1a1820cbd59859ffd26a86784f4f5e1d8610f38455bb7f4d66f037ecfb5ab611bc6d524dfe9186a1a79ad0f10599c429cb7437e575f181eddf3621ade29859454fa340892942bc9ce8ff057a287122bb6b32ea8abe7fd42843a8e7da389bbd2ccb22d13aa58b461734c99ca020c2f22f78fe16e4c9e92a7744a977da3217778dd074d6232227f479995925ca72f2046d52aa26dd50051f493e7b11cb0e8ea550eaf3a58a0d731c7b2c466d0b28d184424f6a1fbeaf1cadb4dd61ce155ae6e20b31e0f79cacad5332e30a4a342bec16149ed8daa9690fe29c59882fad2af1f12d8ba1ddce18cd6b1f7819d69b92fbe7ebc8ffba99ca0');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.835369+00', 8589934595, 2, NULL, NULL, '\x00000001060000010000000000000000000000020500000000000000000000000000000302000001000303f0ae622aa90000000402000001000303f0ae622aa9', '\x0102a213f3dd5242c9175270931d712f7c49e78513e1a01bccfbe98146d42b318bf8eec1df5386a43769e62d5a240172655e9c9dbd08801249f384389ac40cbb3d2c749518ae6a03d25d8380bb42eb4bad32d538652f387d0a0d25c4bd27026e7fbd0e8f19eca7099ae5472d3cdba6d1274f5799cc931854d6c3ae40f75b344d1142580b14a085d33424b8f31430d9f89f2cb696498286fdc3ba3cd4f2255a7f97c04f28e9494d273ee25275072803793d9d45073542cc3e1a13362de7ab8c056bbb89673a2555277e6fa8407b5081d989c8243f218d756ef48584d427643f122fa659898e9b0899c3153fe95bd85c8f6b4f21f4de7dc1c06798c19a068433453befc3570cdde802feb999dd87fccac9a3d6b55b198363ef6f1c04507ba03bda0a80ae32ab4831abb38ab0f595e5241b21b9020151278c49203fa5b777add63adb6c856c03bf6ea1f37cca5eb4815e24dffc21b0b05f1aa1ac98b32551e11f97fac989ef03317bb1036603e4b4a3c002ce62217fd38a9591a076727877fdd8dd5a06292d9eed67d55f29938d10f57db4b0ae17d0671897ae1dc35197630cfec6353617a3a86b9d0f28ca3f442da54ce3e0b3ba7f037abad61b9001b3859ef74eacb9eecb95f4875e6ea7a249bed568ee9f25b5d4dd2d31ed46f98c99e309a8e9d7f3ea5a52c838483e5a33dc5f7dd7a3fa842cea6692d1d60363d14b80dffae330c31ba4f6b0e3dc0f762cf802fd7264bcb28725b274');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.83875+00', 8589934596, 3, NULL, 5, '\x000000020b000000000000000000000000000003090100010000000000000000', '\x13030602106e6f5f6c6f7272792461732074686520736372697074207361797301009480a080070a02020873686970010302828c15050080808020020000808080200200008190a03e1202040103020202020400008790b0a0800112000002020401030e020102c3010402010300808080200200');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.839764+00', 8589934597, 4, NULL, NULL, '\x000000010b000001000303f0ae623bd40000000209000000000000000000000000000004090100010000000000000000', '\x13030802106e6f5f6c6f7272792461732074686520736372697074207361797301008080808020020308908080e0ff060404020206020201597b22756e646f223a7b226372617368223a6e756c6c2c22656666656374223a6e756c6c2c226661696c223a6e756c6c2c2268616e67223a6e756c6c2c226c6174656e6379223a223073222c2274696d6573223a6e756c6c7d7d010202a9e0f5ba870a01043c0602027a00808080b08001040e0200088790b0a0800112000002020401030e020102c30104020103');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.840533+00', 8589934598, 5, NULL, NULL, '\x000000000b000001000303f0ae623ed5000000010c0000010000000000000000', '\x1302020401027b7d808080806004020200908080e0ff060404020206020204010202a5c8f5ba870a01043c0602027a00808080e080010600020104030202');
INSERT INTO engine.journal_first VALUES (912702162922447204, '2026-11-23 13:52:32.841159+00', 8589934599, 6, NULL, 12, '\x000000000c0000010000000000000000', '\x1302000401027b7dd48080806018000206040100808080e080010600020104030202');
INSERT INTO engine.journal_first VALUES (912702163564328027, '2026-11-23 13:52:32.979052+00', 12884901889, 0, 3, 2, '\x0000000002000001000303f0ae645bec', '\x1301dbe8eda783b9a4d50c0c7061726b65640001027b7d0c6d616e75616c08726f6f74818010020c756e737572650282b0a89401010201b7017b226372617368223a66616c73652c22656666656374223a226265666f7265222c226661696c223a7b22636f6465223a226c6f7374222c226d657373616765223a6e756c6c2c227065726d616e656e74223a6e756c6c2c2272657472795f6166746572223a6e756c6c2c2274696d6573223a6e756c6c2c22756e6b6e6f776e223a747275657d2c2268616e67223a66616c73652c226c6174656e6379223a223073222c2274696d6573223a302c2276616c7565223a317d7a');
INSERT INTO engine.journal_first VALUES (912702163564328027, '2026-11-23 13:52:32.985506+00', 12884901890, 1, NULL, 6, '\x00000000090100010000000000000000', '\x13040002086c6f7374246173207468652073637269707420736179730094808083010c0001020670617901030100839030120002020601030102c30106020103');
INSERT INTO engine.journal_first VALUES (912702164144312130, '2026-11-23 13:52:33.118189+00', 17179869185, 0, 4, 2, '\x0000000002000001000303f0ae667b6d', '\x0102a213f346d54cb489e17dff1431edb89226c6c66da332ed501330b3c3107ada79d48d60d1737195098bcac433e4a2ef29fbbaee0d297d4894fdf54017df3a3575c43c82060a6af5ac1be3122820909d0c0cbf46ccf51fe48f51d411b9f7868a5a5d40745c7a8547fd5465b8dd21dcd48d609a3ed65b88f8760925d5a123d6f79859391e1bf4ea0618d1486fefc0db006a40135b350f13d1f7f1a0d1adda4540a57f0ba980ad55b94b4e31bba48557a6003410acca88f87b7855daac919bc017be4b2b62f197a3336fd486a1a3e284708bc1f474b92943e460b253c509fba53dba18bec5538e3f524cbf043c747be549a2cc');
INSERT INTO engine.journal_first VALUES (912702164144312130, '2026-11-23 13:52:33.124668+00', 17179869186, 1, NULL, NULL, '\x000000000600000100000000000000000000000102000001000303f0ae6694bc', '\x0102a213f34de4b0723ee90a500f9f2236337e11abd427ed5227ef1ee935c49b4d4428ff4acb86b6c5d5c44a474040701f0c83413cb728da2f1edd4d5c7b0cb7c5033c4cbcbdf43d18bd5d1c8fb6165806668e3e254c171a31053a9d8b7284f8fc07fc8e4e5a5819eda1db6ebf66a7f9f12aa3eef78720e1635c93d47246ddf6919267cfd64655390c169f482bf6bb3701816b5f3a4db73f317e01fa77d908924d2baa502a6834df8adc6a37a6229c645aa30b66b179f71ed3b949f8ceef864793958c4b1d4172ed6403a4746bd812fee0b39e453bd1e34722fee7e051274fd41a92d0ef527cc3a57a64f725b6a3d39005964b609f1abd99f9713dbd2845afb71b911a7bfca8536036646ecccb4310d64ea5000ad7b08619');
INSERT INTO engine.journal_first VALUES (912702164144312130, '2026-11-23 13:52:34.04241+00', 17179869187, 2, NULL, 4, NULL, '\x130c16726f6f7440676f6c64656e0c676f6c64656e028480c0808010080102010300');
INSERT INTO engine.journal_first VALUES (912702164144312130, '2026-11-23 13:52:34.244431+00', 17179869188, 3, NULL, NULL, NULL, '\x000300');
INSERT INTO engine.journal_first VALUES (912702164144312130, '2026-11-23 13:52:35.128215+00', 17179869189, 4, NULL, NULL, '\x00000001060000010000000000000000000000020300000000000000000000000000000301000000000000000000000000000004010000000000000000000000', '\x0102a213f3dda84e829d3131a25608012cb37061344e71fc17acf0c00dd6afcf7a38ea26011696a7eba8d4ef900af2a5b600c295b789f59cea28d3a56c75e090046cbec1f89837a0c710dc40dbc124a6feb03d8359741d0e9219ff29b79fb8113bb806b356b330a2937e3814d1b7932daaded370683482e0ea7b12ef74b6e003ef562d0e3df14ed5e62644ef0df2131071ec0f917bc337c59b');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:36.17444+00', 21474836481, 0, 5, 2, '\x0000000002000001000303f0ae951de8', '\x0102a213f36672e00c85f164b99496e258fdc67ac4ca124d04e1023803227dc24411a5c93dc25f32a82ac58c23cf26f0bf545c35cf562291a6239bc255ae3344115f4a77675b6b99668ccac0f8314c690bb9480f392bff13d00a5acdd4d2b36f3e8ea6752ac6419825f435792b4f26aca95058c6c8d80039f43b5d664eba1a7b201f55642335eaf883198ef5287aa65f5acf87156a6b17ba23d24d886d2b6c0ac56894173c2bb41d863d405b69e2c57537a08b35587d25340e6a3f2f50c5a70592f1bfb3918049a16640e1ff6777cd0e2b8eed819b8b8ce0cdd9c4beb82b235692b2afc6742c64347a1ec2c91e17e7abe5ec55');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:36.180292+00', 21474836482, 1, NULL, NULL, '\x000000000600000100000000000000000000000102000001000303f0ae9534c4', '\x0102a213f38edfac3db4c06a20e27093c1ae64f4821d849096bde5c464984329fc99793bf97494688d0090b3bc770b554bfd2158d3bc2a70149ee3c37b00599aaf368a907a8bd8a4065ecf60f9e7c311b3046cd88d58758377419ecb64ab2b450d2206644bda3f9fddf343676dc8aeed5bfb28319dce5b1995ff92e11464af81bc6645c1e8156bf4f6bcc5f568aa933f690abb7e8741bd114d30ddf331a2853808cf8c19e8a49d5585391cd27edc74d8ad23001a1f3f6d3ec8123f0637da00d90f69f2b5827504d7da6caee3a4c54aa2ecb3ce29a9c6dd360e2061542500377a39a4d245a8d637879698ed64262834c6c7ea2fa9f5aac13f134de15df2bb253d6712eafb8fff27691b73c859a4b55a82c8e6c4ec1ba73489');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:37.590567+00', 21474836483, 2, NULL, NULL, NULL, '\x000300');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:38.18357+00', 21474836484, 3, NULL, NULL, '\x00000001060000010000000000000000000000020500000000000000000000000000000302000001000303f0aeb3c6120000000402000001000303f0aeb3c612', '\x0102a213f365687d35b83bf7322d3dbf6d988034bc73eac574d12f3e8df79d366859363fc75a04ff5f1a99d8dd2096c4c0e5d934577d19c68dc0a69c98ea42b453cb0f001f1ebdee8100bfd831d979cc56c55e29acda8d31daeb39e099e5cac77aa0b40dfa560f75e6c7719a97deb58af0c2f9a6fc061e60ddc141fc4a184b6c60bb96840e860152523c67e5e0ae0dea13ab675f81f5f6f1d1bd019fe63f859691c13509620b0f9cd56c2a1d815d5bc66ccb1a23a98f6998cfc45913e22a2856dc06038d3bca9077ed981daa5218f22142025907538862cdcf6b4926f2a53846b725cd4936ce99ad628fb2bf3255a2df6d12caee86d4842413e6163dd9563393cafab438b47c88d01ecb1d88c105deef978f7757c451662ade8f14e9d484c34faf292cc1105989a5487d7d4983ad39c4a4d17109529cb5bb8a443013818e5f618fde2be4d489e54b69653715775e595f4da8ce3e06850d8ab12f02868f0a4b419d2842cd88f4dfecbddae2702b7dc99adc623f5cd398c26c14ac8db83536c302e22a642817f837d548eed93600549fa38e3392f4b9d677a4659485344e20d0d99c12721b2930a309e5853ebb47eeec41f2b5c6483eedfbbf5fe4eb2f4ff99180aa8ecd3557c0ff1e0c6fe4f661085d5bb0f2332bb9a245400b5ff8a51c0226fd313d83409846259f5bb7147af020c1dd42aef795ab27db47eb2326935bb584735d8b0a17f583ef237533be040113f0963894c263ec69');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:38.187649+00', 21474836485, 4, NULL, 5, '\x000000020b000000000000000000000000000003090100010000000000000000', '\x13030602106e6f5f6c6f7272792461732074686520736372697074207361797301009480a080070a02020873686970010302828c15050080808020020000808080200200008190a03e1202040103020202020400008790b0a0800112000002020401030e020102c3010402010300808080200200');
INSERT INTO engine.journal_first VALUES (912702176963330517, '2026-11-23 13:52:38.188518+00', 21474836486, 5, NULL, NULL, '\x000000010b000001000303f0aeb3d9660000000209000000000000000000000000000004090100010000000000000000', '\x13030802106e6f5f6c6f7272792461732074686520736372697074207361797301008080808020020308908080e0ff060404020206020201597b22756e646f223a7b226372617368223a6e756c6c2c22656666656374223a6e756c6c2c226661696c223a6e756c6c2c2268616e67223a6e756c6c2c226c6174656e6379223a223273222c2274696d6573223a6e756c6c7d7d010202ede4f5ba870a01043c0602027a00808080b08001040e0200088790b0a0800112000002020401030e020102c30104020103');
INSERT INTO engine.journal_first VALUES (912702189636515765, '2026-11-23 13:52:39.196812+00', 25769803777, 0, 6, 2, '\x0000000002000001000303f0aec33c0c', '\x0102a213f3c74b7d244f5fcf6dd4163fd3c6a43275f78f119b2c41fe5e8eb72d9afb9692ec3fc8514515b2bfee340503d9f3ea624c787215e343a15fbcda09516e784d183973ef0bf96520946b76efee328e46b0a1a70755f503099df92a36aec19d7b7533b3a5cd3cb80d0990b35afbfd3011aa78c65a3778185f8a9e1fd7998270d2b9610bbc74b2958801593d80f95739077286ec07a8fad5b053be4de9eba838d34b7f69718453c7b2e6ce19b15d851d38e82effdd92867d9e26c20eb8dd914953a36fd1bd29732a44f3f975554b1cbfe2226b51d868e57bbd18ee53b8a44983829b276c7c85ae826f48163829cb8f2ca957d513059f');
INSERT INTO engine.journal_first VALUES (912702189636515765, '2026-11-23 13:52:39.203075+00', 25769803778, 1, NULL, NULL, '\x000000000600000100000000000000000000000102000001000303f0aec35483', '\x0102a213f30f3a41fddf7d4d59e0cb8e3081a13e0169f79878fb0e3bc03880456913cb5ea8d25b9e5dcf76af5dfc5352d3e86b259b3879818c5c53e6fe4a3d9799f2890d1448eeeef9d7774e7551de4533ade5ca7731ca25f44b077fe2655d54d24894fd168ef637d22f1c739360f7e2ea2acd44f5dba5cb589dd2452ddb4746f3cf4f49fc51c03706edbd0a418a8dc7211e737fad736bee16c4cb451c7a8db863f2145989ad14a6962da4521623353839448c751dad3d33a03a952e857cadb2196b9803dcc6665becafba5fffb3aa2fef93107e405cbcd603a84c2aea3c4dea99f0926f200623c66c20abf760ae50c7d295370de9c6052fad03b68b2973022d0292092d6c191aac146c48402ac3a29f5aa34bd9be4ffe70');
INSERT INTO engine.journal_first VALUES (912702194439901120, '2026-11-23 13:52:40.341363+00', 30064771073, 0, 0, 1, '\x00000000030000000000000000000000', '\x0102a213f37ef2f58b2260e71b472cd1e97554717a0aa7f981fafdb413cd9f2d1e92f1b8dabdfc69745065e008fdd124c70c95c47b79b4e4ca669566d19cd960cacfd7a8af99fad3af0c99110207d17131e44db53ca0e08c8b1ce2abaf5aeb41c400be18454f25708bd297e8edde6b50a085fb4f288f2f3c2636eab1410ac2470b8ddf47865b8c7030c885a26ff840c6ef764cf3a24972981fecaa8acc25088936459da913fb7c663cfbbab95dda0092c06a9da8de9c84b08551371d02d607e55d301627efce529978e88a84730338f0c5edfe3269cf4fd7');
INSERT INTO engine.member OVERRIDING SYSTEM VALUE VALUES (3, 'golden:25577', '2026-11-23 13:52:32.94398+00', '2026-11-23 13:52:32.997817+00', true);
INSERT INTO engine.member OVERRIDING SYSTEM VALUE VALUES (4, 'golden:25600', '2026-11-23 13:52:33.085787+00', '2026-11-23 13:52:36.063693+00', true);
INSERT INTO engine.member OVERRIDING SYSTEM VALUE VALUES (5, 'golden:25636', '2026-11-23 13:52:36.141884+00', '2026-11-23 13:52:48.995633+00', false);
INSERT INTO engine.member OVERRIDING SYSTEM VALUE VALUES (6, 'golden:25660', '2026-11-23 13:52:39.161703+00', '2026-11-23 13:52:49.607246+00', false);
INSERT INTO engine.run VALUES (912702162362035330, 1, 10, 1, 0, 'infinity', '2026-11-23 13:52:32.693819+00', '2026-11-23 13:52:32.705416+00');
INSERT INTO engine.run VALUES (912702162922447204, 1, 12, 2, 0, 'infinity', '2026-11-23 13:52:32.826568+00', '2026-11-23 13:52:32.841159+00');
INSERT INTO engine.run VALUES (912702163564328027, 2, 6, 3, 0, '2026-11-23 13:52:33.979052+00', '2026-11-23 13:52:32.979052+00', NULL);
INSERT INTO engine.run VALUES (912702164144312130, 1, 4, 4, 0, '2026-11-23 13:53:03.124668+00', '2026-11-23 13:52:33.118189+00', NULL);
INSERT INTO engine.run VALUES (912702176963330517, 1, 5, 5, 0, '2026-11-23 13:53:06.180292+00', '2026-11-23 13:52:36.17444+00', NULL);
INSERT INTO engine.run VALUES (912702189636515765, 1, 2, 6, 0, '2026-11-23 13:52:40.196812+00', '2026-11-23 13:52:39.196812+00', NULL);
INSERT INTO engine.run VALUES (912702194439901120, 1, 1, 0, 0, '2026-11-23 13:52:40.341363+00', '2026-11-23 13:52:40.341363+00', NULL);
INSERT INTO engine.run_name VALUES (912702162362035330, 'succeeded', NULL);
INSERT INTO engine.run_name VALUES (912702162922447204, 'compensated', NULL);
INSERT INTO engine.run_name VALUES (912702163564328027, 'parked', NULL);
INSERT INTO engine.run_name VALUES (912702164144312130, 'paused', NULL);
INSERT INTO engine.run_name VALUES (912702176963330517, 'undoing', NULL);
INSERT INTO engine.run_name VALUES (912702189636515765, 'interrupted', NULL);
INSERT INTO engine.run_name VALUES (912702194439901120, 'queued', NULL);
INSERT INTO engine.run_step VALUES (912702162362035330, 3, 2, 'ship["berlin"]');
INSERT INTO engine.run_step VALUES (912702162362035330, 4, 2, 'ship["oslo"]');
INSERT INTO engine.run_step VALUES (912702162922447204, 3, 2, 'ship["berlin"]');
INSERT INTO engine.run_step VALUES (912702162922447204, 4, 2, 'ship["oslo"]');
INSERT INTO engine.run_step VALUES (912702164144312130, 3, 2, 'ship["berlin"]');
INSERT INTO engine.run_step VALUES (912702164144312130, 4, 2, 'ship["oslo"]');
INSERT INTO engine.run_step VALUES (912702176963330517, 3, 2, 'ship["berlin"]');
INSERT INTO engine.run_step VALUES (912702176963330517, 4, 2, 'ship["oslo"]');
INSERT INTO engine.schema_version VALUES (1, 0, true, '2026-11-23 13:52:32.44666');
INSERT INTO engine.schema_version VALUES (2, 1, true, '2026-11-23 13:52:32.451392');
INSERT INTO engine.schema_version VALUES (3, 2, true, '2026-11-23 13:52:32.502116');
INSERT INTO engine.schema_version VALUES (4, 3, true, '2026-11-23 13:52:32.525036');
INSERT INTO engine.schema_version VALUES (5, 4, true, '2026-11-23 13:52:32.53304');
INSERT INTO engine.schema_version VALUES (6, 5, true, '2026-11-23 13:52:32.550012');
INSERT INTO engine.schema_version VALUES (7, 6, true, '2026-11-23 13:52:32.556177');
INSERT INTO engine.schema_version VALUES (8, 7, true, '2026-11-23 13:52:32.558212');
INSERT INTO engine.setting VALUES ('key', '02a213f3');
INSERT INTO engine.workflow OVERRIDING SYSTEM VALUE VALUES (1, '84743a27ca8c97248a5a4a7b28eacb323d727ff539bf8e062776a1dc63593740', 'saga');
INSERT INTO engine.workflow OVERRIDING SYSTEM VALUE VALUES (2, '84743a27ca8c97248a5a4a7b28eacb323d727ff539bf8e062776a1dc63593740', 'unsure');
INSERT INTO engine.workflow_step VALUES (1, 0, 'reserve');
INSERT INTO engine.workflow_step VALUES (1, 1, 'charge');
INSERT INTO engine.workflow_step VALUES (1, 2, 'ship');
INSERT INTO engine.workflow_step VALUES (2, 0, 'pay');
SELECT pg_catalog.setval('engine.alert_id_seq', 1, true);
SELECT pg_catalog.setval('engine.inbox_id_seq', 1, true);
SELECT pg_catalog.setval('engine.log_id_seq', 1, false);
SELECT pg_catalog.setval('engine.member_engine_seq', 7, true);
SELECT pg_catalog.setval('engine.schema_version_id_seq', 8, true);
SELECT pg_catalog.setval('engine.workflow_workflow_id_seq', 2, true);
ALTER TABLE ONLY engine.alert
    ADD CONSTRAINT alert_pkey PRIMARY KEY (id);
ALTER TABLE ONLY engine.context
    ADD CONSTRAINT context_pkey PRIMARY KEY (workflow, key);
ALTER TABLE ONLY engine.definition
    ADD CONSTRAINT definition_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY engine.fence
    ADD CONSTRAINT fence_pkey PRIMARY KEY (engine, writer);
ALTER TABLE ONLY engine.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY engine.inbox
    ADD CONSTRAINT inbox_run_id_dedup_key UNIQUE (run_id, dedup);
ALTER TABLE ONLY engine.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY engine.journal_first
    ADD CONSTRAINT journal_first_pkey PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY engine.late_reply
    ADD CONSTRAINT late_reply_pkey PRIMARY KEY (run_id, node, call, outcome);
ALTER TABLE ONLY engine.log
    ADD CONSTRAINT log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY engine.member
    ADD CONSTRAINT member_pkey PRIMARY KEY (engine);
ALTER TABLE ONLY engine.pass
    ADD CONSTRAINT pass_pkey PRIMARY KEY (name);
ALTER TABLE ONLY engine.run_name
    ADD CONSTRAINT run_name_name_key UNIQUE (name);
ALTER TABLE ONLY engine.run_name
    ADD CONSTRAINT run_name_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY engine.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY engine.run_step
    ADD CONSTRAINT run_step_pkey PRIMARY KEY (run_id, node);
ALTER TABLE ONLY engine.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY engine.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);
ALTER DOMAIN engine.step_changes
    ADD CONSTRAINT step_changes_check CHECK (
CASE length(VALUE)
    WHEN 16 THEN (((get_byte(VALUE, 4) >= 1) AND (get_byte(VALUE, 4) <= 13)) AND ((get_byte(VALUE, 4) <> 2) OR (substr(VALUE, 9, 8) <> '\x0000000000000000'::bytea)))
    WHEN 32 THEN (((get_byte(VALUE, 4) >= 1) AND (get_byte(VALUE, 4) <= 13)) AND ((get_byte(VALUE, 4) <> 2) OR (substr(VALUE, 9, 8) <> '\x0000000000000000'::bytea)) AND ((get_byte(VALUE, 20) >= 1) AND (get_byte(VALUE, 20) <= 13)) AND ((get_byte(VALUE, 20) <> 2) OR (substr(VALUE, 25, 8) <> '\x0000000000000000'::bytea)))
    ELSE engine.steps_legal(VALUE)
END) NOT VALID;
ALTER TABLE ONLY engine.workflow
    ADD CONSTRAINT workflow_digest_name_key UNIQUE (digest, name);
ALTER TABLE ONLY engine.workflow
    ADD CONSTRAINT workflow_pkey PRIMARY KEY (workflow_id);
ALTER TABLE ONLY engine.workflow_step
    ADD CONSTRAINT workflow_step_pkey PRIMARY KEY (workflow_id, node);
CREATE INDEX alert_at ON engine.alert USING btree (at, id);
CREATE INDEX alert_run ON engine.alert USING btree (run_id, at, id);
CREATE INDEX alert_undelivered ON engine.alert USING btree (id) WHERE (delivered_at IS NULL);
CREATE INDEX log_run ON engine.log USING btree (run_id, id);
CREATE INDEX run_active ON engine.run USING btree (owner, next_check) WHERE (state < 10);
CREATE INDEX run_name_key ON engine.run_name USING btree (key) WHERE (key IS NOT NULL);
CREATE INDEX workflow_name ON engine.workflow USING btree (name);
ALTER INDEX engine.journal_pkey ATTACH PARTITION engine.journal_first_pkey;
CREATE TRIGGER run_transition AFTER UPDATE OF state ON engine.run FOR EACH ROW WHEN (((old.state <> new.state) AND (((old.state >= 10) AND (NOT ((old.state = 10) AND (new.state = 5)))) OR (new.state = 1)))) EXECUTE FUNCTION engine.refuse_run_change();
ALTER TABLE ONLY engine.workflow
    ADD CONSTRAINT workflow_digest_fkey FOREIGN KEY (digest) REFERENCES engine.definition(digest);
ALTER TABLE ONLY engine.workflow_step
    ADD CONSTRAINT workflow_step_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES engine.workflow(workflow_id);
