package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// An endedStep is a step as `engine show --json` shows it.
type endedStep struct {
	Step, State, Effect string
	Left                bool   `json:"left_as_is"`
	Kept                bool   `json:"not_undone_by_declaration"`
	UndoKey             string `json:"undo_idempotency_key"`
}

// An endedRun is a run as `engine show --json` shows it.
type endedRun struct {
	Run, Status string
	ExitCode    int `json:"exit_code"`
	Left        int `json:"left_as_is"`
	Kept        int `json:"not_undone_by_declaration"`
	Steps       []endedStep
}

// results checks all runs at the end, and the state.
func (m *matrix) results(cases []*matrixCase) {
	of := map[string]*matrixCase{}
	for _, c := range cases {
		of[c.name], of[c.name+"-first"], of[c.name+"-again"] = c, c, c
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if len(m.list("--notifications", "--status", "open")) == 0 {
			break
		}
	}
	effects := m.ledger()
	for _, r := range m.list("--notifications") {
		root, _, _ := strings.Cut(r.Run, ".")
		c := of[root]
		if c == nil {
			c = &matrixCase{name: root}
		}
		m.result(c, r, effects[r.Run])
	}
	m.must("doctor")
	m.kill()
	m.must("key", "rotate")
	m.must("db", "verify")
	data, err := os.ReadFile(filepath.Join(m.dir, "serve.log"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "quarantine") || strings.Contains(line, "panic") {
			m.t.Errorf("the log of the engine has: %s", line)
		}
	}
}

// result checks one run at the end. The parameter `effects` has the steps whose effect stays, as the agent
// knows, by the idempotency key.
func (m *matrix) result(c *matrixCase, r matrixRun, effects map[string]string) {
	var x endedRun
	if !m.parse(&x, "show", r.Run, "--json") {
		return
	}
	want := exit.Clean
	switch {
	case !slices.Contains([]string{"succeeded", "failed", "compensated", "cancelled"}, r.Status):
		m.errorf(c, "run %s is %s at the end", r.Run, r.Status)
		return
	case x.Left > 0:
		want = exit.Human
	case r.Status == "succeeded":
		want = exit.OK
	}
	if code, _, errs := m.do("watch", r.Run); code != want || x.ExitCode != want {
		m.errorf(c, "run %s is %s with %d effects left: exit code %d of watch and %d of show, want %d\n%s", r.Run, r.Status, x.Left, code, x.ExitCode, want, errs)
	}
	stay := map[string]bool{}
	for _, s := range x.Steps {
		stay[s.Step] = s.Left || s.Kept
		if effects[s.UndoKey] != "" { // the action that undoes the step is an ordinary one of the agent
			maps.DeleteFunc(effects, func(_, step string) bool { return step == s.Step })
		}
		instance := strings.Contains(s.Step, "[") // max_failures may accept its failure
		ok := instance || slices.Contains([]string{"succeeded", "skipped", "caught"}, s.State)
		if r.Status == "succeeded" && !ok {
			m.errorf(c, "run %s has succeeded, its step %s is %s", r.Run, s.Step, s.State)
		}
		if r.Status != "succeeded" && s.Effect != "none" && s.State != "undone" && !s.Left && !s.Kept {
			m.errorf(c, "run %s is %s, its step %s has the effect %s and is %s", r.Run, r.Status, s.Step, s.Effect, s.State)
		}
		if (s.Left && x.Left == 0) || (s.Kept && x.Kept == 0) {
			m.errorf(c, "run %s does not count the effect of step %s that stays", r.Run, s.Step)
		}
	}
	for _, step := range effects {
		if r.Status != "succeeded" && !c.settled && !stay[step] && !strings.Contains(r.Run, ".notify.") {
			m.errorf(c, "run %s is %s, and the effect of step %s stays at the agent", r.Run, r.Status, step)
		}
	}
	m.readable(c, "engine explain "+r.Run, m.explain(r.Run).Text)
}
