package postgres

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/store/admission"
)

// Each check is judged by the tables of its own SELECT, also if an earlier check of the same run has
// locked, read or changed other tables.
func TestSeveralChecks(t *testing.T) {
	dsn := migrated(t)
	c := newCounter(t, dsn, dsn)
	const (
		order, customer = `SELECT true FROM public.orders o WHERE o.id = 'o1'`, `SELECT u.credit > 0 FROM public.customers u`
		both            = `SELECT true FROM public.orders o JOIN public.customers u ON u.id = o.customer WHERE o.id = 'o1'`
		bumpOrder       = `UPDATE public.orders SET version = version + 1 WHERE id = 'o1'`
		bumpCustomer    = `UPDATE public.customers SET credit = credit + 1`
		bumpNone        = `UPDATE public.audit SET at = at`
	)
	check := func(name, sql, bump string) admission.Check {
		x := admission.Check{Name: name, SQL: sql, Bump: bump}
		if bump != "" {
			x.Lock = admission.LockVersion
		}
		return x
	}
	for name, x := range map[string]struct {
		checks []admission.Check
		want   admission.Code
		says   string // a part of the error; the error also names the last check
	}{
		"share, then version of another table":       {checks: []admission.Check{check("a", customer, ""), check("b", order, bumpOrder)}},
		"version of two tables":                      {checks: []admission.Check{check("a", customer, bumpCustomer), check("b", order, bumpOrder)}},
		"version of one table twice":                 {checks: []admission.Check{check("a", order, bumpOrder), check("b", order, bumpOrder)}},
		"share, then version of the same table":      {checks: []admission.Check{check("a", order, ""), check("b", order, bumpOrder)}},
		"a view, then version of its table":          {checks: []admission.Check{check("a", `SELECT true FROM public.open_orders`, ""), check("b", `SELECT true FROM public.open_orders o WHERE o.id = 'o1'`, bumpOrder)}},
		"the bump changes an earlier table":          {checks: []admission.Check{check("a", customer, ""), check("b", order, bumpCustomer)}, want: admission.NotBumped, says: "public.orders"},
		"the bump changes no row of the same table":  {checks: []admission.Check{check("a", order, ""), check("b", order, bumpCustomer)}, want: admission.NotBumped, says: "public.orders"},
		"too few rows of the same table":             {checks: []admission.Check{check("a", customer, ""), check("b", `SELECT true FROM public.orders`, bumpOrder)}, want: admission.NotBumped, says: "changes 1 rows"},
		"a table that is locked already is left out": {checks: []admission.Check{check("a", customer, ""), check("b", both, bumpOrder)}, want: admission.NotBumped, says: "public.customers"},
		"a bump of nothing":                          {checks: []admission.Check{check("a", order, ""), check("b", order, bumpNone)}, want: admission.NotBumped, says: "changes 0 rows"},
		"a bump has read the table before": {
			checks: []admission.Check{
				check("a", order, `UPDATE public.orders SET version = version + 1 WHERE id = 'o1' AND EXISTS (SELECT FROM public.customers)`),
				check("b", `SELECT (SELECT u.credit > 0 FROM public.customers u) FROM public.orders o WHERE o.id = 'o1'`, ""),
			},
			want: admission.NotLocked, says: "public.customers",
		},
		"the last check has no such table": {checks: []admission.Check{check("a", order, ""), check("b", `SELECT true FROM public.nothing`, "")}, want: admission.Failed, says: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			got, err := c.submit(c.row("", x.checks...))
			if got != x.want {
				t.Fatalf("code %q, want %q: %v", got, x.want, err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), `admit "b": `) || !strings.Contains(err.Error(), x.says)) {
				t.Errorf("error = %v, want %q", err, x.says)
			}
		})
	}
}
