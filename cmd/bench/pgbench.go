package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A yardstick measures the database server without an engine: clients that update one row by
// its key, each update in its own commit.
type yardstick interface {
	// rate runs the clients for the duration d and returns their commits per second. If d is 0,
	// each client makes only one commit. A call with d = 0 shows approximately how much CPU time
	// the connections cost.
	rate(ctx context.Context, clients int, d time.Duration) (float64, error)
	name() string
}

// newYardstick makes a yardstick and its table. If pgbench is installed, the yardstick uses it.
// Otherwise the yardstick has the type `clients`, which needs no other program.
func newYardstick(ctx context.Context, d *database, dir string, scale int) (yardstick, error) {
	path, err := findTool(ctx, d, "pgbench")
	if err != nil {
		return newClients(ctx, d, scale)
	}
	p := &pgbench{path: path, d: d, script: filepath.Join(dir, "update.sql")}
	// Update one row of pgbench's own table by its key.
	script := fmt.Sprintf("\\set aid random(1, %d)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n", scale*rowsPerScale)
	if err := os.WriteFile(p.script, []byte(script), 0o644); err != nil {
		return nil, fmt.Errorf("pgbench: %w", err)
	}
	_, err = p.run(ctx, "--initialize", "--quiet", "--scale="+strconv.Itoa(scale))
	return p, err
}

// rowsPerScale is the number of rows in pgbench's table of accounts for each unit of the
// option --scale.
const rowsPerScale = 100_000

type pgbench struct {
	path, script string
	d            *database
}

func (p *pgbench) name() string { return "pgbench" }

func (p *pgbench) run(ctx context.Context, args ...string) (string, error) {
	address, env := p.d.arguments()
	cmd := exec.CommandContext(ctx, p.path, append(args, address)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return string(out), nil
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// connecting matches the line in which pgbench prints how many milliseconds it took to connect its
// clients.
var connecting = regexp.MustCompile(`(?m)^initial connection time = ([0-9.]+) ms`)

// rate lets clients commit for the time d, and returns their commits per second. The option --time
// of pgbench includes the time to connect the clients, but the rate that pgbench prints does not.
// So rate first measures the time to connect in a short run, and adds this time to d. If d is 0,
// rate makes only the short run, with one transaction for each client.
func (p *pgbench) rate(ctx context.Context, clients int, d time.Duration) (float64, error) {
	args := []string{"--no-vacuum", "--protocol=prepared", "--file=" + p.script, "--client=" + strconv.Itoa(clients),
		"--jobs=" + strconv.Itoa(min(2, clients))}
	out, err := p.run(ctx, append(args, "--transactions=1")...)
	if err == nil && d > 0 {
		// A pgbench that is older than version 14 does not print the time to connect.
		if m := connecting.FindStringSubmatch(out); m != nil {
			ms, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return 0, fmt.Errorf("pgbench: time to connect: %w", err)
			}
			d += time.Duration(ms * float64(time.Millisecond))
		}
		out, err = p.run(ctx, append(args, "--time="+strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))))...)
	}
	if err != nil {
		return 0, err
	}
	m := tps.FindStringSubmatch(out)
	switch {
	case m == nil && strings.Contains(out, "actually processed: 0\n"):
		// The disk hung for the whole time, so pgbench committed nothing.
		return 0, nil
	case m == nil:
		return 0, errors.New("pgbench: it did not say how many transactions it made:\n" + out)
	}
	return strconv.ParseFloat(m[1], 64)
}

// clients is the yardstick that replaces pgbench if pgbench is not installed. Each client has
// its own connection. It updates one row with a prepared statement, and commits after each
// update.
type clients struct {
	d    *database
	rows int
}

func newClients(ctx context.Context, d *database, scale int) (*clients, error) {
	c := &clients{d: d, rows: scale * rowsPerScale}
	return c, d.exec(ctx, "make the yardstick", `CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL)`,
		fmt.Sprintf(`INSERT INTO accounts SELECT g, 0 FROM generate_series(1, %d) g`, c.rows), `VACUUM ANALYZE accounts`)
}

func (c *clients) name() string { return "clients through lib/pq (there is no pgbench)" }

func (c *clients) rate(ctx context.Context, n int, d time.Duration) (float64, error) {
	c.d.db.SetMaxIdleConns(n)
	conns := make([]*sql.Stmt, n)
	for i := range conns {
		conn, err := c.d.db.Conn(ctx)
		if err != nil {
			return 0, fmt.Errorf("connect: %w", err)
		}
		defer conn.Close()
		if conns[i], err = conn.PrepareContext(ctx, `UPDATE accounts SET n = n + 1 WHERE id = $1`); err != nil {
			return 0, fmt.Errorf("prepare: %w", err)
		}
		defer conns[i].Close()
	}
	var done atomic.Int64
	errs := make([]error, n)
	at := time.Now()
	end := at.Add(d)
	var wg sync.WaitGroup
	for i, stmt := range conns {
		wg.Go(func() {
			for first := true; errs[i] == nil && (first || time.Now().Before(end)); first = false {
				_, errs[i] = stmt.ExecContext(context.Background(), 1+rand.IntN(c.rows))
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(at).Seconds(), errors.Join(errs...)
}
