package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fault makes calls of one kind fail or take longer.
type fault struct {
	Times      int           // only the first Times calls with the same key get the fault; 0 = all
	Status     int           // HTTP status of the answer; 0 = the usual answer
	RetryAfter int           // Retry-After header, in seconds; 0 = none
	Delay      time.Duration // pause before the answer
	After      bool          // true = the fault comes after the effect; false = before it
}

// faults holds the fault of each kind of call.
type faults struct {
	mu     sync.Mutex // protects the field below
	byKind map[string]fault
}

func newFaults() *faults { return &faults{byKind: map[string]fault{}} }

// set parses settings such as "times=2,status=503,retry_after=1,delay=100ms,after=true". It
// stores them as the fault of the calls of the given kind. Empty settings remove this fault.
func (f *faults) set(kind, settings string) error {
	if _, ok := operations[kind]; !ok {
		return fmt.Errorf("there is no kind %q, only %s", kind, strings.Join(slices.Sorted(maps.Keys(operations)), ", "))
	}
	var x fault
	for _, part := range strings.FieldsFunc(settings, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch name {
		case "times":
			x.Times, err = strconv.Atoi(value)
		case "status":
			x.Status, err = strconv.Atoi(value)
			if err == nil && (x.Status < 400 || x.Status > 599) {
				err = fmt.Errorf("%d is no error status", x.Status)
			}
		case "retry_after":
			x.RetryAfter, err = strconv.Atoi(value)
		case "delay":
			x.Delay, err = time.ParseDuration(value)
		case "after":
			x.After, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("unknown setting")
		}
		if err != nil {
			return fmt.Errorf("fault %s: %s: %w", kind, name, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if x == (fault{}) {
		delete(f.byKind, kind)
		return nil
	}
	f.byKind[kind] = x
	return nil
}

// of returns the fault for a call of the given kind. The parameter `arrival` is the number of calls
// with the same key so far, including this call. The zero fault changes nothing.
func (f *faults) of(kind string, arrival int) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.byKind[kind]
	if x.Times > 0 && arrival > x.Times {
		return fault{}
	}
	return x
}
