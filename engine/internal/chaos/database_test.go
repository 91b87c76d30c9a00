package chaos

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

// ownCluster starts a server that a test may crash, and returns the DSN of an empty
// database on it.
func ownCluster(t *testing.T) (*pgtest.Cluster, string) {
	t.Helper()
	c, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	dsn, err := c.Database(t.Context(), "chaos")
	if err != nil {
		t.Fatal(err)
	}
	return c, dsn
}

func stop(t *testing.T, c *pgtest.Cluster) {
	if err := c.Stop(); err != nil {
		t.Logf("stop a server: %v", err)
	}
}

// T4: PostgreSQL crashes and comes back, again and again, also while a dead
// engine's runs are taken over (S3 S48, E2, I1 I8).
func TestDatabaseRestarts(t *testing.T) {
	if !full { // the full trial runs alone: its load needs the whole machine
		t.Parallel()
	}
	began := time.Now()
	c, dsn := ownCluster(t)
	w := NewWorld(t, programs, dsn, 4)
	for range times(16, 400) {
		w.Submit(NewFlow(w.Rng, w.URL), 1)
	}
	a := w.StartEngine("a", "")
	b := w.StartEngine("b", "")
	w.awaitCalls(2)
	for late := time.Now().Add(20 * time.Second); !strings.Contains(b.Output(), "msg=serving"); {
		if time.Now().After(late) { // an engine that has not begun yet may end because of its database
			t.Fatalf("the engine does not begin:\n%s", b.Output())
		}
		time.Sleep(10 * time.Millisecond)
	}
	perSecond, least, spread := 50, 300, 700
	if full {
		perSecond, least, spread = 200, 5000, 35000
	}
	rounds, ends := 0, time.Now().Add(time.Duration(times(0, 3600))*time.Second)
	stop := w.load(perSecond)
	for ; rounds < 3 || time.Now().Before(ends); rounds++ {
		if rounds%20 == 1 { // the crash meets the takeover of a's runs
			a.Kill()
			w.Note("%s is dead", a.Name)
			time.Sleep(lease + 100*time.Millisecond) // its lease has to run out
		}
		w.Note("the database crashes")
		if err := c.StopImmediate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(w.Rng.IntN(2000)) * time.Millisecond) // an outage of this length is the fault
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Note("the database is back")
		if rounds%20 == 1 {
			a = w.StartEngine(fmt.Sprintf("a%d", rounds), "")
		}
		time.Sleep(time.Duration(least+w.Rng.IntN(spread)) * time.Millisecond) // until the next one
	}
	rate := stop()
	w.AwaitRest(10 * time.Minute)
	if b.Ended() {
		t.Errorf("the engine ended because its database did:\n%s", b.Output())
	}
	v := w.Judge()
	report.count(fmt.Sprintf("T4 database restarts, %d runs a second", rate), rounds, v, began)
}

// lead makes the way lead to another server, and cuts the connections to the old one.
func (y *way) lead(c *pgtest.Cluster) {
	y.w.T.Helper()
	u, err := url.Parse(c.DSN)
	if err != nil {
		y.w.T.Fatal(err)
	}
	if err := y.proxy.Update(&toxiproxy.Proxy{Listen: y.proxy.Listen, Upstream: u.Host, Enabled: true}); err != nil {
		y.w.T.Fatal(err)
	}
	y.w.Note("the address leads to %s", u.Host)
}

// T5: a synchronous standby is promoted under load: nothing that was confirmed
// is lost, and the old primary, alive and writable, receives no commits any more
// (S48, I1 I3).
func TestSyncFailover(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var sum Verdict
	rounds := times(1, 50)
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			w, y, primary, standby := replicated(t, true, uint64(round))
			a := w.StartEngine("a", "")
			w.StartEngine("b", "")
			w.awaitCalls(3)
			if round%2 == 0 {
				w.Note("the primary crashes")
				if err := primary.StopImmediate(); err != nil {
					t.Fatal(err)
				}
			}
			if err := standby.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Note("the standby is promoted")
			y.lead(standby)
			if round%2 == 1 { // an address leads to the old primary once more
				time.Sleep(lease / 2)
				y.lead(primary)
				time.Sleep(2 * lease)
				y.lead(standby)
			}
			w.AwaitRest(2 * time.Minute)
			if a.Ended() {
				t.Errorf("the engine ended:\n%s", a.Output())
			}
			sum.add(w.Judge())
		})
	}
	report.count("T5 synchronous standby promoted", rounds, sum, began)
}

// T5: an asynchronous standby that lags is promoted: confirmed commits are lost. Engines
// that know of such a commit stop with an error (S48).
func TestAsyncFailoverIsNoticed(t *testing.T) {
	t.Parallel()
	began := time.Now()
	rounds := times(1, 50)
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			w, y, primary, standby := replicated(t, false, uint64(round))
			if err := standby.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Note("the standby hears nothing any more")
			a := w.StartEngine("a", "")
			w.awaitCalls(6)
			time.Sleep(lease) // a tick has to tell the engine the position in the server's log
			if round%2 == 0 {
				if err := primary.StopImmediate(); err != nil {
					t.Fatal(err)
				}
			}
			if err := standby.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			y.lead(standby)
			code, err := a.Wait(patience(60 * time.Second))
			if err != nil {
				t.Fatalf("the engine goes on as if nothing were lost: %v\n%s", err, a.Output())
			}
			if out := a.Output(); code != 1 || !strings.Contains(out, "lost") {
				t.Errorf("exit %d, want 1 and the reason\n%s", code, out)
			}
		})
	}
	report.count("T5 asynchronous standby promoted, loss noticed", rounds, Verdict{}, began)
}

// replicated makes a world whose database has a standby, behind an address that
// can be moved, with runs accepted.
func replicated(t *testing.T, sync bool, seed uint64) (*World, *way, *pgtest.Cluster, *pgtest.Cluster) {
	t.Helper()
	primary, dsn := ownCluster(t)
	standby, err := primary.Standby(t.Context(), sync)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, standby) })
	y, behind := newAddress(t, dsn)
	w := NewWorld(t, programs, behind, seed)
	y.w = w
	for range 6 {
		w.Submit(NewFlow(w.Rng, w.URL), 1)
	}
	w.Submit(everything(w.URL), 2)
	return w, y, primary, standby
}
