package lists

import "testing"

// What a burst took is given back once it is over, and what is dropped is not kept.
func TestListsShrink(t *testing.T) {
	burst := make([]*int, 10*smallList)
	for i := range burst {
		burst[i] = new(int)
	}
	rest := DropFirst(burst, len(burst)-10)
	if len(rest) != 10 || Oversized(cap(rest), len(rest)) {
		t.Errorf("10 of a burst are left with room for %d", cap(rest))
	}
	if rest = DropFirst(rest, 3); len(rest) != 7 || rest[:10][7] != nil || rest[:10][9] != nil {
		t.Errorf("%d are left, and what was dropped is kept: %v", len(rest), rest[:cap(rest)])
	}
	if got := DropFirst(make([]*int, 10*smallList), 10*smallList); got != nil {
		t.Errorf("nothing is left with room for %d", cap(got))
	}
	if got := Blank(burst[:5]); got != nil {
		t.Errorf("5 went through a list with room for %d, which is kept", cap(got))
	}
	if got := Blank(burst); len(got) != 0 || cap(got) != cap(burst) || burst[0] != nil {
		t.Error("a list that is used whole is not kept for the next time, or its items are")
	}
}
