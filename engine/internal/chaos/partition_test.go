package chaos

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

// A way is a connection to the database that faults can strike.
type way struct {
	w     *World
	proxy *toxiproxy.Proxy
	DSN   string
	n     int
}

// newWay puts a proxy in front of the world's database.
func newWay(t testing.TB, w *World) *way {
	t.Helper()
	y, _ := newAddress(t, w.DSN)
	y.w = w
	return y
}

// newAddress puts a proxy in front of a database and returns its DSN too.
func newAddress(t testing.TB, dsn string) (*way, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	y := &way{proxy: toxiproxy.NewProxy(server, "database", fmt.Sprintf("127.0.0.1:%d", port), u.Host)}
	if err := y.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(y.proxy.Stop)
	u.Host = y.proxy.Listen
	y.DSN = u.String()
	return y, y.DSN
}

// strike poisons the way for a while. toxic is what toxiproxy calls it with its
// attributes, as JSON.
func (y *way) strike(kind, stream, attributes string, d time.Duration) {
	y.w.T.Helper()
	y.n++
	name := fmt.Sprintf("t%d", y.n)
	y.w.Note("%s %s %s for %s", kind, stream, attributes, d)
	_, err := y.proxy.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":%s}`, name, kind, stream, attributes)))
	if err != nil {
		y.w.T.Fatal(err)
	}
	time.Sleep(d) // cutting the network for this long is the fault
	if err := y.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
		y.w.T.Fatal(err)
	}
	y.w.Note("%s is over", kind)
}

// T2: the network between an engine and its database is cut, resets connections, is slow,
// and works in one direction only, for less and for more than a lease
// (S3 S5 S48, I2 I3 I8).
func TestPartition(t *testing.T) {
	t.Parallel()
	began := time.Now()
	faults := []struct{ kind, stream, attributes string }{
		{"timeout", "downstream", `{"timeout":0}`}, // answers are lost
		{"timeout", "upstream", `{"timeout":0}`},   // queries are lost
		{"reset_peer", "downstream", `{"timeout":0}`},
		{"latency", "downstream", `{"latency":300,"jitter":250}`},
		{"bandwidth", "downstream", `{"rate":1}`},
		{"slicer", "upstream", `{"average_size":64,"size_variation":32,"delay":2000}`},
		{"limit_data", "downstream", `{"bytes":2000}`},
	}
	var mu sync.Mutex
	var sum Verdict
	rounds := times(1, 5)
	t.Run("faults", func(t *testing.T) {
		for _, fault := range faults {
			for round := range rounds {
				t.Run(fmt.Sprintf("%s-%s/%d", fault.kind, fault.stream, round), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, uint64(round))
					y := newWay(t, w)
					w.Submit(everything(w.URL), 3)
					w.signal("before")
					a := w.StartEngineOn(y.DSN, "a", "")
					w.awaitCalls(1)
					for _, held := range []float64{0.5, 2, 1, 10}[:min(4, times(2, 4))] {
						y.strike(fault.kind, fault.stream, fault.attributes, time.Duration(float64(lease)*held))
						w.signal(fmt.Sprint("after ", held))
					}
					w.StartEngine("b", "")
					w.AwaitRest(5 * time.Minute)
					if a.Ended() {
						t.Errorf("the engine behind the bad network ended:\n%s", a.Output())
					}
					v := w.Judge()
					mu.Lock()
					defer mu.Unlock()
					sum.add(v)
				})
			}
		}
	})
	if sum.Signals == 0 {
		t.Error("void: no signal has ended a wait")
	}
	report.count("T2 partition", rounds*len(faults), sum, began)
}

// T3: connections are cut at any byte of a commit's statement or answer, until the
// outcome of a given number of commits was unknown (I1 I4 I9).
func TestCommitUnknown(t *testing.T) {
	t.Parallel()
	began := time.Now()
	const worlds = 8
	goal := times(4, 10000/worlds)
	var mu sync.Mutex
	var sum Verdict
	var cuts, unknown int
	t.Run("worlds", func(t *testing.T) {
		for i := range min(worlds, times(1, 7*worlds)) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(3+i))
				c, u := w.cutUntil(goal)
				v := w.Judge()
				mu.Lock()
				defer mu.Unlock()
				sum.add(v)
				cuts, unknown = cuts+c, unknown+u
			})
		}
	})
	report.count(fmt.Sprintf("T3 commit outcome unknown (%d cuts)", cuts), unknown, sum, began)
}

// cutUntil lets an engine work over connections that are cut, until the outcome of goal
// commits was unknown to it. Then it waits until every run is at rest. It returns the
// number of cuts, and of commits with an unknown outcome.
func (w *World) cutUntil(goal int) (cuts, unknown int) {
	w.T.Helper()
	y := newWay(w.T, w)
	a := w.StartEngineOn(y.DSN, "a", "", "--log", "warn") // so that all of it is kept
	var open []Run
	calls := 0
	for ; unknown < goal; cuts++ {
		if cuts%10 == 0 && w.stillOpen(&open) < 10 { // always some open runs to commit, but not more and more
			open = append(open, w.Submit(steady(w.URL), 10)...)
			for range 4 {
				open = append(open, w.Submit(NewFlow(w.Rng, w.URL), 1)...)
			}
		}
		// A connection that works is cut, not one that is being made.
		for late := time.Now().Add(2 * time.Second); time.Now().Before(late); time.Sleep(5 * time.Millisecond) { // between two looks
			if n, err := w.Ledger.Count(w.T.Context()); err == nil && n > calls {
				calls = n
				break
			}
		}
		stream, bytes := "downstream", w.Rng.IntN(200) // an answer has about 200 bytes
		if w.Rng.IntN(4) == 0 {
			stream, bytes = "upstream", 50+w.Rng.IntN(4000)
		}
		// Each connection is cut after this number of bytes.
		y.strike("limit_data", stream, fmt.Sprintf(`{"bytes":%d}`, bytes), time.Duration(10+w.Rng.IntN(90))*time.Millisecond)
		time.Sleep(time.Duration(w.Rng.IntN(100)) * time.Millisecond) // time for some commits
		if cuts%5 == 4 {
			unknown = strings.Count(a.Output(), "the outcome of a commit is not known, asking")
		}
		if cuts > 100+20*goal {
			w.T.Fatalf("void: of %d cuts %d left the outcome of a commit unknown", cuts, unknown)
		}
	}
	w.AwaitRest(10 * time.Minute)
	return cuts, unknown
}

// stillOpen removes runs at rest from a list, and returns how many are left.
func (w *World) stillOpen(runs *[]Run) int {
	heads, err := w.heads(*runs)
	if err != nil { // ask again later
		return len(*runs)
	}
	*runs = slices.DeleteFunc(*runs, func(r Run) bool {
		head, there := heads[r.ID]
		return there && (head.State.Final() || head.State.NeedsHuman())
	})
	return len(*runs)
}

// steady has a step end ten times a second, for a while.
func steady(url string) Flow {
	var steps []flowStep
	for i := range 40 {
		s := Step{Name: fmt.Sprintf("s%d", i), Action: "do"}
		if i > 0 {
			s.After = []int{i - 1}
		}
		steps = append(steps, flowStep{s, "linger:100ms", "", ""})
	}
	return flowOf(url, head, steps...)
}
