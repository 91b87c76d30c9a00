-- +goose Up

-- A run that is submitted without a name is known by one that follows from its
-- id, 'r-' and the id in base 36, and needs no row in run_name, unless it has a
-- key. What was written before stays.
DROP VIEW runs;
DROP VIEW steps;

CREATE VIEW run_public AS
SELECT r.run_id, n.key, coalesce(n.name, 'r-' || ltrim(
  substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 4738381338321616896 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 131621703842267136 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 3656158440062976 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 101559956668416 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 2821109907456 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 78364164096 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 2176782336 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 60466176 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 1679616 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 46656 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 1296 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 36 % 36 + 1, 1)
  || substr('0123456789abcdefghijklmnopqrstuvwxyz', r.run_id / 1 % 36 + 1, 1), '0')) AS run
FROM run r LEFT JOIN run_name n ON n.run_id = r.run_id;

CREATE VIEW runs AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, s.name AS state,
       nullif(r.owner, 0) AS locked_by,
       coalesce(NOT m.dead AND m.lease_until > (julianday('now') - 2440587.5) * 86400000000, 0) AS owner_alive,
       CASE WHEN r.next_check < 253402214400000000 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.next_check / 1000000.0, 'unixepoch') END AS next_check,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at / 1000000.0, 'unixepoch') AS finished_at, w.digest
FROM run r JOIN workflow w USING (workflow_id) JOIN run_state s ON s.state = r.state
JOIN run_public n ON n.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner;

-- The text is that of 00003, but for the name.
CREATE VIEW steps AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, rs.name AS run_state,
       CAST(x.key AS INTEGER) AS node, coalesce(i.name, s.name) AS step, coalesce(ss.name, 'pending') AS state,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 13, 2)) * 256 + (SELECT value FROM byte WHERE hex = substr(x.value, 15, 2)), 0) AS attempt,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 11, 2)), 0) AS failure_count,
       CASE WHEN ss.state = 2 THEN r.owner END AS locked_by,
       CASE WHEN substr(x.value, 17) NOT IN ('', '0000000000000000') THEN strftime('%Y-%m-%dT%H:%M:%fZ', 946684800 + (
         ((SELECT value FROM byte WHERE hex = substr(x.value, 19, 2)) << 48) + ((SELECT value FROM byte WHERE hex = substr(x.value, 21, 2)) << 40)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 23, 2)) << 32) + ((SELECT value FROM byte WHERE hex = substr(x.value, 25, 2)) << 24)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 27, 2)) << 16) + ((SELECT value FROM byte WHERE hex = substr(x.value, 29, 2)) << 8)
         + (SELECT value FROM byte WHERE hex = substr(x.value, 31, 2))) / 1000000.0, 'unixepoch') END AS complete_by
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
