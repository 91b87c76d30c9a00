package examples_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A shop is the remote side of the order, in a process of its own.
type shop struct {
	url string
	db  string
}

// startShop starts a shop that ends with the test.
func startShop(t *testing.T, args ...string) shop {
	t.Helper()
	dir := t.TempDir()
	s := shop{db: filepath.Join(dir, "shop.db")}
	ready := filepath.Join(dir, "ready")
	cmd := command(t, "shop", append([]string{"serve", "--addr", "127.0.0.1:0", "--db", s.db, "--ready-file", ready,
		"--with-stdin", "--no-carrier", "AQ"}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("shop: %v", err)
		}
	})
	await(t, "the shop", func() bool {
		text, err := os.ReadFile(ready)
		s.url = strings.TrimSpace(string(text))
		return err == nil
	})
	return s
}

// await polls for something that other processes bring about.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond) // ok mostly starts a process
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

// ledger prints the shop's ledger, which must have an order in a state.
func (s shop) ledger(t *testing.T, order, state string) string {
	t.Helper()
	r := runCommand(t, "shop", "ledger", "--db", s.db, "--order", order, "--expect", order+"="+state)
	if r.code != 0 {
		t.Errorf("ledger = %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// S1, S6, S20: an order is wholly done or wholly undone, and the shop's own
// ledger says so, on both stores.
func TestOrderSaga(t *testing.T) {
	t.Parallel()
	for store, dsn := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, "--fault", "charge:times=1,status=503")
			flags := []string{"--dsn", dsn(t), "order-saga", "--var", "shop_url=" + s.url}
			order := func(code int, id string, args ...string) []message {
				t.Helper()
				return apply(t, code, append(append(flags, "--var", "order_id="+id), args...)...)
			}

			m := order(0, "done")
			if end := last(t, m, "run_finished"); string(end.Outputs["tracking"].Value) == "" || end.Status != "succeeded" {
				t.Errorf("run_finished = %+v, want succeeded with a tracking number", end)
			}
			text := s.ledger(t, "done", "done")
			if !regexp.MustCompile(`(?m)^done +charge +3400 +2 +done `).MatchString(text) {
				t.Errorf("the charge did not arrive twice and happen once:\n%s", text)
			}

			m = order(4, "refused", "--var", "country=AQ")
			if end := last(t, m, "run_finished"); end.Status != "compensated" || end.Code != "no_carrier" || end.Undone != 3 {
				t.Errorf("run_finished = %+v, want compensated: no_carrier, 3 undone", end)
			}
			s.ledger(t, "refused", "undone")

			order(4, "declined", "--var", `items={ car = { qty = 1, price = 2000000 } }`)
			s.ledger(t, "declined", "undone")

			order(4, "sold-out", "--var", `items={ mug = { qty = 1, price = 1 }, pen = { qty = 5000, price = 1 } }`)
			s.ledger(t, "sold-out", "undone")

			// The same order again: the run is there, nothing is done twice.
			order(0, "done")
			if again := s.ledger(t, "done", "done"); again != text {
				t.Errorf("the second apply changed the ledger:\n%s\nbefore:\n%s", again, text)
			}
			// A rolled-back order may be tried anew.
			order(0, "refused")
			s.ledger(t, "refused", "done")
		})
	}
}

// S17, S32: the shop does its work, and every first answer is lost. The call is repeated
// with its key, and no effect happens twice.
func TestOrderSagaWhereAnswersAreLost(t *testing.T) {
	t.Parallel()
	var faults []string
	for _, kind := range []string{"reserve", "charge", "book", "release", "refund"} {
		faults = append(faults, "--fault", kind+":times=1,status=500,after=true")
	}
	s := startShop(t, faults...)
	flags := append(embedded(t), "order-saga", "--var", "shop_url="+s.url)
	apply(t, 0, append(flags, "--var", "order_id=a")...)
	s.ledger(t, "a", "done")
	apply(t, 4, append(flags, "--var", "order_id=b", "--var", "country=AQ")...)
	s.ledger(t, "b", "undone")
}

// S19, S22, S30: the engine is killed while a call is on its way. The next
// apply of the same order finishes the run, and the shop has done nothing
// twice. (What PostgreSQL could change of that is tried at two places only.)
func TestOrderSagaAfterKill(t *testing.T) {
	t.Parallel()
	for store, dsn := range stores {
		kinds := []string{"reserve", "charge", "book", "refund"}
		if store == "postgres" {
			kinds = []string{"charge", "refund"}
		}
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%s during %s", store, kind), func(t *testing.T) {
				t.Parallel()
				s := startShop(t, "--fault", kind+":times=1,delay=2s,after=true")
				args := []string{"apply", "--json", "--dsn", dsn(t), "order-saga", "--var", "shop_url=" + s.url, "--var", "order_id=o"}
				code, state := 0, "done"
				if kind == "refund" {
					code, state = 4, "undone"
					args = append(args, "--var", "country=AQ")
				}
				first := command(t, "engine", args...)
				first.Stdout, first.Stderr = io.Discard, io.Discard
				if err := first.Start(); err != nil {
					t.Fatal(err)
				}
				arrived := regexp.MustCompile(`(?m)^o +` + kind + ` `)
				await(t, "the "+kind, func() bool {
					r := runCommand(t, "shop", "ledger", "--db", s.db)
					return arrived.MatchString(r.stdout)
				})
				if err := first.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = first.Wait() // it was killed

				apply(t, code, args[2:]...)
				s.ledger(t, "o", state)
			})
		}
	}
}
