package agents

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A call is found by its tag while it is under way and for some time after its
// end, and nobody else's is found in its place.
func TestCallBook(t *testing.T) {
	var b callBook
	flights := make([]*bookedCall, 4*bookPages)
	for i := range flights {
		flights[i] = &bookedCall{knownCall: knownCall{run: status.RunID(i), tag: callTag{fmt.Sprintf("r-%d", i), "pay", 1}}}
		b.begin(flights[i])
	}
	found := func(i int) bool {
		run, _, ok := b.find(callTag{fmt.Sprintf("r-%d", i), "pay", 1})
		if ok && run != status.RunID(i) {
			t.Fatalf("r-%d is run %d", i, run)
		}
		return ok
	}
	for i := range flights {
		if !found(i) {
			t.Fatalf("r-%d is not known", i)
		}
	}
	for _, other := range []callTag{{}, {"r-1", "pay", 2}, {"r-1", "ship", 1}, {"", "pay", 1}, {"r-99999", "pay", 1}} {
		if run, _, ok := b.find(other); ok {
			t.Errorf("%v is run %d", other, run)
		}
	}

	// Two calls with one tag: an attempt that is sent to another process.
	again := &bookedCall{knownCall: flights[7].knownCall}
	b.begin(again)
	b.end(flights[7], time.Time{})
	for i := 100; i < 100+maxEnded; i++ {
		b.end(flights[i], time.Time{})
	}
	if !found(7) {
		t.Error("a call is forgotten while another with its tag is under way")
	}
	b.end(again, time.Time{})
	for i := 100; i < 100+maxEnded; i++ {
		if want := i > 100; found(i) != want { // the one that ended first had to make room
			t.Errorf("r-%d: known %v, want %v", i, !want, want)
		}
	}
	if !found(7) || !found(0) {
		t.Error("one that has just ended, or is under way, is not known")
	}
}

// Neither a run's instances nor runs with names of one's own crowd on one page.
func TestCallBookPages(t *testing.T) {
	pages := func(tag func(i int) callTag) int {
		used := map[int]bool{}
		for i := range 10 * bookPages {
			c := tag(i)
			used[c.page()] = true
		}
		return len(used)
	}
	for name, tag := range map[string]func(i int) callTag{
		"runs":      func(i int) callTag { return callTag{fmt.Sprintf("r-6xj0h%d", i), "pay", 1} },
		"instances": func(i int) callTag { return callTag{"r-6xj0hh3ngt1v", fmt.Sprintf("pay[%q]", fmt.Sprint(i)), 1} },
		"names":     func(i int) callTag { return callTag{fmt.Sprintf("order-%d", i), "pay", 1} },
	} {
		if n := pages(tag); n < bookPages/4 {
			t.Errorf("%s are on %d pages of %d", name, n, bookPages)
		}
	}
}
