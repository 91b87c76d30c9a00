package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

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
