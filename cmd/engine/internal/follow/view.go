package follow

import (
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/story"
)

// NewView makes the view that fits the flags and the terminal. From then on, log lines go through
// the view, except with --json.
func NewView(a *cli.App) render.View {
	a.Logger()
	a.Runs.Expect()
	if a.JSON {
		j := render.NewJSON(a.Stdout, cli.Version, exit.OfFact, a.Now)
		a.Stream = j
		return j
	}
	if !a.Live(a.Stderr) {
		p := render.NewPlain(a.Stderr, exit.OfFact)
		a.Sink.Set(p)
		return p
	}
	t := render.NewTerminal(a.Stderr, render.TerminalOptions{
		Size: func() (int, int) {
			if columns, lines, ok := cli.Size(a.Stderr); ok {
				return columns, lines
			}
			return 80, 24
		},
		Exit: exit.OfFact, Color: a.Color(a.Stderr), ASCII: !unicode(a),
	})
	a.Sink.Set(t)
	return t
}

// RestoreLog sends log lines to stderr again, after a view has ended.
func RestoreLog(a *cli.App) {
	if a.Sink != nil {
		a.Sink.Set(a.Stderr)
		a.Runs.Release()
	}
}

// unicode reports whether the locale of the environment uses UTF-8.
func unicode(a *cli.App) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := a.Env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Silent is a view that shows nothing.
type Silent struct{}

var _ render.View = Silent{}

// Begin does nothing.
func (Silent) Begin(render.Story) {}

// Facts does nothing.
func (Silent) Facts(int, []story.Fact) {}

// Circuit does nothing.
func (Silent) Circuit(render.Circuit) {}

// Note does nothing.
func (Silent) Note(string) {}

// Tick does nothing.
func (Silent) Tick(time.Time) {}

// End does nothing.
func (Silent) End() {}
