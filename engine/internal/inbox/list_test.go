package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/saga-engine/engine/engine/store/events"
)

// idsOf returns the data of an event with n keys.
func idsOf(n int) (data string, keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("k%05d", i))
	}
	list, err := json.Marshal(keys)
	if err != nil {
		panic(err)
	}
	return `{"ids": ` + string(list) + `, "others": {}}`, keys
}

// event returns the event with this id.
func (d *desk) event(id string) events.Event {
	d.Helper()
	all, err := d.ListEvents(d.Context(), false, 1000)
	if err != nil {
		d.Fatal(err)
	}
	for _, e := range all {
		if e.ID == id {
			return e
		}
	}
	d.Fatalf("event %s is not in the inbox", id)
	return events.Event{}
}

// scans makes scans until no event waits.
func (d *desk) scans(x *Inbox) (n int) {
	d.Helper()
	for {
		found, err := x.Scan(d.Context())
		if err != nil {
			d.Fatalf("scan: %v", err)
		}
		if found == 0 {
			return n
		}
		n++
	}
}

// S91: an event starts a run for each key. Keys that can start no run are recorded, and stop no others.
func TestKeysBecomeRuns(t *testing.T) {
	d := newDesk(t)
	d.send("a", "keys", `{"ids": {"o-1": {"total": 2}, "o-2": {"total": 0}, "o-3": {"total": "x"}, "o 4": {}, "o-5": {}}, "others": {"x": "y", "z": []}}`)
	d.send("b", "keys", `{"ids": ["p-1", "p-1", 7], "others": {}}`)
	d.send("c", "keys", `{"live": false, "others": {}}`)
	d.send("d", "keys", `{"others": {}}`)
	d.send("e", "keys", `{"ids": [], "others": {}}`)
	d.answers["batch:a::o-5"], d.lasting = errors.New("a limit is full"), true
	x := d.inbox()
	d.scans(x)
	runs := "batch:a::" + hashed + hash("o 4") + " batch:a::o-1 batch:b::7 batch:b::p-1 other:a::x"
	d.want(runs, "", map[string]string{"a": `workflow batch: 3 of 5 keys could start no run; "o-2": `, "d": "workflow batch: "})
	if why := d.event("a").Quarantined; !strings.Contains(why, "total must be above 0") || !strings.Contains(why, `"o-5": a limit is full`) || !strings.Contains(why, `workflow other: 1 of 2 keys could start no run; "z": `) {
		t.Errorf("the reason is %s", why)
	}
	r := d.runs["batch:a::o-1"]
	if got := string(r.Vars.JSON()); got != `{"id":"o-1","region":"eu","total":2}` || r.By != "ann" || r.Trigger != "event keys a" {
		t.Errorf("run = %s by %s, trigger %q", got, r.By, r.Trigger)
	}
	bad, err := d.FailedKeys(t.Context(), events.KeyFilter{Seq: d.event("a").Seq, Workflow: "batch", Limit: 10})
	if err != nil || len(bad) != 3 || bad[0].Key != "o-2" || bad[1].Key != "o-3" || bad[2].Key != "o-5" {
		t.Errorf("failed keys = %+v, %v", bad, err)
	}
}

