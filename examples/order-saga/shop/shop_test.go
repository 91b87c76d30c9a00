package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// shop is a running shop.
type shop struct {
	t   *testing.T
	url string
	db  string
}

func newShop(t *testing.T, r rules, fault ...string) *shop {
	t.Helper()
	db := filepath.Join(t.TempDir(), "shop.db")
	st, err := openStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	f := newFaults()
	for i := 0; i < len(fault); i += 2 {
		if err := f.set(fault[i], fault[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(newService(st, r, f))
	t.Cleanup(func() {
		server.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &shop{t: t, url: server.URL, db: db}
}

var plenty = rules{CardLimit: 1000, Stock: 10, NoCarrier: []string{"AQ"}}

// call sends one call and returns status, code or identifier, and the response.
func (s *shop) call(path, key, body string) (int, map[string]any, http.Header) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode, out, resp.Header
}

func (s *shop) want(path, key, body string, status int) map[string]any {
	s.t.Helper()
	got, out, _ := s.call(path, key, body)
	if got != status {
		s.t.Fatalf("%s %s = %d %v, want %d", path, key, got, out, status)
	}
	return out
}

func (s *shop) verdict(order string) verdict {
	s.t.Helper()
	rows, err := readLedger(context.Background(), s.db, order)
	if err != nil {
		s.t.Fatal(err)
	}
	return judge(order, rows)
}

const (
	reserveMug = `{"order":"o","sku":"mug","qty":2}`
	charge     = `{"order":"o","amount":300}`
	bookDE     = `{"order":"o","country":"DE"}`
)

// S26, S32: a key has one effect and one answer, however often and however
// concurrently it arrives.
func TestSameKeyOneEffect(t *testing.T) {
	s := newShop(t, plenty)
	first := s.want("/inventory/reserve", "k1", reserveMug, 201)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, again, _ := s.call("/inventory/reserve", "k1", `{"qty":2,"sku":"mug","order":"o"}`)
			if again["reservation_id"] != first["reservation_id"] {
				t.Errorf("another answer for the same key: %v, want %v", again, first)
			}
		})
	}
	wg.Wait()
	s.want("/inventory/reserve", "k2", `{"order":"o","sku":"mug","qty":8}`, 201)
	if out := s.want("/inventory/reserve", "k3", `{"order":"o","sku":"mug","qty":1}`, 409); out["code"] != "out_of_stock" {
		t.Errorf("code = %v, want out_of_stock", out["code"])
	}
	rows, err := readLedger(t.Context(), s.db, "o")
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Arrivals != 9 {
		t.Errorf("arrivals = %d, want 9", rows[0].Arrivals)
	}
}

func TestKeyWithAnotherRequestIsRefused(t *testing.T) {
	s := newShop(t, plenty)
	s.want("/payment/charge", "k1", charge, 201)
	for path, body := range map[string]string{
		"/payment/charge": `{"order":"o","amount":301}`,
		"/shipping/book":  bookDE,
	} {
		if out := s.want(path, "k1", body, 422); out["code"] != "key_reused" {
			t.Errorf("%s: code = %v, want key_reused", path, out["code"])
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := newShop(t, plenty)
	for name, c := range map[string]struct{ path, key, body string }{
		"no key":          {"/payment/charge", "", charge},
		"no order":        {"/payment/charge", "k", `{"amount":1}`},
		"no amount":       {"/payment/charge", "k", `{"order":"o"}`},
		"no country":      {"/shipping/book", "k", `{"order":"o"}`},
		"unknown field":   {"/payment/charge", "k", `{"order":"o","amount":1,"tip":1}`},
		"undo of nothing": {"/payment/refund", "k", `{"order":"o"}`},
		"do with a key":   {"/payment/charge", "k", `{"order":"o","amount":1,"key":"x"}`},
		"no JSON":         {"/payment/charge", "k", `order=o`},
	} {
		t.Run(name, func(t *testing.T) { (&shop{t, s.url, s.db}).want(c.path, c.key, c.body, 400) })
	}
}

// S29: an undo that overtakes its call leaves a tombstone; the late call has
// no effect.
func TestUndoBeforeDo(t *testing.T) {
	s := newShop(t, plenty)
	if out := s.want("/payment/refund", "u1", `{"order":"o","key":"k1"}`, 200); out["undone"] != false {
		t.Errorf("undone = %v, want false", out["undone"])
	}
	if out := s.want("/payment/charge", "k1", charge, 410); out["code"] != "undone" {
		t.Errorf("code = %v, want undone", out["code"])
	}
	if v := s.verdict("o"); v.State != stateUndone {
		t.Errorf("verdict = %v, want undone", v)
	}
}

func TestUndoOnce(t *testing.T) {
	s := newShop(t, plenty)
	s.want("/inventory/reserve", "k1", `{"order":"o","sku":"mug","qty":10}`, 201)
	for range 2 {
		if out := s.want("/inventory/release", "u1", `{"order":"o","key":"k1"}`, 200); out["undone"] != true {
			t.Errorf("undone = %v, want true", out["undone"])
		}
	}
	if out := s.want("/inventory/release", "u2", `{"order":"o","key":"k1"}`, 200); out["undone"] != false {
		t.Errorf("undone again = %v, want false", out["undone"])
	}
	s.want("/inventory/reserve", "k2", `{"order":"p","sku":"mug","qty":10}`, 201)
	if out := s.want("/payment/refund", "u3", `{"order":"o","key":"k1"}`, 422); out["code"] != "wrong_key" {
		t.Errorf("code = %v, want wrong_key", out["code"])
	}
}

func TestRefusals(t *testing.T) {
	s := newShop(t, plenty)
	if out := s.want("/payment/charge", "k1", `{"order":"o","amount":1001}`, 402); out["code"] != "card_declined" {
		t.Errorf("code = %v, want card_declined", out["code"])
	}
	if out := s.want("/shipping/book", "k2", `{"order":"o","country":"AQ"}`, 422); out["code"] != "no_carrier" {
		t.Errorf("code = %v, want no_carrier", out["code"])
	}
	if v := s.verdict("o"); v.State != stateUndone {
		t.Errorf("verdict = %v, want undone", v)
	}
}

func TestFaults(t *testing.T) {
	t.Run("before the effect", func(t *testing.T) {
		s := newShop(t, plenty, "charge", "times=2,status=503,retry_after=7")
		for range 2 {
			status, _, header := s.call("/payment/charge", "k1", charge)
			if status != 503 || header.Get("Retry-After") != "7" {
				t.Fatalf("status = %d, Retry-After %q, want 503, 7", status, header.Get("Retry-After"))
			}
		}
		if v := s.verdict("o"); v.Why != "nothing was done" {
			t.Errorf("verdict = %v, want that nothing was done", v)
		}
		s.want("/payment/charge", "k1", charge, 201)
		s.want("/payment/charge", "k2", charge, 503) // each key has its own first calls
	})
	t.Run("after the effect", func(t *testing.T) {
		s := newShop(t, plenty, "charge", "times=1,status=500,after=true")
		s.want("/payment/charge", "k1", charge, 500)
		if v := s.verdict("o"); v.State != stateMixed || v.Why != "still standing: charge" {
			t.Errorf("verdict = %v, want a standing charge", v)
		}
		s.want("/payment/charge", "k1", charge, 201)
	})
	t.Run("set and taken away over HTTP", func(t *testing.T) {
		s := newShop(t, plenty)
		for _, c := range []struct {
			kind, settings string
			status         int
		}{
			{"book", "status=503,delay=1ms", 204},
			{"book", "", 204},
			{"nothing", "status=503", 400},
			{"book", "status=200", 400},
			{"book", "speed=1", 400},
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/faults/"+c.kind, strings.NewReader(c.settings))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("PUT /faults/%s %q = %d, want %d", c.kind, c.settings, resp.StatusCode, c.status)
			}
			if c.settings == "status=503,delay=1ms" {
				s.want("/shipping/book", "k1", bookDE, 503)
			}
		}
		s.want("/shipping/book", "k1", bookDE, 201)
	})
}

func TestVerdicts(t *testing.T) {
	do := func(key, kind, item string, undone bool) record {
		return record{Order: "o", Key: key, Kind: kind, Item: item, Applied: true, Undone: undone, Amount: 5}
	}
	undo := func(kind, of string) record {
		return record{Order: "o", Key: "undo-" + kind + of, Kind: kind, Undoes: of, Applied: true}
	}
	for name, c := range map[string]struct {
		rows []record
		want string
	}{
		"done": {
			[]record{do("a", "reserve", "mug", false), do("b", "charge", "", false), do("c", "book", "", false), do("d", "message", "", false)},
			"o: wholly done: 1 articles reserved, 5 charged, shipping booked, each once",
		},
		"undone": {
			[]record{do("a", "reserve", "mug", true), do("b", "charge", "", true), undo("refund", "b"), undo("release", "a")},
			"o: wholly undone: 2 effects, each undone once",
		},
		"undone, then done again": {
			[]record{
				do("a", "reserve", "mug", true), undo("release", "a"),
				do("b", "reserve", "mug", false), do("c", "charge", "", false), do("d", "book", "", false),
			},
			"o: wholly done: 1 articles reserved, 5 charged, shipping booked, each once",
		},
		"charged twice": {
			[]record{do("a", "charge", "", false), do("b", "charge", "", false)},
			"o: NEITHER DONE NOR UNDONE: charge done twice",
		},
		"left charged": {
			[]record{do("a", "reserve", "mug", true), undo("release", "a"), do("b", "charge", "", false)},
			"o: NEITHER DONE NOR UNDONE: still standing: charge",
		},
		"undone twice": {
			[]record{do("a", "charge", "", true), undo("refund", "a"), {Order: "o", Key: "x", Undoes: "a", Applied: true}},
			"o: NEITHER DONE NOR UNDONE: charge undone 2 times",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge("o", c.rows).String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The commands: serve tells its address in a file and ends with its standard
// input; ledger reads beside it and checks expectations.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	db, ready := filepath.Join(dir, "shop.db"), filepath.Join(dir, "ready")
	in, hold := io.Pipe()
	exit := make(chan int, 1)
	var log bytes.Buffer // read after exit
	go func() {
		exit <- run(t.Context(), []string{"serve", "--addr", "127.0.0.1:0", "--db", db, "--ready-file", ready,
			"--with-stdin", "--no-carrier", "AQ", "--fault", "charge:times=1,status=503"}, in, io.Discard, &log)
	}()
	var url []byte
	for len(url) == 0 {
		select {
		case code := <-exit:
			t.Fatalf("serve ended with %d: %s", code, &log)
		case <-time.After(5 * time.Millisecond):
			url, _ = os.ReadFile(ready)
		}
	}
	s := &shop{t: t, url: strings.TrimSpace(string(url)), db: db}
	s.want("/inventory/reserve", "k1", reserveMug, 201)
	s.want("/payment/charge", "k2", charge, 503)
	s.want("/payment/charge", "k2", charge, 201)
	s.want("/shipping/book", "k3", bookDE, 201)

	ledger := func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), append([]string{"ledger", "--db", db}, args...), nil, &out, &errs); got != want {
			t.Fatalf("ledger %v = %d, want %d\n%s%s", args, got, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	out, _ := ledger(0, "--order", "o", "--expect", "o=done")
	for _, want := range []string{"o      reserve  mug   2            1        done    201", "o: wholly done: 1 articles reserved, 300 charged"} {
		if !strings.Contains(out, want) {
			t.Errorf("ledger does not say %q:\n%s", want, out)
		}
	}
	if _, errs := ledger(1, "--expect", "o=undone", "--expect", "p=done"); !strings.Contains(errs, "o is done, not undone; p is not in the ledger") {
		t.Errorf("ledger says %q", errs)
	}
	ledger(2, "--expect", "o=nice")
	ledger(2, "more")

	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-exit; code != 0 {
		t.Errorf("serve ended with %d: %s", code, &log)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"sell"}, {"serve"}, {"serve", "--db", "x", "--fault", "x:status=503"}, {"ledger"}} {
		if got := run(t.Context(), args, nil, io.Discard, io.Discard); got != 2 {
			t.Errorf("run(%v) = %d, want 2", args, got)
		}
	}
	if got := run(t.Context(), []string{"ledger", "--db", filepath.Join(t.TempDir(), "none")}, nil, io.Discard, io.Discard); got != 1 {
		t.Errorf("ledger of no file = %d, want 1", got)
	}
}
