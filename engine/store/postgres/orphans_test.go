package postgres

import (
	"slices"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// S49: the runs of a dead engine are found page by page, each once and none
// twice, by one walk over them; what another engine takes meanwhile is left out,
// and pages are full all the same.
func TestOrphanPages(t *testing.T) {
	dsn := migrated(t)
	db := raw(t, dsn)
	const n = 5000
	must(t, db, `INSERT INTO engine.member (address, lease_until, dead) VALUES ('a', now(), true), ('b', now() + interval '1 hour', false)`)
	must(t, db, `INSERT INTO engine.run SELECT n, 1, CASE WHEN n % 2 = 0 THEN 2 ELSE 10 END, 1, 0, now() - (n % 1000) * interval '1 second', now(), CASE WHEN n % 2 <> 0 THEN now() END FROM generate_series(1, 2 * $1::int) n`, n)
	s := open(t, dsn)
	var got []status.RunID
	pages := 0
	for after := status.RunID(0); ; pages++ {
		page, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(after, 256)))
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1]
		if pages == 1 { // the third page and a half of the fourth
			must(t, db, `UPDATE engine.run SET owner = 2 WHERE state < 10 AND run_id > $1 AND run_id <= $1 + 2 * 384`, int64(after))
		}
		if pages > 1 && len(page) < 256 && len(got) < n-384 {
			t.Errorf("page %d holds %d runs in the middle of the walk", pages, len(page))
		}
		if pages < 3 && len(s.orphans.rest) == 0 {
			t.Errorf("page %d: nothing is left of the list: every page costs a walk", pages)
		}
	}
	if len(got) != n-384 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("%d orphans, want %d, ascending and each once", len(got), n-384)
	}
	// Two walks at once disturb each other's list, not the result.
	a, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(0, 10)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(0, 20)))
	if err != nil || !slices.Equal(a, b[:10]) {
		t.Fatalf("two walks: %v and %v, err = %v", a, b, err)
	}
	if next, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(a[9], 10))); err != nil || !slices.Equal(next, b[10:]) {
		t.Errorf("the first walk goes on with %v, err = %v, want %v", next, err, b[10:])
	}
}
