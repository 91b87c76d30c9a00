package selects

import (
	"context"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store/firings"
)

// A Retried is what became of a quarantined row.
type Retried struct {
	Bad   firings.Bad
	Run   string // public name of the run of the row; "" = there is none
	Error string // why the row stays in the quarantine; "" = it left the quarantine
}

// Retry reads quarantined rows of a firing again and starts their runs. The name of such a run is
// the same as in the firing, so a row never starts two runs. A row stays in the quarantine if it is
// gone from the database, or if it has an error again.
func Retry(ctx context.Context, role firings.Store, def *dsl.Definition, f *firings.Firing, sealer crypt.Sealer, list []firings.Bad, submit SubmitFunc) ([]Retried, error) {
	p, err := planOf(def, f, sealer)
	if err != nil {
		return nil, err
	}
	q := p.query
	q.Keys = []string{}
	for _, b := range list {
		if b.Key != "" {
			q.Keys = append(q.Keys, b.Key)
		}
	}
	rows, err := role.Rows(ctx, q)
	if err != nil {
		return nil, err
	}
	byKey := map[string]firings.Row{}
	for _, r := range rows {
		byKey[r.Key] = r
	}
	var out []Retried
	for _, b := range list {
		done, err := p.retry(ctx, role, b, byKey, submit)
		if err != nil {
			return out, err
		}
		out = append(out, done)
	}
	return out, nil
}

// retry starts the run of one quarantined row.
func (p *plan) retry(ctx context.Context, role firings.Store, b firings.Bad, rows map[string]firings.Row, submit SubmitFunc) (Retried, error) {
	done := Retried{Bad: b}
	r, there := rows[b.Key]
	if !there {
		done.Error = "the query returns no row with this key now"
		return done, nil
	}
	page, err := p.page(ctx, submit, []firings.Row{r})
	if err != nil {
		return done, err
	}
	if len(page.Bad) > 0 {
		done.Error = page.Bad[0].Error
		page.Bad[0].ID = b.ID
		return done, role.Explain(ctx, page.Bad[0])
	}
	if page.Report.Started > 0 {
		done.Run = runName(p.f, b.Key)
	}
	return done, role.Resolve(ctx, b, page.Report.Started == 0)
}
