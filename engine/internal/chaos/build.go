package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Binaries are the programs of a test: an engine that can inject faults, the ledger, and
// the agents.
type Binaries struct {
	Dir    string // directory of the programs; engines also search it for agents
	Engine string // path of the engine
	Ledger string // path of the ledger
}

// Build compiles the engine, the ledger and the agents, and writes these programs to the directory
// dir. The parameter `root` is the directory of the Go module.
func Build(ctx context.Context, root, dir string) (*Binaries, error) {
	b := &Binaries{Dir: dir, Engine: filepath.Join(dir, "engine"), Ledger: filepath.Join(dir, "ledger")}
	build := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %v: %w\n%s", args, err, out)
		}
		return nil
	}
	return b, errors.Join(
		os.MkdirAll(dir, 0o755),
		build("-tags", "failpoints", "-o", b.Engine, "./cmd/engine"),
		build("-o", dir+"/", "./engine/internal/chaos/cmd/...", "./plugins/engine-agent-mock"),
	)
}
