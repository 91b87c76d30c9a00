package store

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/machine"
)

// S53: final states absorb, and no run returns to the queue.
func TestCanBecome(t *testing.T) {
	states := []machine.RunState{1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13}
	for _, from := range states {
		for _, to := range states {
			want := from == to || from == machine.RunSucceeded && to == machine.RunCompensating || !from.Final() && to != machine.RunQueued
			if got := CanBecome(from, to); got != want {
				t.Errorf("%v to %v: %v, want %v", from, to, got, want)
			}
			if !validRunState(from) {
				t.Errorf("%v is no state", from)
			}
		}
	}
	for _, s := range []machine.RunState{0, 8, 9, 14} {
		if validRunState(s) {
			t.Errorf("%v is a state", s)
		}
	}
}

// A run's name is plain; a unique key is any text.
func TestNamesValidate(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, name := range []string{"", "a", "7", "r-1X", "r-", "r-0x", "order/2026:A_b.c-d", long} {
		if err := (Names{Name: name, Workflow: "w", Key: "we ird é'\n"}).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{" ", "we ird", "-a", "--all", "/a", ".a", "_a", ":a", "a\n", "a\x00", "\xff", "é", "a;b", "a'b", "a%b", "a\\b", "$a", "a*", "\x1b[31m", long + "x", "r-1x"} {
		err := (Names{Name: name, Workflow: "w"}).Validate()
		if err == nil || !strings.Contains(err.Error(), "run name") {
			t.Errorf("%q: error=%v, want one about the run name", name, err)
		}
	}
}

// I11: only a run that left nothing behind frees its key.
func TestHoldsKey(t *testing.T) {
	for s, want := range map[machine.RunState]bool{
		machine.RunQueued: true, machine.RunRunning: true, machine.RunWaiting: true, machine.RunPaused: true, machine.RunCompensating: true,
		machine.RunParked: true, machine.RunCompensationFailed: true, machine.RunSucceeded: true,
		machine.RunFailed: false, machine.RunCompensated: false, machine.RunCancelled: false,
	} {
		if got := HoldsKey(s); got != want {
			t.Errorf("%v holds its key: %v, want %v", s, got, want)
		}
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{"": "", "é\n": "é\n", "a\x00b": "a\uFFFDb", "\xff\xfe": "\uFFFD", "ok\xed\xa0\x80": "ok\uFFFD"} {
		if got := CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
}
