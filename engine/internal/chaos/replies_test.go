package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/replies"
)

// A hook is a webhook that receives replies. It notes the numbers of the replies of each run.
type hook struct {
	*httptest.Server

	mu    sync.Mutex // protects the fields below
	seen  map[string][]int
	twice int
}

// newHook starts a hook. At the end of the test, the hook stops.
func newHook(t *testing.T) *hook {
	h := &hook{seen: map[string][]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Data struct {
				Run string
				Seq int
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if seen := h.seen[body.Data.Run]; slices.Contains(seen, body.Data.Seq) {
			h.twice++
		} else {
			h.seen[body.Data.Run] = append(seen, body.Data.Seq)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// sinks writes the file of reply sinks that names the hook, and returns its path.
func (h *hook) sinks(w *World) string {
	secret := w.write("replies/secret", strings.Repeat("s", 32))
	return w.write("replies/sinks.json", fmt.Sprintf(`{"sinks": {"hook": {"url": %q, "secret": "file:%s"}}, "private": true}`, h.URL, secret))
}

// playReply lets an engine die between two statements of the delivery of replies. Another engine
// delivers them when the claim is over. Each reply arrives, and those of a run arrive in order (I12).
func playReply(t *testing.T, w *World, point string) {
	h := newHook(t)
	sinks := h.sinks(w)
	f := heard(w.URL, "")
	def := w.Define(f.Source)
	vars, diags := def.Workflow("w").Bind(nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	for range 3 {
		sub, err := w.Enqueue(engine.Submission{Definition: def, Workflow: "w", Vars: vars, By: "chaos", ReplyTo: "webhook:hook"})
		if err != nil {
			t.Fatal(err)
		}
		w.adopt(Run{ID: sub.Run, Name: sub.Name, Flow: f})
	}
	a := w.StartEngine("a", kill(point), "--reply-sinks", sinks)
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("%s is dead", a.Name)
	w.StartEngine("b", "", "--reply-sinks", sinks)
	w.AwaitRest(90 * time.Second)
	box, ok := replies.Of(w.store)
	if !ok {
		t.Fatal("the store keeps no replies")
	}
	for _, r := range w.Runs() {
		w.Await("the replies of "+r.Name, 90*time.Second, func() bool { // a claim lasts a minute
			kept, err := box.OfRun(t.Context(), r.ID)
			return err == nil && len(kept) == 3 && !slices.ContainsFunc(kept, func(k replies.Reply) bool { return !k.Done })
		})
		h.mu.Lock()
		if seen := h.seen[r.Name]; !slices.Equal(seen, []int{1, 2, 3}) {
			t.Errorf("%s has sent the replies %v, want 1, 2 and 3 in order (I12)", r.Name, seen)
		}
		h.mu.Unlock()
		if head, err := w.head(r.ID); err != nil || head.State != status.RunSucceeded {
			t.Errorf("%s is %v, %v", r.Name, head.State, err)
		}
	}
}

// playReplies lets an engine die after a webhook has taken replies, but before the outbox says so.
// Another engine sends these replies again, and the others for the first time, in the order of their run.
func playReplies(t *testing.T, w *World, point string) {
	var mu sync.Mutex
	posts, seen, wrong := 0, map[string]int{}, "" // seen = number of the last new reply of each run
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Data struct {
				Run string `json:"run"`
				Seq int    `json:"seq"`
			} `json:"data"`
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		defer mu.Unlock()
		posts++
		switch d := body.Data; {
		case err != nil:
			wrong = err.Error()
		case d.Seq == seen[d.Run]+1:
			seen[d.Run] = d.Seq
		case d.Seq > seen[d.Run]:
			wrong = fmt.Sprintf("run %s tells %d after %d", d.Run, d.Seq, seen[d.Run])
		}
	}))
	defer srv.Close()
	secret := w.write("replies/secret", "0123456789abcdef0123456789abcdef")
	sinks := w.write("replies/sinks.json", fmt.Sprintf(`{"sinks": {"shop": {"url": %q, "secret": %q}}, "private": true}`, srv.URL, "file:"+secret))
	f := heard(w.URL, "")
	path := w.write("replies/w.hcl", f.Source)
	for range 3 {
		w.must("apply", path, "--detach", "--reply-to", "webhook:shop")
	}
	a := w.StartEngine("a", kill(point), "--reply-sinks", sinks)
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	mu.Lock()
	before := posts
	mu.Unlock()
	w.StartEngine("b", "", "--reply-sinks", sinks)
	w.Await("all replies", 3*time.Minute, func() bool {
		mu.Lock()
		defer mu.Unlock()
		done := 0
		for _, n := range seen {
			if n == 3 {
				done++
			}
		}
		return done == 3 || wrong != ""
	})
	mu.Lock()
	if wrong != "" || before == 0 || posts <= 9 {
		t.Errorf("%d posts, %d of them by the dead engine; %s", posts, before, wrong)
	}
	mu.Unlock()
	w.adoptAll(f, 3)
	w.AwaitRest(time.Minute)
}
