package agents

import "testing"

// No more processes get a place than the engine may run, also where nobody has looked
// before; the further ones of an agent get half of the places.
func TestCrowd(t *testing.T) {
	c := &crowd{most: 4}
	for i, want := range []struct{ further, enters bool }{
		{true, true}, {true, true}, {true, false}, {false, true}, {false, true}, {false, false}, {true, false},
	} {
		if got := c.enter(want.further); got != want.enters {
			t.Errorf("%d: a process enters: %t, want %t (further: %t, %d are running)", i, got, want.enters, want.further, c.running)
		}
	}
	c.leave()
	if !c.enter(false) || c.enter(false) {
		t.Error("one place was given back, and not one process enters")
	}
}
