package commit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A slowWriter lands what it is given when it is told to.
type slowWriter struct {
	store.Writer
	batches chan int
	land    chan struct{}
}

func (w *slowWriter) Commit(_ context.Context, batch []store.Transition) ([]store.Outcome, error) {
	w.batches <- len(batch)
	<-w.land
	out := make([]store.Outcome, len(batch))
	for i := range out {
		out[i].Landed = true
	}
	return out, nil
}

// A receiver counts what it is told.
type receiver struct{ atomic.Int64 }

func (r *receiver) Landed(items []*Item) { r.Add(int64(len(items))) }

// What queues while a commit is on its way becomes the next one; how much waits,
// and for how long, is visible, and it is bounded: who decides has to wait.
func TestCommitsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slowWriter{batches: make(chan int, 10), land: make(chan struct{})}
		c := New([]store.Writer{st}, Options{MaxRows: 4, MaxBytes: 1 << 20}, outage.New(slog.New(slog.DiscardHandler)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var told receiver
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, 0) }()
		add := func(n int) {
			for range n {
				if err := c.Commit(ctx, &Item{Transition: store.Transition{Run: status.RunID(1)}, To: &told}); err != nil {
					t.Error(err)
				}
			}
		}
		add(1)
		synctest.Wait()
		add(4)
		full := make(chan struct{})
		go func() { add(1); close(full) }()
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-full:
			t.Error("the queue takes more than its bound")
		default:
		}
		if c.Waiting() != 4 || c.Oldest() != time.Second {
			t.Errorf("%d wait, the oldest for %s, want 4 and 1s", c.Waiting(), c.Oldest())
		}
		for range 3 {
			st.land <- struct{}{}
			synctest.Wait()
		}
		<-full
		if c.Waiting() != 0 || c.Oldest() != 0 {
			t.Errorf("%d wait, the oldest for %s, want none", c.Waiting(), c.Oldest())
		}
		close(st.batches)
		var got []int
		for n := range st.batches {
			got = append(got, n)
		}
		if len(got) != 3 || got[0] != 1 || got[1] != 4 || got[2] != 1 {
			t.Errorf("batches of %v, want 1, 4 and 1", got)
		}
		if told.Load() != 6 {
			t.Errorf("%d were told, want 6", told.Load())
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
	})
}

// Another writer helps once a batch of the first one, or as many as cost less alone,
// waits; with batches of one, whoever is idle takes the next.
func TestCommitsSpill(t *testing.T) {
	for _, c := range []struct{ most, alone int }{{4, 4}, {1, 1}, {1000, spill}} {
		synctest.Test(t, func(t *testing.T) {
			writers := []*slowWriter{{batches: make(chan int, 10), land: make(chan struct{})}, {batches: make(chan int, 10), land: make(chan struct{})}}
			committer := New([]store.Writer{writers[0], writers[1]}, Options{MaxRows: c.most, MaxBytes: 1 << 20}, outage.New(slog.New(slog.DiscardHandler)))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			for n := range writers {
				go func() { ended <- committer.Run(ctx, n) }()
			}
			var told receiver
			add := func() {
				if err := committer.Commit(ctx, &Item{Transition: store.Transition{Run: 1}, To: &told}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			}
			for range c.alone {
				add()
			}
			if n := len(writers[1].batches); n != 0 {
				t.Errorf("batches of %d: the second writer helps before %d wait", c.most, c.alone)
			}
			add()
			if n := len(writers[1].batches); n != 1 {
				t.Errorf("batches of %d: the second writer does not help when %d wait", c.most, c.alone)
			}
			cancel()
			for _, w := range writers {
				close(w.land)
			}
			for range writers {
				<-ended
			}
		})
	}
}
