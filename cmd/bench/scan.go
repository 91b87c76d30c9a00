package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// Numbers of open runs in the database. Their owners are the scanning engine, another live engine
// and a dead engine.
const (
	openRuns = 1000 // all open runs, of the three engines together
	dueRuns  = 10   // runs of the scanning engine, with a next_check in the past
	// Runs of the other live engine, with a next_check that is longer ago than `grace`.
	lateRuns   = 10
	orphanRuns = 100 // runs of the dead engine
	// A scan finds a run of another live engine only if the next_check of the run is at least this
	// long ago.
	grace = time.Minute
)

// A scan holds the duration of each part of one scan of a Supervisor, or the medians of many
// scans.
type scan struct {
	tick, overdue, orphans time.Duration
}

func (s scan) sum() time.Duration { return s.tick + s.overdue + s.orphans }

// A scene is a database with open runs, and the id of the engine that makes scans.
type scene struct {
	d    *database
	self store.EngineID
}

// stage creates open and finished runs in a database. The finished runs have no journal,
// because no scan reads journals.
func stage(ctx context.Context, d *database, w *work, finished int) (*scene, error) {
	flows, err := journal.NewDefinitions(d.store, nil).Put(ctx, w.def)
	if err != nil {
		return nil, fmt.Errorf("store the workflow: %w", err)
	}
	s := &scene{d: d}
	var members [3]store.EngineID // ids of the scanning, the other live and the dead engine
	for i := range members {
		if members[i], err = d.store.Join(ctx, "bench", time.Hour, 1); err != nil {
			return nil, fmt.Errorf("join: %w", err)
		}
	}
	s.self = members[0]
	row := `INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at, finished_at) SELECT `
	if err := d.exec(ctx, "make runs",
		row+fmt.Sprintf(`g, %d, 10, %d, 0, 'infinity', now(), now() FROM generate_series(1, %d) g`, flows["five"], s.self, finished),
		row+fmt.Sprintf(`%[1]d + g, %[2]d, 2,
			CASE WHEN g <= %[3]d THEN %[4]d WHEN g %% 2 = 0 THEN %[5]d ELSE %[6]d END, 0,
			CASE WHEN g %% 2 = 0 AND g <= %[3]d + 2 * %[7]d THEN now() - interval '1 hour'
			     WHEN g > %[8]d - %[9]d THEN now() - interval '1 second' ELSE now() + interval '1 hour' END, now(), NULL
			FROM generate_series(1, %[8]d) g`,
			int64(firstID), flows["five"], orphanRuns, members[2], members[1], s.self, lateRuns, openRuns, 2*dueRuns),
		`VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
		return nil, err
	}
	if err := d.store.Leave(ctx, members[2]); err != nil {
		return nil, fmt.Errorf("leave: %w", err)
	}
	return s, nil
}

// once is the method that makes one scan. It returns how long each part of the scan took. It
// returns an error if the scan does not find the expected numbers of runs.
func (s *scene) once(ctx context.Context) (scan, error) {
	var out scan
	began := time.Now()
	lap := func(d *time.Duration) { *d, began = time.Since(began), time.Now() }
	tick, err := s.d.store.Tick(ctx, s.self, time.Hour, 1000)
	lap(&out.tick)
	if err != nil {
		return scan{}, fmt.Errorf("tick: %w", err)
	}
	overdue, err := s.d.store.Runs(ctx, store.RunFilter{Owners: store.OwnerOther, Asking: s.self, Overdue: grace, Limit: 256})
	lap(&out.overdue)
	if err != nil {
		return scan{}, fmt.Errorf("overdue: %w", err)
	}
	orphans, err := s.d.store.Runs(ctx, store.RunFilter{Owners: store.OwnerDead | store.OwnerNone, Limit: 256})
	lap(&out.orphans)
	if err != nil {
		return scan{}, fmt.Errorf("orphans: %w", err)
	}
	if len(tick.Due) != dueRuns || len(overdue) != lateRuns || len(orphans) != orphanRuns {
		return scan{}, fmt.Errorf("a pass found %d due, %d overdue, %d orphans; want %d, %d, %d",
			len(tick.Due), len(overdue), len(orphans), dueRuns, lateRuns, orphanRuns)
	}
	return out, nil
}

// scans makes many scans alternately in two databases: without and with finished runs. It begins
// with a few scans as a warm-up. The parameter `passes` is the number of measured scans in each
// database, after the warm-up. The function `scans` returns the median durations for each
// database.
func scans(ctx context.Context, without, with *scene, passes int) (out [2]scan, err error) {
	var all [2][]scan
	for i := range passes + passes/10 {
		for k, s := range []*scene{without, with} {
			one, err := s.once(ctx)
			if err != nil {
				return out, err
			}
			if i >= passes/10 { // the first scans are a warm-up and do not count
				all[k] = append(all[k], one)
			}
		}
	}
	for k := range out {
		out[k] = scan{
			tick:    median(all[k], func(s scan) time.Duration { return s.tick }),
			overdue: median(all[k], func(s scan) time.Duration { return s.overdue }),
			orphans: median(all[k], func(s scan) time.Duration { return s.orphans }),
		}
	}
	return out, nil
}

// median calls a function for each element of a slice, and returns the median of the durations
// that the function returned. It returns 0 if the slice is empty.
func median[T any](of []T, what func(T) time.Duration) time.Duration {
	all := make([]time.Duration, len(of))
	for i, v := range of {
		all[i] = what(v)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
