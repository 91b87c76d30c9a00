package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// findTool finds a program of PostgreSQL: the server's own if it stands on this
// machine, else the one in PATH.
func findTool(ctx context.Context, d *database, name string) (string, error) {
	var dir string
	if err := d.db.QueryRowContext(ctx, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&dir); err == nil {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

// psqlRead measures how long psql takes to read the open runs of an engine and
// their journals into nothing, from its start to its end.
func psqlRead(ctx context.Context, psql string, d *database, owner store.EngineID) (time.Duration, error) {
	address, env := d.arguments()
	open := fmt.Sprintf(`r.owner = %d AND r.state < 10`, owner)
	cmd := exec.CommandContext(ctx, psql, "--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only",
		"--set=ON_ERROR_STOP=1", "--output="+os.DevNull,
		"--command=SELECT * FROM engine.run r WHERE "+open,
		"--command=SELECT j.* FROM engine.run r JOIN engine.journal j USING (run_id) WHERE "+open,
		address)
	cmd.Env = env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("psql: %w\n%s", err, out)
	}
	return time.Since(began), nil
}
