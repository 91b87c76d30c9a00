package procs

import (
	"runtime"
	"testing"
)

func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "7")
	if Spare(); runtime.GOMAXPROCS(0) != before {
		t.Errorf("%d processors against the environment, want %d", runtime.GOMAXPROCS(0), before)
	}
	t.Setenv("GOMAXPROCS", "")
	if Spare(); runtime.GOMAXPROCS(0) != before+1 {
		t.Errorf("%d processors, want %d", runtime.GOMAXPROCS(0), before+1)
	}
}
