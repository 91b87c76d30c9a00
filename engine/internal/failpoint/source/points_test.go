package source_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/internal/failpoint/source"
)

const root = "../../../.."

// S50: the list of places is that of the source, and there are enough of them.
func TestPointsAreListed(t *testing.T) {
	names, err := source.List(root)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../points.txt")
	if err != nil {
		t.Fatal(err)
	}
	if listed := strings.Fields(string(data)); !slices.Equal(listed, names) {
		t.Errorf("points.txt is out of date: run go generate ./engine/internal/failpoint\nlisted %d, the source has %d", len(listed), len(names))
	}
	if len(names) < 80 {
		t.Errorf("%d places, want at least 80", len(names))
	}
}

// S50: everything that changes the store has a place before and one after it.
func TestEveryDurableChangeHasPlaces(t *testing.T) {
	names, err := source.List(root)
	if err != nil {
		t.Fatal(err)
	}
	methods, err := source.DurableMethods(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(methods) < 10 {
		t.Fatalf("only %d methods found that change the store: %v", len(methods), methods)
	}
	for _, m := range methods {
		for _, side := range []string{"before", "after"} {
			if !slices.Contains(names, "store."+m+"."+side) {
				t.Errorf("nothing can strike %s %s", side, m)
			}
		}
	}
	for _, name := range []string{"record.before/Started", "record.after/AttemptOK", "send.before/do", "receive.before/undo", "receive.after/lookup"} {
		if !slices.Contains(names, name) {
			t.Errorf("place %s is missing", name)
		}
	}
}
