package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/lib/pq"
)

// config holds the arguments of the config {} block in the agent block.
type config struct {
	DSN            string `agent:"dsn,sensitive" doc:"postgres://… or key=value words. Without sslmode the server's certificate is verified, except on this machine."`
	DedupeTable    string `agent:"dedupe_table,optional" default:"engine_effects" doc:"Table in which exec records keys, as TABLE or SCHEMA.TABLE; made when it is first needed."`
	MaxRows        int    `agent:"max_rows,optional" default:"1000" doc:"Largest number of rows that a statement may return."`
	MaxConnections int    `agent:"max_connections,optional" default:"10"`
}

var tablePattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$`)

// agent holds the state of the agent's process. The method `configure` sets it.
type agent struct {
	db      *database
	effects *dedupe
}

// configure checks the config {} block and prepares the pool of connections. It does not
// connect, because the agent must start even while the database is down.
func (s *agent) configure(_ context.Context, c config) error {
	if !tablePattern.MatchString(c.DedupeTable) {
		return errors.New("dedupe_table: must be a name such as engine_effects or app.effects")
	}
	if c.MaxRows < 1 || c.MaxRows > 100_000 {
		return errors.New("max_rows: must be between 1 and 100000")
	}
	if c.MaxConnections < 1 || c.MaxConnections > 1000 {
		return errors.New("max_connections: must be between 1 and 1000")
	}
	table := "" // name of the dedupe table, quoted for SQL
	for i, part := range strings.Split(c.DedupeTable, ".") {
		if i > 0 {
			table += "."
		}
		table += pq.QuoteIdentifier(part)
	}
	cfg, err := connection(c.DSN)
	if err != nil {
		return fmt.Errorf("dsn: %w", err)
	}
	if _, err := pq.NewConnectorConfig(cfg); err != nil {
		return errors.New("dsn: is not understood")
	}
	s.db = openDatabase(newConnector(cfg), c.MaxConnections, c.MaxRows)
	s.effects = &dedupe{db: s.db, table: table}
	return nil
}

// connection parses the DSN and returns the configuration of a connection. If the DSN has no
// sslmode, connection sets sslmode=disable for a database on this machine, and sslmode=verify-full
// for any other database. The DSN may hold a password, so the errors never repeat the DSN.
func connection(dsn string) (pq.Config, error) {
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return pq.Config{}, errors.New("is not understood; write postgres://user:password@host/database or key=value words")
	}
	if !saysSSLMode(dsn) {
		cfg.SSLMode = "verify-full"
		if isLocal(cfg) {
			cfg.SSLMode = "disable"
		}
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "engine-agent-sql"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 15 * time.Second
	}
	return cfg, nil
}

var sslModeWord = regexp.MustCompile(`(^|\s)sslmode\s*=`)

func saysSSLMode(dsn string) bool {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		u, err := url.Parse(dsn)
		return err == nil && u.Query().Has("sslmode")
	}
	return sslModeWord.MatchString(dsn)
}

// isLocal reports whether all hosts in cfg mean this machine.
func isLocal(cfg pq.Config) bool {
	if cfg.Hostaddr.IsValid() {
		return cfg.Hostaddr.IsLoopback()
	}
	for _, h := range append([]string{cfg.Host}, hosts(cfg)...) {
		ip, err := netip.ParseAddr(strings.Trim(h, "[]"))
		switch {
		case h == "localhost", strings.HasPrefix(h, "/"), strings.HasPrefix(h, "@"):
		case err == nil && ip.IsLoopback():
		default:
			return false
		}
	}
	return true
}

func hosts(cfg pq.Config) []string {
	var hs []string
	for _, m := range cfg.Multi {
		hs = append(hs, m.Host)
	}
	return hs
}
