package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/engine/store"
)

// patience is how long tests wait for something that must happen.
const patience = 60 * time.Second

// outbox is an engine's outbox in memory, with permissions as stores give them.
type outbox struct {
	mu      sync.Mutex // protects the fields below
	alerts  []store.AlertRow
	done    map[int64]bool
	granted time.Time
	markErr error // of the next Delivered
}

func newOutbox(alerts ...store.AlertRow) *outbox {
	return &outbox{alerts: alerts, done: map[int64]bool{}}
}

func (o *outbox) Undelivered(_ context.Context, limit int) ([]store.AlertRow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []store.AlertRow
	for _, a := range o.alerts {
		if !o.done[a.ID] && len(out) < limit {
			out = append(out, a)
		}
	}
	return out, nil
}

func (o *outbox) Delivered(_ context.Context, ids []int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.markErr; err != nil {
		o.markErr = nil
		return err
	}
	for _, id := range ids {
		o.done[id] = true
	}
	return nil
}

func (o *outbox) Pass(_ context.Context, _ string, period time.Duration) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.granted) < period {
		return false, nil
	}
	o.granted = time.Now()
	return true, nil
}

func (o *outbox) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.alerts) - len(o.done)
}

// receiver is a webhook that answers as it is told, and remembers what it took.
type receiver struct {
	mu     sync.Mutex // protects the fields below
	answer func(n int) int
	calls  int
	got    []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body struct {
		Run, Kind string
	}
	data, _ := io.ReadAll(req.Body)
	if err := json.Unmarshal(data, &body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	status := r.answer(r.calls)
	if status == http.StatusOK {
		r.got = append(r.got, body.Run+" "+body.Kind+" "+req.Header.Get("Idempotency-Key"))
	}
	if status == http.StatusFound {
		w.Header().Set("Location", "http://"+req.Host+"/elsewhere")
	}
	w.WriteHeader(status)
}

func (r *receiver) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func testHook(o hookStore, to pusher) *Hook {
	h := NewHook(o, to, slog.New(slog.DiscardHandler), &tally{})
	h.watch, h.patience, h.poll, h.backoffFrom, h.backoff = 2*time.Second, time.Second, 20*time.Millisecond, time.Millisecond, 10*time.Millisecond
	return h
}

// A tally counts what a hook does.
type tally struct{ failed, delivered, givenUp atomic.Int64 }

func (c *tally) Pushed(ok bool) {
	if ok {
		c.delivered.Add(1)
	} else {
		c.failed.Add(1)
	}
}

func (c *tally) GivenUp() { c.givenUp.Add(1) }

func alertRow(id int64, run string) store.AlertRow {
	return store.AlertRow{
		Alert: store.Alert{Kind: "parked", Step: "charge", Code: "declined", Message: "no"}, ID: id, Name: run, Workflow: "order", Key: "k-" + run, At: time.Now(),
	}
}

// runHook runs a hook until the outbox is empty.
func runHook(t *testing.T, h *Hook, o *outbox) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); o.left() > 0; <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("%d alerts were not pushed", o.left())
		}
	}
}

// S59: a webhook that fails at first gets every alert, in order; a redirect is
// not followed and counts as a failure.
func TestHookRetries(t *testing.T) {
	r := &receiver{answer: func(n int) int {
		switch n {
		case 1, 4:
			return http.StatusInternalServerError
		case 2:
			return http.StatusFound
		}
		return http.StatusOK
	}}
	server := httptest.NewServer(r)
	defer server.Close()
	o := newOutbox(alertRow(1, "o-1"), alertRow(2, "o-2"), alertRow(3, "o-3"))
	runHook(t, testHook(o, To("", server.URL+"/secret-token", nil)), o)
	want := []string{"o-1 parked alert-1", "o-2 parked alert-2", "o-3 parked alert-3"}
	if got := r.taken(); !slices.Equal(got, want) {
		t.Errorf("pushed %q, want %q", got, want)
	}
}

