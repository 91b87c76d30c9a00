package decl

import (
	"path"
	"regexp"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A sourceDecoder reads the argument `source` of agent blocks.
type sourceDecoder struct{ *decoder }

// absolutePath matches an absolute path that is written with /. On Windows it begins with a drive.
var absolutePath = regexp.MustCompile(`^([A-Za-z]:)?/`)

const sourceRule = `source is the path of the agent's binary, or of the directory that holds it. ` +
	`Write a path that begins with "./" or "../" and is relative to this file's directory, or an absolute path. `

// read reads the argument `source` of an agent block into a.Source. In the file, a relative path is
// relative to the directory of the file. In a.Source, it is relative to the directory of the main
// module, because the lock file is in that directory.
func (d sourceDecoder) read(b *syntax.Block, a *Agent) {
	e := b.Attr("source")
	if e == nil {
		return
	}
	a.SourceAt = e.Range
	text, ok := d.lit.literalText(e, "source")
	switch {
	case !ok:
	case strings.Contains(text, "://"):
		d.Errorf(e.Range, "Invalid agent source", "%s", sourceRule+"The engine downloads nothing: fetch the binary first, and write here where it is.")
	case strings.Contains(text, `\`):
		d.Errorf(e.Range, "Invalid agent source", "%s", sourceRule+"Write / between directories, on every system.")
	case absolutePath.MatchString(text):
		a.Source = path.Clean(text)
	case text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../"):
		if a.Source = path.Join(d.m.dir(), text); !strings.HasPrefix(a.Source, "..") {
			a.Source = "./" + a.Source
		}
	default:
		d.Errorf(e.Range, "Invalid agent source", "%s", sourceRule+"There is no registry of agents, so a name is not enough.")
	}
}

// agree reports agent blocks that take the same plugin from different sources. A module uses one
// binary of a plugin, and its lock file has one entry for this binary.
func (d sourceDecoder) agree() {
	first := map[string]*Agent{}
	for _, name := range sorted.Keys(d.m.Agents) {
		a := d.m.Agents[name]
		if a.Source == "" {
			continue
		}
		other, ok := first[a.Plugin]
		switch {
		case !ok:
			first[a.Plugin] = a
		// If both blocks are in one library, they were compared when the library was read.
		case other.Source != a.Source && (a.Library == nil || a.Library != other.Library):
			d.Errorf(a.SourceAt, "Different sources of one agent",
				"This block takes engine-agent-%s from %q, and the block at %s takes it from %q. A module uses one binary of a plugin: write the same source in both blocks.",
				a.Plugin, a.Source, report.Range(other.SourceAt), other.Source)
		}
	}
}
