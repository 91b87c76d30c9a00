package selects

import (
	"errors"
	"testing"
	"time"
)

// T28, S104: rows move between the intervals of the strategy window while a firing reads them, and an
// engine dies in the middle of a page. A row that has moved to the next interval before its page was
// read starts one run, in the firing of the next interval. So does a row that was added to the next
// interval. A row that moved after its page was read has started its run already, and is a row of the
// next interval, too.
func TestT28WindowRowsMove(t *testing.T) {
	s := newShop(t, selecting("window"))
	s.exec(`INSERT INTO public.orders SELECT 10 * i, 1, $1 FROM generate_series(1, 30) i`, inWindow)
	next := tick.Add(time.Hour)
	s.before = func(page int, _ []Run) {
		if page == 2 { // the watermark is 70
			s.exec(`UPDATE public.orders SET at = $1 WHERE id IN (20, 200)`, tick.Add(time.Minute))
			s.exec(`INSERT INTO public.orders VALUES (6, 1, $1), (306, 1, $1)`, tick) // the interval ends before its tick
		}
	}
	s.after = func(page int) error {
		if page == 3 {
			return errors.New("the engine dies")
		}
		return nil
	}
	s.fire(tick)
	s.work()
	if f := s.firing(tick); f.State != "open" || f.Report.Started != 14 {
		t.Fatalf("firing is %s: %+v, want two pages", f.State, f.Report)
	}
	if !s.fire(next) {
		t.Fatal("the next interval opens no firing")
	}
	s.exec(`UPDATE engine.firing SET held_until = '-infinity'`)
	s.work()
	a, b := s.firing(tick), s.firing(next)
	if a.State != "complete" || a.Report.Started != 29 || !b.From.Equal(a.To) || b.State != "complete" || b.Report.Started != 4 || b.Ended.Before(a.Ended) {
		t.Errorf("firings: %+v, %+v, want 29 rows and then 4 rows, without a gap between the intervals", a, b)
	}
	for key, in := range map[string][]time.Time{"10": {tick}, "20": {tick, next}, "200": {next}, "6": {next}, "306": {next}, "300": {tick}} {
		for _, at := range []time.Time{tick, next} {
			want := 0
			for _, x := range in {
				if x.Equal(at) {
					want = 1
				}
			}
			if _, there := s.runs[RunName("w", "s", at, key)]; there != (want == 1) {
				t.Errorf("row %s, interval before %s: a run: %t", key, at, there)
			}
		}
	}
}
