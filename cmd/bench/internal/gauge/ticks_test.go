package gauge

import (
	"math"
	"testing"
)

func TestTicks(t *testing.T) {
	before, err := parseTicks("cpu  100 0 50 800 20 5 5 20 7 0\ncpu0 1 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseTicks("cpu  150 0 70 810 30 5 5 30 9 0\n")
	if err != nil {
		t.Fatal(err)
	}
	idle, stolen := after.Since(before)
	if math.Abs(idle-20) > 1e-9 || math.Abs(stolen-10) > 1e-9 {
		t.Errorf("of 100 ticks idle %v %%, stolen %v %%, want 20 and 10: a guest's time is in user time", idle, stolen)
	}
	if idle, stolen := after.Since(after); idle != 0 || stolen != 0 {
		t.Errorf("in no time idle %v, stolen %v", idle, stolen)
	}
	for _, bad := range []string{"", "cpu 1 2 3\n", "cpu a 0 0 0 0 0 0 0 0 0\n", "intr 1 2 3 4 5 6 7 8 9 10\n"} {
		if m, err := parseTicks(bad); err == nil {
			t.Errorf("%q is %+v", bad, m)
		}
	}
	if m, err := ReadTicks(); err != nil || m.all == 0 {
		t.Errorf("this machine: %+v, %v", m, err)
	}
}
