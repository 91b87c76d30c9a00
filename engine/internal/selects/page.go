package selects

import (
	"context"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/store/firings"
)

// A Result says what became of a Run.
type Result struct {
	Name    string // public name of the run that exists now
	Exists  bool   // true = a run with this name or unique key existed before
	Refused bool   // true = the run was refused because its concurrency limit is full
	Lasting bool   // true = another try would have the same error
	Err     error
}

// maxError is the largest size of the error of a quarantined row, in bytes.
const maxError = 2000

// A SubmitFunc submits runs, and returns one result for each.
type SubmitFunc func(ctx context.Context, runs []Run) []Result

// page starts the runs of a page. It returns an error if the page must be read again, because the
// store or this engine could not submit a run now.
func (p *plan) page(ctx context.Context, submit SubmitFunc, rows []firings.Row) (firings.Progress, error) {
	var (
		out  firings.Progress
		runs []Run
		keys []string
	)
	for _, r := range rows {
		out.Report.Selected += r.Copies
		run, keep, err := p.run(r)
		switch {
		case err != nil:
			out.Report.Quarantined += r.Copies
			out.Bad = append(out.Bad, bad(r.Key, err))
		case !keep:
			out.Report.Filtered++
		default:
			runs, keys = append(runs, run), append(keys, r.Key)
		}
	}
	if len(runs) == 0 {
		return out, nil
	}
	for i, res := range submit(ctx, runs) {
		switch {
		case res.Err == nil && res.Name == runs[i].Name:
			out.Report.Started++
		case res.Err == nil || res.Refused:
			out.Report.Refused++ // another run has the unique key, or a limit is full
		case res.Lasting:
			out.Report.Quarantined++
			out.Bad = append(out.Bad, bad(keys[i], res.Err))
		default:
			return firings.Progress{}, fmt.Errorf("start run %s: %w", runs[i].Name, res.Err)
		}
	}
	failpoint.Hit("select.submitted")
	return out, nil
}

// bad returns the entry of the quarantine for a row.
func bad(key string, err error) firings.Bad {
	text := err.Error()
	if len(text) > maxError {
		text = text[:maxError]
	}
	if len(key) > maxKey {
		key = short(key)
	}
	return firings.Bad{Key: strings.ToValidUTF8(key, ""), Error: strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")}
}
