package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
)

// errDSN is the error for a DSN that cannot be parsed. It does not quote the DSN, because
// the DSN may contain a password.
var errDSN = errors.New(`postgres: the DSN is not a connection string: want postgres://USER@HOST/DATABASE (special characters of a password percent-encoded) or "host=… dbname=…"`)

// parse reads a DSN and adds defaults for missing settings.
func parse(dsn string) (source, error) {
	if strings.TrimSpace(dsn) == "" {
		return source{}, errDSN
	}
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return source{}, errDSN
	}
	more := make(map[string]string) // settings that the DSN does not have
	if cfg.SSLMode == "" {
		cfg.SSLMode = pq.SSLModeVerifyFull
		if local(cfg) {
			cfg.SSLMode = pq.SSLModeDisable
		}
		more["sslmode"] = string(cfg.SSLMode)
	}
	cfg.BinaryParameters = true
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = 10 * time.Second
		more["connect_timeout"] = "10"
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "engine"
	}
	return source{cfg: cfg, dsn: withSettings(dsn, more)}, nil
}

// withSettings returns the DSN with the given settings added.
func withSettings(dsn string, more map[string]string) string {
	if u, err := url.Parse(dsn); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		q := u.Query()
		for k, v := range more {
			q.Set(k, v)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	for k, v := range more {
		dsn += " " + k + "=" + v
	}
	return dsn
}

// local reports whether every host in the DSN is a unix socket or a loopback address.
func local(cfg pq.Config) bool {
	hosts := []pq.ConfigMultihost{{Host: cfg.Host, Hostaddr: cfg.Hostaddr}}
	return !slices.ContainsFunc(append(hosts, cfg.Multi...), func(h pq.ConfigMultihost) bool {
		if h.Hostaddr.IsValid() {
			return !h.Hostaddr.IsLoopback()
		}
		if h.Host == "" || h.Host == "localhost" || strings.HasPrefix(h.Host, "/") || strings.HasPrefix(h.Host, "@") {
			return false
		}
		addr, err := netip.ParseAddr(strings.Trim(h.Host, "[]"))
		return err != nil || !addr.IsLoopback()
	})
}

// String returns the DSN without its password, for errors and logs.
func (s source) String() string {
	u := url.URL{Scheme: "postgres", Host: s.cfg.Host, Path: "/" + s.cfg.Database}
	if s.cfg.User != "" {
		u.User = url.User(s.cfg.User)
	}
	if strings.HasPrefix(s.cfg.Host, "/") || strings.HasPrefix(s.cfg.Host, "@") {
		return fmt.Sprintf("host=%s dbname=%s", s.cfg.Host, s.cfg.Database)
	}
	if s.cfg.Host == "" && s.cfg.Hostaddr.IsValid() {
		u.Host = s.cfg.Hostaddr.String()
	}
	if s.cfg.Port != 0 && s.cfg.Port != 5432 {
		u.Host = net.JoinHostPort(u.Host, strconv.Itoa(int(s.cfg.Port)))
	}
	return u.String()
}

// connector returns a connector of the driver for this database. It does no I/O.
func (s source) connector(d dialer) (*pq.Connector, error) {
	c, err := pq.NewConnectorConfig(s.cfg)
	if err != nil {
		return nil, wrap("configure connection", err)
	}
	c.Dialer(d)
	return c, nil
}

// open returns a connection pool that does not belong to a Store.
func (s source) open() (*sql.DB, error) {
	c, err := s.connector(dialer{})
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// unreachable returns an error for a failed connection. The text names the server, and says
// what a person should check.
func (s source) unreachable(err error) error {
	hint := "is the server running, and may this machine reach it?"
	switch state := sqlstate(err); {
	case state == "3D000":
		hint = "create the database first (CREATE DATABASE …)"
	case strings.HasPrefix(state, "28"):
		hint = "check user and password"
	case state != "" && meaning(err) != "":
		hint = meaning(err)
	case errors.Is(err, pq.ErrSSLNotSupported):
		hint = "the server speaks no TLS: give it a certificate, or name a weaker sslmode in the DSN"
	}
	return fmt.Errorf("postgres: connect to %s: %w: %s", s, err, hint)
}

// A dialer opens TCP connections with short keep-alive intervals. If the server becomes
// unreachable, an idle connection fails after about 11 seconds. With the default intervals it would
// fail much later. The dialer calls the function `got` with each new connection, unless `got` is
// nil.
type dialer struct {
	got func(net.Conn)
}

// Dial opens a connection. It fails after ten seconds.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, 10*time.Second)
}

// DialTimeout opens a connection. It fails after the timeout.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	return d.hand(d.net(timeout).Dial(network, address))
}

// DialContext opens a connection. It fails when ctx ends.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d.hand(d.net(0).DialContext(ctx, network, address))
}

func (dialer) net(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
}

func (d dialer) hand(c net.Conn, err error) (net.Conn, error) {
	if err == nil && d.got != nil {
		d.got(c)
	}
	return c, err
}

var _ pq.DialerContext = dialer{}
