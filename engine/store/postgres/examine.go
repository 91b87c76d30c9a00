package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/health"
)

// serverCondition returns one row with the fields of the type `condition`. The server hides the
// transactions of other users from a user without privileges. For such a user, the row does not
// count these transactions.
const serverCondition = `
SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_setting('server_version_num')::int8, pg_catalog.clock_timestamp(),
       pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only')::bool,
       coalesce((SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'synchronous_commit'), ''),
       pg_catalog.current_setting('fsync')::bool, pg_catalog.current_setting('full_page_writes')::bool,
       pg_catalog.current_setting('max_connections')::int8 - pg_catalog.current_setting('superuser_reserved_connections')::int8,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
       (SELECT coalesce(pg_catalog.max(extract(epoch FROM pg_catalog.clock_timestamp() - xact_start)), 0)::float8 FROM pg_catalog.pg_stat_activity
        WHERE pid <> pg_catalog.pg_backend_pid() AND backend_type = 'client backend'),
       greatest((SELECT pg_catalog.max(pg_catalog.age(backend_xmin)) FROM pg_catalog.pg_stat_activity WHERE pid <> pg_catalog.pg_backend_pid()),
                (SELECT pg_catalog.max(pg_catalog.age(xmin)) FROM pg_catalog.pg_replication_slots), (SELECT pg_catalog.max(pg_catalog.age(transaction)) FROM pg_catalog.pg_prepared_xacts), 0)::int8,
       (SELECT coalesce(pg_catalog.max(extract(epoch FROM pg_catalog.clock_timestamp() - prepared)), 0)::float8 FROM pg_catalog.pg_prepared_xacts
        WHERE database = pg_catalog.current_database())`

// A condition holds the version, the settings and the state that a server reports.
type condition struct {
	version           string
	number            int64
	offset            time.Duration // the server's time minus the time of this machine
	standby, readOnly bool
	sync              string
	fsync, fullPages  bool
	most, used        int64         // numbers of connections: largest allowed number, and connections in use
	oldest            time.Duration // age of the oldest transaction
	xmin              int64         // age of the oldest snapshot, as a number of transactions
	prepared          time.Duration // age of the oldest prepared transaction of this database; 0 = there is none
}

// Limits. If a server is outside of a limit, Examine returns a warning or an error.
const (
	oldestServer   = 140000 // smallest allowed server_version_num, which is version 14
	maxOffset      = time.Second
	maxTransaction = 10 * time.Minute
	maxXmin        = 10_000_000 // age of the oldest snapshot, as a number of transactions
)

// An examiner checks the database for problems.
type examiner struct{ *access }

// Examine checks whether the database has the properties that engines need. It returns one
// finding for each property, also if there is no problem.
func (s *examiner) Examine(ctx context.Context) ([]health.Finding, error) {
	var (
		c              condition
		at             time.Time
		secs, prepared float64
	)
	sent := time.Now()
	err := s.db.QueryRowContext(ctx, serverCondition).Scan(&c.version, &c.number, &at, &c.standby, &c.readOnly, &c.sync,
		&c.fsync, &c.fullPages, &c.most, &c.used, &secs, &c.xmin, &prepared)
	if err != nil {
		return nil, wrap("examine the server", err)
	}
	took := time.Since(sent)
	c.offset, c.oldest = at.Sub(sent.Add(took/2)), time.Duration(secs*float64(time.Second))
	c.prepared = time.Duration(prepared * float64(time.Second))
	have, err := version(ctx, s.db)
	if err != nil {
		return nil, err
	}
	return append(s.findings(have), c.findings()...), nil
}

