-- +goose Up

-- A run's state has one name everywhere, status, as in the output of every
-- command. The names of before, state in runs and run_state in steps, are the last
-- column of each view: queries that were written with them go on. The rest of the
-- text is that of 00004.
DROP VIEW runs;
DROP VIEW steps;

CREATE VIEW runs AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, s.name AS status,
       nullif(r.owner, 0) AS locked_by,
       coalesce(NOT m.dead AND m.lease_until > (julianday('now') - 2440587.5) * 86400000000, 0) AS owner_alive,
       CASE WHEN r.next_check < 253402214400000000 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.next_check / 1000000.0, 'unixepoch') END AS next_check,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at / 1000000.0, 'unixepoch') AS finished_at, w.digest, s.name AS state
FROM run r JOIN workflow w USING (workflow_id) JOIN run_state s ON s.state = r.state
JOIN run_public n ON n.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner;

CREATE VIEW steps AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, rs.name AS run_status,
       CAST(x.key AS INTEGER) AS node, coalesce(i.name, s.name) AS step, coalesce(ss.name, 'pending') AS state,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 13, 2)) * 256 + (SELECT value FROM byte WHERE hex = substr(x.value, 15, 2)), 0) AS attempt,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 11, 2)), 0) AS failure_count,
       CASE WHEN ss.state = 2 THEN r.owner END AS locked_by,
       CASE WHEN substr(x.value, 17) NOT IN ('', '0000000000000000') THEN strftime('%Y-%m-%dT%H:%M:%fZ', 946684800 + (
         ((SELECT value FROM byte WHERE hex = substr(x.value, 19, 2)) << 48) + ((SELECT value FROM byte WHERE hex = substr(x.value, 21, 2)) << 40)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 23, 2)) << 32) + ((SELECT value FROM byte WHERE hex = substr(x.value, 25, 2)) << 24)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 27, 2)) << 16) + ((SELECT value FROM byte WHERE hex = substr(x.value, 29, 2)) << 8)
         + (SELECT value FROM byte WHERE hex = substr(x.value, 31, 2))) / 1000000.0, 'unixepoch') END AS complete_by, rs.name AS run_state
FROM run r CROSS JOIN workflow w ON w.workflow_id = r.workflow_id CROSS JOIN run_state rs ON rs.state = r.state
JOIN run_public n ON n.run_id = r.run_id
CROSS JOIN json_each((
  SELECT json_group_object(node, last) FROM (
    SELECT max(node) AS node, substr(max(c), 21) AS last FROM (
      SELECT printf('%08X', node) AS id, node, printf('%020d', 0) AS c FROM workflow_step WHERE workflow_id = r.workflow_id
      UNION ALL SELECT printf('%08X', node), node, printf('%020d', 0) FROM run_step WHERE run_id = r.run_id
      UNION ALL SELECT hex(substr(j.steps, e.key * 16 + 1, 4)), NULL, printf('%010d%010d', j.seq, e.key + 1) || hex(substr(j.steps, e.key * 16 + 1, 16))
      FROM (SELECT seq, steps FROM journal WHERE run_id = r.run_id AND steps IS NOT NULL UNION ALL SELECT seq, steps FROM wide WHERE run_id = r.run_id) j,
        json_each('[0' || replace(hex(zeroblob(length(j.steps) / 16 - 1)), '00', ',0') || ']') e
    ) GROUP BY id HAVING max(node) IS NOT NULL
  )
)) x
LEFT JOIN workflow_step s ON s.workflow_id = r.workflow_id AND s.node = CAST(x.key AS INTEGER)
LEFT JOIN run_step i ON i.run_id = r.run_id AND i.node = CAST(x.key AS INTEGER)
LEFT JOIN step_state ss ON ss.state = (SELECT value FROM byte WHERE hex = substr(x.value, 9, 2));