// An alert that the receiver refuses for good does not keep all later ones from
// being pushed; one that it cannot take now does, because order is kept, and is
// never given up. Only refusals are counted towards giving up.
func TestHookGivesUpWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  func(n int) int
		want    []string
		givenUp int64
	}{
		{"refused for good", func(n int) int {
			if n <= hookRefusals {
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusOK
		}, []string{"o-2 parked alert-2"}, 1},
		{"away for long, then refused once", func(n int) int {
			switch {
			case n <= 2*hookRefusals:
				return http.StatusServiceUnavailable
			case n == 2*hookRefusals+1:
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusOK
		}, []string{"o-1 parked alert-1", "o-2 parked alert-2"}, 0},
		{"each refused for a while", func(n int) int {
			if most := hookRefusals - 1; n <= most || n > most+1 && n <= 2*most+1 {
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusOK
		}, []string{"o-1 parked alert-1", "o-2 parked alert-2"}, 0},
		{"too early, too many, too slow", func(n int) int {
			if n <= 3*hookRefusals {
				return []int{http.StatusTooEarly, http.StatusTooManyRequests, http.StatusRequestTimeout}[n%3]
			}
			return http.StatusOK
		}, []string{"o-1 parked alert-1", "o-2 parked alert-2"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &receiver{answer: c.answer}
			server := httptest.NewServer(r)
			defer server.Close()
			o := newOutbox(alertRow(1, "o-1"), alertRow(2, "o-2"))
			h := testHook(o, To("", server.URL, nil))
			h.backoff = 2 * time.Millisecond
			runHook(t, h, o)
			if got := r.taken(); !slices.Equal(got, c.want) {
				t.Errorf("pushed %q, want %q", got, c.want)
			}
			if n := h.counts.(*tally).givenUp.Load(); n != c.givenUp {
				t.Errorf("%d alerts were given up, want %d", n, c.givenUp)
			}
		})
	}
}

// A program refuses an alert for good by one exit code only.
func TestProgramRefuses(t *testing.T) {
	for code, want := range map[int]bool{1: false, 9: false, 64: false, programRefuses: true, 127: false} {
		path := filepath.Join(t.TempDir(), "pager.sh")
		if err := os.WriteFile(path, []byte(fmt.Sprintf("#!/bin/sh\ncat > /dev/null\nexit %d\n", code)), 0o755); err != nil {
			t.Fatal(err)
		}
		err := program{path: path}.push(t.Context(), alertRow(1, "o-1"), []byte("{}"))
		var refused *refusedError
		if err == nil || errors.As(err, &refused) != want {
			t.Errorf("exit code %d: %v, refused: %t, want %t", code, err, !want, want)
		}
	}
}

// An engine that dies between pushing an alert and noting it leaves it to be
// pushed again: twice, not lost.
func TestHookAtLeastOnce(t *testing.T) {
	r := &receiver{answer: func(int) int { return http.StatusOK }}
	server := httptest.NewServer(r)
	defer server.Close()
	o := newOutbox(alertRow(7, "o-7"))
	o.markErr = context.DeadlineExceeded // the note is lost
	runHook(t, testHook(o, To("", server.URL, nil)), o)
	if got := r.taken(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("pushed %q, want the same alert twice", got)
	}
}

// Of two engines one pushes; when it stops the other goes on.
func TestHookOneAtATime(t *testing.T) {
	r := &receiver{answer: func(int) int { return http.StatusOK }}
	server := httptest.NewServer(r)
	defer server.Close()
	o := newOutbox()
	for i := range 50 {
		o.alerts = append(o.alerts, alertRow(int64(i+1), "o"))
	}
	other := testHook(o, To("", server.URL, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { other.Run(ctx); close(done) }()
	runHook(t, testHook(o, To("", server.URL, nil)), o)
	cancel()
	<-done
	if got := r.taken(); len(got) != 50 {
		t.Errorf("%d pushes of 50 alerts, want one each", len(got))
	}
}

// Alerts from long before the engine started are noted, not pushed.
func TestHookLeavesOldOnes(t *testing.T) {
	r := &receiver{answer: func(int) int { return http.StatusOK }}
	server := httptest.NewServer(r)
	defer server.Close()
	old := alertRow(1, "o-1")
	old.At = time.Now().Add(-25 * time.Hour)
	o := newOutbox(old, alertRow(2, "o-2"))
	runHook(t, testHook(o, To("", server.URL, nil)), o)
	if got := r.taken(); len(got) != 1 || !strings.HasPrefix(got[0], "o-2 ") {
		t.Errorf("pushed %q, want only that of o-2", got)
	}
}

// A failed push does not tell the URL, which may hold a token.
func TestWebhookKeepsItsSecret(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close() // nobody listens
	w := To("", strings.Replace(address, "http://", "http://me:hunter2@", 1)+"/hunter2?t=hunter2", nil)
	err := w.push(t.Context(), alertRow(1, "o-1"), []byte("{}"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(w.String(), "hunter2") {
		t.Errorf("push to %s: %v", w, err)
	}
}

// The program of --on-alert reads the alert, sees what it is about in its
// environment, and nothing that opens the state; one that fails says why.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "OUT=" + dir, "ENGINE_DSN=postgres://x", cli.KeyVariable + "=k3y", "PGPASSWORD=p"}
	a := alertRow(3, "o-3")
	body, err := alertBody(a)
	if err != nil {
		t.Fatal(err)
	}
	p := To(script("good", `cat > "$OUT/stdin"; env > "$OUT/env"`), "", environ)
	if err := p.push(t.Context(), a, body); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "stdin"))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || got["run"] != "o-3" || got["kind"] != "parked" || got["code"] != "declined" || got["workflow"] != "order" || got["key"] != "k-o-3" {
		t.Errorf("read %v, %v", got, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ENGINE_ALERT_ID=3", "ENGINE_ALERT_KIND=parked", "ENGINE_ALERT_RUN=o-3", "ENGINE_ALERT_KEY=k-o-3", "ENGINE_ALERT_STEP=charge", "ENGINE_ALERT_CODE=declined"} {
		if !strings.Contains(string(env), want+"\n") {
			t.Errorf("no %s in its environment", want)
		}
	}
	for _, not := range []string{"ENGINE_DSN", cli.KeyVariable, "PGPASSWORD"} {
		if strings.Contains(string(env), not) {
			t.Errorf("%s is in its environment", not)
		}
	}

	bad := To(script("bad", "echo pager is down >&2; exit 3"), "", environ)
	if err := bad.push(t.Context(), a, body); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "pager is down") {
		t.Errorf("push = %v, want what it said", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	slow := To(script("slow", "sleep 600 & sleep 600"), "", environ)
	began := time.Now()
	if err := slow.push(ctx, a, body); err == nil || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("push = %v, want that it took too long", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was waited for %s", took)
	}
}

// Pauses after failures double, up to a bound.
func TestHookWaits(t *testing.T) {
	h := &Hook{backoffFrom: time.Second, backoff: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := h.wait(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}
