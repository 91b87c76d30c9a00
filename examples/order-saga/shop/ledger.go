package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// printLedger prints every effect. For each order it prints whether the order is wholly done
// or wholly undone. If the state of an order is not the one that --expect names, it returns an
// error.
func printLedger(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("ledger", flag.ContinueOnError)
	db := fs.String("db", "", "")
	order := fs.String("order", "", "")
	expect := map[string]string{}
	fs.Func("expect", "", func(text string) error {
		id, state, _ := strings.Cut(text, "=")
		if state != stateDone && state != stateUndone {
			return fmt.Errorf("want ID=%s or ID=%s", stateDone, stateUndone)
		}
		expect[id] = state
		return nil
	})
	if err := parse(fs, args, stderr, "db"); err != nil {
		return err
	}
	rows, err := readLedger(ctx, *db, *order)
	if err != nil {
		return err
	}
	if err := writeTable(stdout, rows); err != nil {
		return fmt.Errorf("print ledger: %w", err)
	}
	var wrong []string
	for _, v := range verdicts(rows) {
		fmt.Fprintf(stdout, "%s\n", v)
		if want, ok := expect[v.Order]; ok && want != v.State {
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", v.Order, v.State, want))
		}
		delete(expect, v.Order)
	}
	for id := range expect {
		wrong = append(wrong, id+" is not in the ledger")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("not as expected: %s", strings.Join(wrong, "; "))
	}
	return nil
}

const effectList = `SELECT ` + recordColumns + ` FROM effects WHERE ? IN ('', order_id) ORDER BY order_id, seq`

// readLedger reads the rows of one order, or of all orders if `order` is "". The shop may run at
// the same time.
func readLedger(ctx context.Context, path, order string) ([]record, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	st, err := open(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	rows, err := st.db.QueryContext(ctx, effectList, order)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer rows.Close()
	var out []record
	for rows.Next() {
		var r record
		if err := r.scan(rows); err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return out, nil
}

func writeTable(w io.Writer, rows []record) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ORDER\tCALL\tITEM\tQTY\tAMOUNT\tARRIVED\tEFFECT\tLAST ANSWER")
	forward := map[string]record{}
	for _, r := range rows {
		forward[r.Key] = r
	}
	for _, r := range rows {
		if f, ok := forward[r.Undoes]; ok {
			r.Item, r.Qty, r.Amount = f.Item, f.Qty, f.Amount
		}
		effect := "none"
		switch {
		case r.Applied && r.Undone:
			effect = "done, undone"
		case r.Applied && r.Undoes != "":
			effect = "undid"
		case r.Applied:
			effect = "done"
		case r.Undone:
			effect = "none, barred"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.Order, r.Kind, r.Item, some(r.Qty), some(r.Amount), r.Arrivals, effect, some(int64(r.Status)))
	}
	return t.Flush()
}

func some(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// States of an order.
const (
	stateDone   = "done"
	stateUndone = "undone"
	stateMixed  = "mixed"
)

// A verdict holds the state of an order. The function `judge` computes it from the effects of the
// order alone.
type verdict struct {
	Order string
	State string
	Why   string
}

// String returns the line that printLedger prints for an order at the end.
func (v verdict) String() string {
	if v.State == stateMixed {
		return fmt.Sprintf("%s: NEITHER DONE NOR UNDONE: %s", v.Order, v.Why)
	}
	return fmt.Sprintf("%s: wholly %s: %s", v.Order, v.State, v.Why)
}

// verdicts returns the verdict for every order in rows, in the order of the rows.
func verdicts(rows []record) []verdict {
	var out []verdict
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r record) bool { return r.Order != rows[0].Order })
		if n < 0 {
			n = len(rows)
		}
		out = append(out, judge(rows[0].Order, rows[:n]))
		rows = rows[n:]
	}
	return out
}

// judge computes the state of one order. Done means: each article is reserved once, the order is
// charged once and booked once, and all other effects are undone. Undone means: each effect is
// undone exactly once. Messages cannot be undone, so judge ignores them. Every other order is
// mixed.
func judge(order string, rows []record) verdict {
	undone := map[string]int{} // number of undos of each call, by the idempotency key of the call
	for _, r := range rows {
		if r.Undoes != "" && r.Applied {
			undone[r.Undoes]++
		}
	}
	standing := map[string]int{} // number of effects that were not undone, by kind and article
	var applied, reserved int
	var amount int64
	for _, r := range rows {
		if r.Undoes != "" || !r.Applied || r.Kind == "message" {
			continue
		}
		applied++
		want := 0
		if r.Undone {
			want = 1
		}
		if undone[r.Key] != want {
			return verdict{order, stateMixed, fmt.Sprintf("%s undone %d times", strings.TrimSpace(r.Kind+" "+r.Item), undone[r.Key])}
		}
		if r.Undone {
			continue
		}
		name := strings.TrimSpace(r.Kind + " " + r.Item)
		if standing[name]++; standing[name] > 1 {
			return verdict{order, stateMixed, name + " done twice"}
		}
		switch r.Kind {
		case "reserve":
			reserved++
		case "charge":
			amount = r.Amount
		}
	}
	switch {
	case len(standing) == 0 && applied == 0:
		return verdict{order, stateUndone, "nothing was done"}
	case len(standing) == 0:
		return verdict{order, stateUndone, fmt.Sprintf("%d effects, each undone once", applied)}
	case standing["charge"] == 1 && standing["book"] == 1 && reserved > 0:
		return verdict{order, stateDone, fmt.Sprintf("%d articles reserved, %d charged, shipping booked, each once", reserved, amount)}
	}
	names := make([]string, 0, len(standing))
	for name := range standing {
		names = append(names, name)
	}
	slices.Sort(names)
	return verdict{order, stateMixed, "still standing: " + strings.Join(names, ", ")}
}
