package doctor

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
)

// A checkup holds the data and the findings of one `engine doctor`.
type checkup struct {
	a     *cli.App
	s     *session.Session
	found []health.Finding

	live []store.Member
	open []store.RunRow // the newest runs that have not ended, at most maxOpenLooked
	flow map[store.WorkflowID]*flowUse
}

// A flowUse holds a workflow and the number of open runs that use it. The workflow is nil if it
// cannot be read.
type flowUse struct {
	flow *dsl.Workflow
	runs int
}

func (c *checkup) say(name string, level health.Severity, hint, format string, args ...any) {
	c.found = append(c.found, health.Finding{Name: name, Level: level, Message: fmt.Sprintf(format, args...), Hint: hint})
}
