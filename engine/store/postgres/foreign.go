package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// schemaStrange lists objects that a migration would use, but that belong to an untrusted role.
// The objects are the schema `engine`, the objects in it, and the functions of triggers on its
// tables. The trusted roles are the present role and the roles of which it is a member. If the
// present role is a superuser, all superusers are trusted, but no other roles: another role may
// have prepared the schema to attack the superuser. The function of a trigger may belong to any
// superuser, because the server's own functions for triggers do.
const schemaStrange = `
WITH RECURSIVE me AS (
  SELECT oid, rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user
), trusted AS (
  SELECT oid FROM me
  UNION SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN trusted t ON m.member = t.oid
), ours AS (
  SELECT oid, nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'engine'
), things AS (
  SELECT 1 AS rank, 'SCHEMA' AS kind, 'engine' AS name, nspowner AS owner FROM ours
  UNION ALL
  SELECT 2, CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
         pg_catalog.format('engine.%I', c.relname), c.relowner
  FROM pg_catalog.pg_class c JOIN ours ON c.relnamespace = ours.oid WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
  UNION ALL
  SELECT 3, 'ROUTINE', pg_catalog.format('engine.%I(%s)', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)), p.proowner
  FROM pg_catalog.pg_proc p JOIN ours ON p.pronamespace = ours.oid
  UNION ALL
  SELECT 4, CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, pg_catalog.format('engine.%I', t.typname), t.typowner
  FROM pg_catalog.pg_type t JOIN ours ON t.typnamespace = ours.oid WHERE t.typtype IN ('d', 'e', 'r')
  UNION ALL
  SELECT 5, 'ROUTINE', pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)), p.proowner
  FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN ours ON c.relnamespace = ours.oid
  JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE NOT g.tgisinternal AND n.oid <> ours.oid
)
SELECT DISTINCT s.rank, s.kind, s.name, pg_catalog.pg_get_userbyid(s.owner)::text, current_user::text,
       pg_catalog.format('ALTER %s %s OWNER TO %I;', s.kind, s.name, current_user)
FROM things s LEFT JOIN pg_catalog.pg_roles o ON o.oid = s.owner
WHERE s.owner NOT IN (SELECT oid FROM trusted) AND NOT (coalesce(o.rolsuper, false) AND (s.rank = 5 OR (SELECT rolsuper FROM me)))
ORDER BY s.rank, s.name`

// shownStrange is the largest number of objects that a foreignError names.
const shownStrange = 5

// The type strange describes an object that an untrusted role owns: one row of schemaStrange.
type strange struct {
	rank        int
	kind, name  string
	owner, self string // role that owns the object, and role of this session
	remedy      string // statement that makes the role `self` the owner of the object
}

// ownedByUs returns a *foreignError if another role owns the schema, or an object that a
// migration would use. The object may be a function, a trigger, or a view with the name of
// a table. Through such an object, the other role could run statements with the rights of
// the role that migrates.
func ownedByUs(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, schemaStrange)
	if err != nil {
		return wrap("look who owns the schema", err)
	}
	defer rows.Close()
	var found []strange
	for rows.Next() {
		var s strange
		if err := rows.Scan(&s.rank, &s.kind, &s.name, &s.owner, &s.self, &s.remedy); err != nil {
			return wrap("look who owns the schema", err)
		}
		found = append(found, s)
	}
	if err := rows.Err(); err != nil {
		return wrap("look who owns the schema", err)
	}
	if len(found) == 0 {
		return nil
	}
	return &foreignError{found}
}

// A foreignError says that other roles own objects that a migration would use.
type foreignError struct{ found []strange }

// Error names the objects, their owners and the two possible solutions.
func (e *foreignError) Error() string {
	var b strings.Builder
	b.WriteString("postgres: nothing was migrated, because ")
	for i, s := range e.found[:min(len(e.found), shownStrange)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "role %q owns %s %s", s.owner, strings.ToLower(s.kind), s.name)
	}
	if more := len(e.found) - shownStrange; more > 0 {
		fmt.Fprintf(&b, ", and %d more objects have other owners", more)
	}
	first := e.found[0]
	fmt.Fprintf(&b, ": its owner could run statements with the rights of %q. If %q is the role that migrates here, run engine db migrate as %q. "+
		"If not, look at what is there, then drop it or take it over: %s", first.self, first.owner, first.owner, first.remedy)
	return b.String()
}
