package doctor

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store/health"
)

// report prints the findings. If a finding is an error, it returns exit code 1 as an error.
func (c *checkup) report() error {
	errs, warnings := 0, 0
	var diags diag.Diagnostics
	list := []map[string]any{}
	table := render.Table{Head: []string{"LEVEL", "WHAT", "FOUND"}}
	for _, f := range c.found {
		list = append(list, map[string]any{"name": f.Name, "level": levelName(f.Level), "message": f.Message, "hint": f.Hint})
		table.Add(levelName(f.Level), f.Name, words.Join(" ", f.Message, f.Hint))
		switch f.Level {
		case health.Error:
			errs++
			diags = append(diags, diag.Diagnostic{Severity: diag.SeverityError, Summary: f.Name + ": " + f.Message, Detail: f.Hint})
		case health.Warning:
			warnings++
		}
	}
	if c.a.JSON {
		m := map[string]any{"findings": list, "error_count": errs, "warning_count": warnings}
		if errs > 0 {
			m["diagnostics"] = diags
		}
		if err := c.a.PrintJSON(m); err != nil {
			return err
		}
	} else {
		if err := table.Write(c.a.Stdout); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		if err := c.a.Print("%s, %s.\n", render.Count(errs, "error"), render.Count(warnings, "warning")); err != nil {
			return err
		}
	}
	if errs > 0 {
		return exit.Code(exit.Failed)
	}
	return nil
}

func levelName(s health.Severity) string {
	switch s {
	case health.OK:
		return "ok"
	case health.Warning:
		return "warning"
	}
	return "error"
}
