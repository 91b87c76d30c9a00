package doctor

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
)

// A checkup collects the findings.
type checkup struct {
	a     *cli.App
	s     *session.Session
	found []health.Finding

	live []store.Member
	open []store.RunRow // the newest runs that have not ended, at most maxOpenLooked
	flow map[store.WorkflowID]*flowUse
}

// A flowUse is a workflow with open runs.
type flowUse struct {
	flow *dsl.Workflow
	runs int
}

func (c *checkup) say(name string, level health.Severity, hint, format string, args ...any) {
	c.found = append(c.found, health.Finding{Name: name, Level: level, Message: fmt.Sprintf(format, args...), Hint: hint})
}
