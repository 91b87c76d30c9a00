//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Enabled says whether this build can inject faults.
const Enabled = true

// A fault says what happens when a goroutine reaches a point.
type fault struct {
	kill, stop bool
	pause      time.Duration
	at         int // N = the fault is injected when the point is reached for the N-th time
}

// table returns the faults that the environment variable ENGINE_FAILPOINTS sets. It reads the
// variable once.
var table = sync.OnceValue(func() *faults {
	t := &faults{set: map[string]fault{}, passed: map[string]int{}}
	for _, entry := range strings.Split(os.Getenv("ENGINE_FAILPOINTS"), ";") {
		if entry == "" {
			continue
		}
		name, f, err := parse(entry)
		if err != nil {
			panic(err)
		}
		t.set[name] = f
	}
	if path := os.Getenv("ENGINE_FAILPOINTS_LOG"); path != "" {
		log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		t.log = log
	}
	return t
})

type faults struct {
	mu     sync.Mutex // protects the fields below
	set    map[string]fault
	passed map[string]int
	log    *os.File // file to which the name of each reached point is written; nil = none
}

func parse(entry string) (string, fault, error) {
	name, what, ok := strings.Cut(entry, "=")
	what, nth, counted := strings.Cut(what, "@")
	f := fault{at: 1}
	var err error
	if counted {
		f.at, err = strconv.Atoi(nth)
	}
	switch verb, value, _ := strings.Cut(what, "="); {
	case err != nil:
	case verb == "kill":
		f.kill = true
	case verb == "stop":
		f.stop = true
	case verb == "pause":
		f.pause, err = time.ParseDuration(value)
	default:
		ok = false
	}
	if !ok || err != nil {
		return "", fault{}, fmt.Errorf("failpoint: cannot read %q", entry)
	}
	return name, f, nil
}

// Hit injects the fault that the environment variable ENGINE_FAILPOINTS sets for the point `name`,
// if any. The code calls Hit at each point where a fault can be injected.
func Hit(name string) {
	t := table()
	t.mu.Lock()
	t.passed[name]++
	n := t.passed[name]
	if n == 1 && t.log != nil {
		fmt.Fprintln(t.log, name)
	}
	f, ok := t.set[name]
	t.mu.Unlock()
	if !ok || n != f.at {
		return
	}
	switch {
	case f.kill:
		die()
	case f.stop:
		freeze()
	default:
		time.Sleep(f.pause)
	}
}

// HitEvent is called at each point where an event is handled. It does the work of Hit, with a
// separate fault and counter for each type of event.
func HitEvent(name string, event any) {
	Hit(name + "/" + reflect.TypeOf(event).Name())
}

// purposes holds the names that HitPurpose uses. The index is the number of the sdk.Purpose.
var purposes = [...]string{"invalid", "do", "undo", "lookup"}

// HitPurpose is called at each point where a call is handled. It does the work of Hit, with a
// separate fault and counter for each purpose of a call.
func HitPurpose(name string, purpose uint8) {
	Hit(name + "/" + purposes[min(int(purpose), len(purposes)-1)])
}