// A retry tries only the keys that have failed, even if retention has removed the other runs.
func TestRetriedKeys(t *testing.T) {
	d := newDesk(t)
	data, keys := idsOf(2*keyPage + 10)
	d.send("a", "keys", data)
	for _, k := range keys[:keyPage+3] {
		d.answers[KeyRunName("batch", "a", k)] = errors.New("a limit is full")
	}
	d.lasting = true
	x := d.inbox()
	d.scans(x)
	d.want(strings.Join(names("a", keys[keyPage+3:]), " "), "", map[string]string{"a": fmt.Sprintf("%d of %d keys could start no run", keyPage+3, len(keys))})
	clear(d.runs)
	for _, k := range keys[1 : keyPage+3] {
		delete(d.answers, KeyRunName("batch", "a", k))
	}
	d.pages = nil
	for range 2 {
		if found, err := d.RetryEvent(t.Context(), "a"); err != nil || !found {
			t.Fatalf("retry: %t, %v", found, err)
		}
		d.scans(x)
		d.want(strings.Join(names("a", keys[1:keyPage+3]), " "), "", map[string]string{"a": fmt.Sprintf("1 of %d keys could start no run; %q: a limit is full", len(keys), keys[0])})
	}
	if !slices.Equal(d.pages, []int{keyPage, 3, 1}) {
		t.Errorf("pages = %v", d.pages)
	}
	clear(d.answers)
	if _, err := d.RetryEvent(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	d.scans(x)
	d.want(strings.Join(names("a", keys[:keyPage+3]), " "), "", nil)
}

// names returns the names of the runs of keys.
func names(event string, keys []string) (out []string) {
	for _, k := range keys {
		out = append(out, KeyRunName("batch", event, k))
	}
	return out
}

// A list that cannot be submitted now waits until the claim is over, and is not skipped.
func TestKeysThatCannotBeToldNow(t *testing.T) {
	d := newDesk(t)
	d.send("a", "keys", `{"ids": ["k-1", "k-2"], "others": {}}`)
	d.answers["batch:a::k-2"] = errors.New("the store does not answer")
	x := d.inbox()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("batch:a::k-1", "a", nil)
	if found, err := x.Scan(t.Context()); err != nil || found != 0 {
		t.Errorf("the event came back at once: %d, %v", found, err)
	}
	clear(d.answers)
	d.pass()
	d.scans(x)
	d.want("batch:a::k-1 batch:a::k-2", "", nil)
}

// S91: engines die at each of their calls in the middle of a list. The next engine continues with the
// page, and each key starts one run.
func TestCrashInAList(t *testing.T) {
	data, keys := idsOf(2*keyPage + 10)
	for _, after := range []bool{false, true} {
		for at, last := 1, false; !last; at++ {
			t.Run(fmt.Sprintf("call %d after %t", at, after), func(t *testing.T) {
				d := newDesk(t)
				d.send("a", "keys", data)
				d.send("b", "order.placed", `{"id": "o-1", "total": 13}`)
				d.dies, d.after = at, after
				x := d.inbox()
				var err error
				for found := 1; found > 0 && err == nil; {
					found, err = x.Scan(t.Context())
				}
				last = d.calls < at
				if err == nil && !last {
					t.Error("the engine did not die")
				}
				d.dies = 0
				d.pass()
				d.scans(d.inbox())
				d.want(strings.Join(append([]string{"audit:b"}, names("a", keys)...), " "), "", nil)
				for name, n := range d.started {
					if n != 1 {
						t.Errorf("%s was started %d times", name, n)
					}
				}
				if most := slices.Max(d.pages); most > keyPage {
					t.Errorf("a page has %d runs", most)
				}
			})
		}
	}
}

// S91: an event with 100,000 keys is worked on in pages, by several engines, and other events do not
// wait for it.
func TestLongList(t *testing.T) {
	d := newDesk(t)
	const n = 100_000
	data, _ := idsOf(n)
	if len(data) > events.MaxDataBytes {
		t.Fatalf("the data have %d bytes", len(data))
	}
	d.send("long", "keys", data)
	d.send("short", "order.placed", `{"id": "o-1", "total": 5}`)
	first := d.inbox()
	d.scan(first)
	if !first.more || d.runs["order:short"].Name == "" || len(d.runs) != keyPage+2 {
		t.Fatalf("after the first scan: more = %t, %d runs", first.more, len(d.runs))
	}
	var group sync.WaitGroup
	for _, x := range []*Inbox{first, d.inbox()} {
		group.Go(func() {
			for { // a scan may find nothing because the other engine has claimed the event
				switch found, err := x.Scan(t.Context()); {
				case err != nil:
					t.Error(err)
					return
				case found > 0:
					continue
				}
				if all, err := d.ListEvents(t.Context(), false, 10); err != nil || len(all) == 0 {
					return
				}
			}
		})
	}
	group.Wait()
	d.want0(n + 2)
	if most := slices.Max(d.pages); most > keyPage || len(d.pages) != n/keyPage {
		t.Errorf("%d pages, the largest with %d runs", len(d.pages), most)
	}
}

// want0 checks the number of runs, and that no event is left.
func (d *desk) want0(runs int) {
	d.Helper()
	if all, err := d.ListEvents(d.Context(), false, 10); err != nil || len(all) != 0 || len(d.runs) != runs {
		d.Errorf("%d runs, %d events are left, %v; want %d runs", len(d.runs), len(all), err, runs)
	}
}

// S91: an event opens a firing with the values of its parameters, and starts no run itself.
func TestEventOpensFiring(t *testing.T) {
	d := newDesk(t)
	d.send("a", "closed", `{"day": "2026-01-02"}`)
	d.send("b", "closed", `{"day": "never"}`)
	d.send("c", "closed", `{}`)
	d.send("d", "closed", `{"day": 1}`)
	d.answers["d"] = errors.New("the store does not answer")
	x := d.inbox()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("", "d", map[string]string{"c": "workflow batch: "})
	if len(d.fired) != 1 {
		t.Fatalf("firings = %+v", d.fired)
	}
	f := d.fired[0]
	if f.Workflow != "batch" || f.Block != "closed" || f.Event != "a" || f.By != "ann" || f.At.IsZero() || f.Definition == 0 || *f.Args["day"] != "2026-01-02" {
		t.Errorf("firing = %+v", f)
	}
	d.lasting = true
	d.pass()
	d.scan(x)
	d.want("", "", map[string]string{"c": "workflow batch: ", "d": "does not answer"})
}

// The names of the runs of keys fit every store, two keys never share a name, and no name is one of a
// run of RunName. All names of an event begin alike.
func TestKeyRunName(t *testing.T) {
	long := strings.Repeat("x", 90)
	seen := map[string]string{}
	add := func(name, of string) {
		t.Helper()
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s have the name %s", other, of, name)
		}
		seen[name] = of
		if len(name) > 100 {
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
	ids := []string{"a", "a:", "a:b", "a::b", ":a", "é", long, long + "y", "x.notify.y", hash("order:é"), ":" + hash("order:é")}
	for _, workflow := range []string{"order", strings.Repeat("w", 95), strings.Repeat("w", 96)} {
		for _, id := range ids {
			add(RunName(workflow, id), workflow+" "+id)
			for _, key := range []string{"a", "b", ":b", "b:", "é", long, "k-1", hashed + hash("é"), "x.notify.y"} {
				name := KeyRunName(workflow, id, key)
				add(name, workflow+" "+id+" "+key)
				if !strings.HasPrefix(name, KeysOf(workflow, id)) {
					t.Errorf("%s does not begin with %s", name, KeysOf(workflow, id))
				}
			}
		}
	}
	if name := KeyRunName("order", "evt-7", "o-1"); name != "order:evt-7::o-1" {
		t.Errorf("name = %s", name)
	}
}