// findings returns the findings about the connection between the store and its database.
func (s *examiner) findings(have int64) []health.Finding {
	f := func(name string, bad health.Severity, hint, format string, args ...any) health.Finding {
		return health.Finding{Name: name, Level: bad, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	var out []health.Finding
	mode := s.source.cfg.SSLMode
	switch {
	case local(s.source.cfg):
		out = append(out, f("sslmode", health.OK, "", "The database is on this machine (sslmode %s).", mode))
	case mode == pq.SSLModeVerifyFull || mode == pq.SSLModeVerifyCA:
		out = append(out, f("sslmode", health.OK, "", "The connection is encrypted and the server verified (sslmode %s).", mode))
	default:
		out = append(out, f("sslmode", health.Warning, "Use sslmode=verify-full.", "sslmode %s does not verify who answers.", mode))
	}
	if have == schemaVersion {
		out = append(out, f("schema", health.OK, "", "The schema has version %d.", have))
	} else {
		out = append(out, f("schema", health.Error, "Run engine db migrate, or use the engine that fits.", "The schema has version %d, this engine wants %d.", have, schemaVersion))
	}
	if s.pooled.Load() {
		out = append(out, f("pooler", health.Warning, "Let engines connect to the server, or through a pooler in session mode.",
			"A pooler in transaction mode stands before the server: engines find work only by their scans, and commits cost more."))
	} else {
		out = append(out, f("pooler", health.OK, "", "No pooler in transaction mode stands before the server."))
	}
	why, lost := s.lineage.disabled(), s.lineage.err()
	switch {
	case lost != nil:
		out = append(out, f("failover", health.Error, "", "%v", lost))
	case why != nil:
		out = append(out, f("failover", health.Warning, "Let the database's user execute pg_current_wal_lsn, pg_walfile_name and pg_control_system.",
			"Whether a failover lost history is not known here: %v.", why))
	default:
		out = append(out, f("failover", health.OK, "", "A failover that loses history would be noticed."))
	}
	return out
}

// findings returns one finding for each property of the server itself.
func (c condition) findings() []health.Finding {
	var out []health.Finding
	say := func(name string, bad bool, level health.Severity, hint, good, wrong string) {
		if bad {
			out = append(out, health.Finding{Name: name, Level: level, Message: wrong, Hint: hint})
		} else {
			out = append(out, health.Finding{Name: name, Message: good})
		}
	}
	say("server", c.number < oldestServer, health.Error, "Use PostgreSQL 14 or later.",
		fmt.Sprintf("PostgreSQL %s.", c.version), fmt.Sprintf("PostgreSQL %s is too old.", c.version))
	say("writes", c.standby || c.readOnly, health.Error, "Let the DSN lead to the primary, and reset default_transaction_read_only.",
		"The database takes writes.", "The database takes no writes: it is a standby, or default_transaction_read_only is set.")
	say("synchronous_commit", c.sync == "off" || c.sync == "local", health.Warning, "Set synchronous_commit = on for the database.",
		fmt.Sprintf("Commits wait until they are durable (synchronous_commit %s).", c.sync),
		fmt.Sprintf("The database's synchronous_commit is %s; engines turn it on for themselves, others may not.", c.sync))
	say("fsync", !c.fsync || !c.fullPages, health.Error, "Set fsync = on and full_page_writes = on.",
		"What is written reaches the disk.", "fsync or full_page_writes is off: a crash of the machine can destroy the database.")
	off := c.offset.Abs()
	say("clock", off > maxOffset, health.Warning, "Synchronise the clocks. Engines go by the database's clock, agents by their own.",
		fmt.Sprintf("The database's clock and this machine's differ by %s.", off.Round(time.Millisecond)),
		fmt.Sprintf("The database's clock and this machine's differ by %s.", off.Round(time.Millisecond)))
	level := health.Warning
	if c.used >= c.most {
		level = health.Error
	}
	say("connections", c.used*5 > c.most*4, level, "Raise max_connections, or let fewer clients connect.",
		fmt.Sprintf("%d of %d connections are in use.", c.used, c.most), fmt.Sprintf("%d of %d connections are in use.", c.used, c.most))
	say("vacuum", c.oldest > maxTransaction || c.xmin > maxXmin, health.Warning, "End what holds it: see pg_stat_activity, pg_replication_slots and pg_prepared_xacts.",
		fmt.Sprintf("Dead rows can be removed: the oldest transaction began %s ago.", c.oldest.Round(time.Second)),
		fmt.Sprintf("Dead rows pile up: the oldest transaction began %s ago, and the oldest snapshot is %d transactions old.", c.oldest.Round(time.Second), c.xmin))
	say("prepared", c.prepared > maxTransaction, health.Warning, "Look into pg_prepared_xacts, and use COMMIT PREPARED or ROLLBACK PREPARED.",
		"No transaction was prepared and forgotten.",
		fmt.Sprintf("A transaction was prepared %s ago and has not ended: its submissions start no run, and its rows stay locked.", c.prepared.Round(time.Second)))
	return out
}
