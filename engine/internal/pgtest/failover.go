package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq" // the database driver that sql.Open uses
)

// Standby copies the cluster c, and starts the copy as a standby of c. If the parameter `sync` is
// true, c confirms a commit only after the standby has written the commit, too. The caller must
// call Stop for the standby.
func (c *Cluster) Standby(ctx context.Context, sync bool) (*Cluster, error) {
	s, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := s.follow(ctx, c); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	want := "async"
	if sync {
		want = "sync"
		if err := errors.Join(c.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'"), c.exec(ctx, "SELECT pg_reload_conf()")); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	if err := c.await(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+want+"')"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// follow copies the data of a running cluster, the parameter `primary`, into the cluster c. Then it
// starts c as a standby of `primary`.
func (c *Cluster) follow(ctx context.Context, primary *Cluster) error {
	u, err := url.Parse(primary.DSN)
	if err != nil {
		return fmt.Errorf("DSN: %w", err)
	}
	password, _ := u.User.Password()
	backup := c.command(ctx, "pg_basebackup", "--host=127.0.0.1", "--port="+u.Port(), "--username="+superuser, "--pgdata="+c.data(),
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	backup.Env = append(os.Environ(), "PGPASSWORD="+password)
	if out, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	return c.serveSomewhere(ctx, password)
}

// Detach disconnects a standby from its primary, as a broken network would do. The standby keeps
// the data that it has received.
func (c *Cluster) Detach(ctx context.Context) error {
	return errors.Join(c.exec(ctx, "ALTER SYSTEM SET primary_conninfo = ''"), c.exec(ctx, "SELECT pg_reload_conf()"),
		c.await(ctx, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)"))
}

// Promote turns a standby into a primary, which accepts writes.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.await(ctx, "SELECT pg_promote(true, 60)")
}

// StopImmediate ends the server at once, as a crash would do: the server writes nothing more.
// The method Start starts the server again.
func (c *Cluster) StopImmediate() error { return c.signalAndWait(syscall.SIGQUIT) }

// Start starts a server that has ended. The server gets the same port as before.
func (c *Cluster) Start(ctx context.Context) error {
	select {
	case <-c.done:
	default:
		return errors.New("the server is running")
	}
	c.log = &tail{}
	return c.serve(ctx)
}

// Freeze stops every process of the server with SIGSTOP. The processes do nothing until Thaw is
// called.
func (c *Cluster) Freeze() error { return c.signalAll(syscall.SIGSTOP) }

// Thaw lets every process of the server continue after Freeze. If the server is not frozen, Thaw
// has no effect.
func (c *Cluster) Thaw() error { return c.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the server and then to all child processes of the server. The order
// matters for Freeze: a server that is frozen first starts no further child.
func (c *Cluster) signalAll(sig syscall.Signal) error {
	select {
	case <-c.done:
		return nil // the server has ended
	default:
	}
	pid := c.cmd.Process.Pid
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal server: %w", err)
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d of the server: %w", child, err)
		}
	}
	return nil
}

// childrenOf returns the ids of the child processes of the process with the id `pid`. If the system
// has no /proc, childrenOf returns nil.
func childrenOf(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The file contains: pid (name) state ppid …. The name may contain any character, even
		// ")". So the last ")" is the end of the name.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return nil, fmt.Errorf("process %s: %w", path, err)
			}
			out = append(out, child)
		}
	}
	return out, nil
}

// FailoverDSN returns a DSN that lists all clusters. The parameter `database` is the name of the
// database. A client that uses the DSN connects to the cluster that accepts writes.
func FailoverDSN(database string, clusters ...*Cluster) (string, error) {
	var hosts, ports []string
	for _, c := range clusters {
		hosts, ports = append(hosts, "127.0.0.1"), append(ports, strconv.Itoa(c.port))
	}
	u, err := url.Parse(clusters[0].DSN)
	if err != nil {
		return "", fmt.Errorf("DSN: %w", err)
	}
	password, _ := u.User.Password()
	return fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable target_session_attrs=read-write connect_timeout=5",
		strings.Join(hosts, ","), strings.Join(ports, ","), superuser, password, database), nil
}

// Database creates an empty database with the given name, and returns its DSN.
func (c *Cluster) Database(ctx context.Context, name string) (string, error) {
	if err := c.exec(ctx, `CREATE DATABASE "`+strings.ReplaceAll(name, `"`, `""`)+`"`); err != nil {
		return "", err
	}
	u, err := url.Parse(c.DSN)
	if err != nil {
		return "", fmt.Errorf("DSN: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// exec runs an SQL statement as the superuser.
func (c *Cluster) exec(ctx context.Context, query string) (err error) {
	db, err := sql.Open("postgres", c.DSN)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, query); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// await repeats the query until its result is true, and then returns nil. After 30 s it returns
// an error.
func (c *Cluster) await(ctx context.Context, query string) (err error) {
	db, err := sql.Open("postgres", c.DSN)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		if err := db.QueryRowContext(ctx, query).Scan(&yes); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if yes {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", query, ctx.Err())
		}
	}
}
