package restart

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/moving"
)

// write shows what the new run takes over.
func (w *work) write() error {
	if len(w.plan.Steps) == 0 {
		return nil
	}
	table := render.Table{Head: []string{"STEP", "OLD RUN", "NEW RUN"}}
	for _, h := range w.plan.Steps {
		was := "-"
		if h.Node >= 0 {
			was = h.State.String()
		}
		table.Add(h.Name, was, becomes(h))
	}
	if err := w.a.Print("Run %s, workflow %s, from step %s\n\n", render.Clean(w.r.Row.Name), w.r.Flow.Name, render.Clean(w.o.From)); err != nil {
		return err
	}
	if err := table.Write(w.a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return w.a.Print("\n")
}

// becomes returns words that say what the new run does with a step.
func becomes(h moving.Heritage) string {
	text := "runs"
	switch {
	case h.Taken && h.Undoes:
		text = "takes over the result and the effect, and undoes the effect if it fails"
	case h.Taken && h.Effect:
		text = "takes over the result; the effect stays"
	case h.Taken:
		text = "takes over the result"
	case h.Effect:
		text = "runs, and takes effect a second time"
	}
	if h.Was != "" {
		text += " (was " + h.Was + ")"
	}
	return text
}

// planJSON prints what the new run would take over, as JSON.
func (w *work) planJSON() error {
	m := w.result()
	m["dry_run"] = true
	if err := w.a.PrintJSON(m); err != nil {
		return err
	}
	if len(w.plan.Refusals) > 0 {
		return exit.Code(exit.Failed)
	}
	return nil
}

// result returns the JSON object of the command, without the fields about the new run.
func (w *work) result() map[string]any {
	steps, refusals := []map[string]any{}, []map[string]any{}
	for _, h := range w.plan.Steps {
		m := map[string]any{"step": h.Name, "taken_over": h.Taken, "effect": h.Effect, "undone_on_failure": h.Undoes}
		if h.Node >= 0 {
			m["state"] = h.State.String()
		}
		if h.Was != "" {
			m["was"] = h.Was
		}
		steps = append(steps, m)
	}
	for _, why := range w.plan.Refusals {
		m := map[string]any{"reason": why.Reason}
		if why.Step != "" {
			m["step"] = why.Step
		}
		if why.Next != "" {
			m["next"] = why.Next
		}
		refusals = append(refusals, m)
	}
	return map[string]any{
		"run": w.r.Row.Name, "workflow": w.r.Flow.Name, "from": w.o.From, "can_restart": len(w.plan.Refusals) == 0,
		"steps": steps, "refusals": refusals,
	}
}
