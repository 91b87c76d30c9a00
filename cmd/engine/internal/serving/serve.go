package serving

import (
	"context"
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/agents"
)

// Serve works on the runs of a state until the operating system sends a signal that stops it. The
// parameter `paths` lists directories of modules: Serve searches all of them for agents. Without
// --dsn, the state is the embedded file in the first directory. If `paths` is empty, the only
// directory is the working directory.
func Serve(ctx context.Context, a *cli.App, paths []string, o Options) error {
	if a.LogLevel == "" {
		a.LogLevel = "info" // the log is all that a server shows
	}
	a.ServeLogger()
	if err := o.check(a); err != nil {
		return err
	}
	home, shown := ".", "."
	for i, p := range paths {
		m, err := module.Locate(a, p)
		if err != nil {
			return err
		}
		if i == 0 {
			home, shown = m.Dir, m.Shown
		} else {
			o.Agents.Modules = append(o.Agents.Modules, m.Dir)
		}
	}
	if len(paths) == 0 {
		home = a.Path(".")
	}
	// No lock file is needed, because each run has the checksums of its agents.
	catalog, err := module.Catalog(a, home, nil, o.Agents)
	if err != nil {
		return err
	}
	t, err := session.Resolve(a, home, shown)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, a, t, false)
	if err != nil {
		return err
	}
	defer s.Close()
	return serveOn(ctx, a, s, catalog, o)
}

// serveOn works on the runs of an open state until the operating system sends a signal that
// stops it.
func serveOn(ctx context.Context, a *cli.App, s *session.Session, catalog *agents.Catalog, o Options) error {
	stops := make(chan os.Signal, 2)
	stopOnSignals(stops)
	defer quietSignals(stops)
	defer a.EndOnSecondSignal()()
	v, err := newServer(a, s, catalog, o)
	if err != nil {
		return err
	}
	defer v.close()
	return v.run(ctx, stops)
}
