// Package pgtest runs a private, temporary PostgreSQL server for tests. The server listens on
// loopback only and runs as an unprivileged user. At the end, the package stops the server and
// removes its files. It does not use or change other servers on the machine.
package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EnvDSN is the name of an environment variable. The variable holds the DSN with which tests
// reach their server, as a superuser. `pgtest run` and Main set the variable.
const EnvDSN = "ENGINE_TEST_DSN"

// EnvPrograms is the name of an environment variable. It holds the directory with the server's
// programs, such as psql. WithCluster sets the variable.
const EnvPrograms = "ENGINE_TEST_PG_BIN"

// A Cluster is a private PostgreSQL server.
type Cluster struct {
	DSN string // DSN of a superuser, for the database "postgres"

	dir   string              // directory for all files of the server
	bin   string              // directory of the server's programs
	owner *syscall.Credential // the user of the server process; nil = the user of this process
	port  int
	env   []string      // environment variables of the server in addition to those of this process
	cmd   *exec.Cmd     // the server process
	done  chan struct{} // closed when the server has ended
	log   *tail         // last lines of the server's log
}

// Start creates and starts a cluster. If Start finds no server binaries, the error says what to
// install.
func Start(ctx context.Context) (*Cluster, error) {
	c, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// prepare creates the directory of a cluster. It starts no process.
func prepare() (*Cluster, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	owner, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(owner)
	if err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, bin: bin, owner: owner, log: &tail{}}, nil
}

// Check returns nil if there are server binaries. Otherwise it returns an error that says what to
// install.
func Check() error {
	_, err := findBin()
	return err
}

// findBin returns the directory of the newest server binaries. If /usr/lib/postgresql has none, it
// returns the directory of those in PATH.
func findBin() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("look for server binaries: %w", err)
	}
	version := func(dir string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err != nil {
			return 0 // the directory's name contains no version, so it comes last
		}
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if isFile(filepath.Join(dir, "initdb")) && isFile(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("no PostgreSQL server binaries (initdb, postgres) in /usr/lib/postgresql/*/bin or PATH: " +
		"install the package postgresql (engine/internal/pgtest/install.sh does on Debian), or set " + EnvDSN)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// unprivileged returns the user for the server process; nil = the user of this process. If this
// process runs as root, unprivileged returns another user, because the server refuses to run as
// root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue // try the next user
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errU, errG); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// makeDir creates the directory of a cluster and returns its path. The parameter `owner` is the
// user of the server. This user may have no access to TMPDIR, for example if TMPDIR is in another
// user's home directory. Then makeDir uses /tmp or /var/tmp.
func makeDir(owner *syscall.Credential) (string, error) {
	var errs []error
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := os.MkdirTemp(parent, "pgtest-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if owner == nil {
			return dir, nil
		}
		err = os.Chown(dir, int(owner.Uid), int(owner.Gid))
		if err == nil {
			cmd := exec.Command("test", "-w", dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
			if err = cmd.Run(); err == nil {
				return dir, nil
			}
		}
		errs = append(errs, fmt.Errorf("%s is closed to the server's user: %w", dir, err), os.RemoveAll(dir))
	}
	return "", fmt.Errorf("make a directory for the cluster: %w", errors.Join(errs...))
}

// superuser is the name of the database user that the tests use.
const superuser = "pgtest"

// start creates the data directory and starts the server.
func (c *Cluster) start(ctx context.Context) error {
	password := rand.Text()
	secret := filepath.Join(c.dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	if c.owner != nil {
		if err := os.Chown(secret, int(c.owner.Uid), int(c.owner.Gid)); err != nil {
			return fmt.Errorf("hand over password file: %w", err)
		}
	}
	initdb := c.command(ctx, "initdb", "--no-sync", "--encoding=UTF8", "--locale=C",
		"--auth=scram-sha-256", "--username="+superuser, "--pwfile="+secret, "--pgdata="+c.data())
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return c.serveSomewhere(ctx, password)
}

// command returns a command that runs one of the server's programs as the server's user.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.owner}
	return cmd
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// serveSomewhere starts the server on a free port and sets DSN. It tries several ports, because
// another process may take a port before the server does.
func (c *Cluster) serveSomewhere(ctx context.Context, password string) error {
	var err error
	for range 5 {
		if c.port, err = FreePort(); err != nil {
			return err
		}
		c.DSN = (&url.URL{
			Scheme: "postgres", User: url.UserPassword(superuser, password), Host: fmt.Sprintf("127.0.0.1:%d", c.port),
			Path: "/postgres", RawQuery: "sslmode=disable",
		}).String()
		if err = c.serve(ctx); err == nil {
			return nil
		}
		if !strings.Contains(c.log.String(), "could not bind") {
			return err
		}
	}
	return err
}

// FreePort returns a port of loopback on which no process listens. The port is below the range
// that systems use for outgoing connections. So no connection takes the port while a server is
// stopped for a restart.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := 20000 + mathrand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// serve starts the server on c.port, and waits until the server accepts connections.
func (c *Cluster) serve(ctx context.Context) error {
	c.cmd = exec.Command(filepath.Join(c.bin, "postgres"), "-D", c.data(),
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(c.port), "-c", "unix_socket_directories="+c.dir,
		"-c", "max_connections=600", "-c", "log_min_messages=warning", "-c", "min_wal_size=256MB", "-c", "max_wal_size=1GB",
		"-c", "wal_keep_size=256MB", "-c", "max_prepared_transactions=20")
	c.cmd.Dir, c.cmd.Env = c.dir, append(os.Environ(), c.env...)
	c.cmd.SysProcAttr = withParent(&syscall.SysProcAttr{Credential: c.owner, Setpgid: true})
	out, err := c.cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	ready, started := make(chan struct{}), make(chan error)
	c.done = make(chan struct{})
	go c.watch(bufio.NewScanner(out), started, ready)
	if err := <-started; err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	select {
	case <-ready:
		return nil
	case <-c.done:
		return fmt.Errorf("server ended at once:\n%s", c.log)
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.signalAndWait(syscall.SIGQUIT))
	}
}

// Stop ends the server and removes the server's files.
func (c *Cluster) Stop() error {
	return errors.Join(c.Thaw(), c.signalAndWait(syscall.SIGINT), os.RemoveAll(c.dir))
}

// signalAndWait sends a signal to the server, and waits until the server has ended. SIGINT
// disconnects all clients and shuts the server down. SIGQUIT ends the server at once. If the
// server has not ended after 30 s, signalAndWait sends SIGQUIT and returns an error.
func (c *Cluster) signalAndWait(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop server: %w", err)
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(30 * time.Second):
	}
	if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill server: %w", err)
	}
	<-c.done
	return fmt.Errorf("server did not shut down:\n%s", c.log)
}

// A tail keeps the last 50 lines of a log.
type tail struct {
	mu    sync.Mutex // protects the fields below
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > 50 {
		t.lines = t.lines[1:]
	}
}

// String returns the lines as one text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	for _, l := range t.lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}
