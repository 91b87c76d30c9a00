package model

import (
	"slices"
	"strconv"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Loop says how far a repeat step has come. The other fields of a node, such as Doubt, Done and
// Output, describe only the present iteration. The zero Loop is the first iteration.
type Loop struct {
	Iteration int32 // number of the present iteration, counted from 0
	Calls     int32 // number of calls that the node made before the present iteration
	// An earlier iteration had an effect. Only the undo of the whole step can remove this effect.
	Past bool
	// The present iteration has succeeded, and the next iteration is planned. So a further attempt
	// of the node belongs to the next iteration.
	Between bool
}

// Limits for the values that a repeat step collects.
const (
	// MaxCollected is the largest number of values. The value of an iteration that failed after it
	// had an effect may exceed both limits, because the undo needs this value.
	MaxCollected = 10_000
	// MaxCollectedBytes is the largest size of all values as JSON, in bytes. An output has the same
	// limit.
	MaxCollectedBytes = 16 << 20
)

// A Collected is a list of the values that a repeat step has collected. It holds the last value and
// a pointer to the list without this value. A nil *Collected is the empty list. No code changes a
// Collected after it was made, so several nodes may point to it.
//
// The journal holds each value once. So a patch that was read from a journal holds only the values
// that its record added. The field Count gives the position of each value in the whole list.
type Collected struct {
	Value  dsl.Value
	Before *Collected // the list without this value; nil = it is empty, or the patch leaves it out
	Count  int32      // number of values in the list, with this value
	// Position of this value, counted from 1, among the values that the same record has added.
	Fresh int32
	Bytes int64 // size as JSON of all values in the list, with this value
}

// Len returns the number of values in the list.
func (c *Collected) Len() int32 {
	if c == nil {
		return 0
	}
	return c.Count
}

// Size returns the size of all values as JSON, in bytes.
func (c *Collected) Size() int64 {
	if c == nil {
		return 0
	}
	return c.Bytes
}

// Append returns a list with the values of c and, at the end, the value v. It does not change c.
// The parameter `known` is the number of values that earlier records have added to the list.
func (c *Collected) Append(v dsl.Value, known int32) *Collected {
	n := c.Len() + 1
	return &Collected{Value: v, Before: c, Count: n, Fresh: n - known, Bytes: c.Size() + int64(len(v.JSON()))}
}

// Tail returns at most n values from the end of the list, the oldest first.
func (c *Collected) Tail(n int32) []dsl.Value {
	var values []dsl.Value
	for ; c != nil && n > 0; c, n = c.Before, n-1 {
		values = append(values, c.Value)
	}
	slices.Reverse(values)
	return values
}

// Join returns the list c, followed by the values of the list `patch` whose positions are greater
// than c.Len(). The list `patch` must hold all values at positions from c.Len()+1 to patch.Len().
func (c *Collected) Join(patch *Collected) *Collected {
	if c == nil {
		return patch
	}
	had := c.Len()
	for _, v := range patch.Tail(patch.Len() - had) {
		c = c.Append(v, had)
	}
	return c
}

// Same reports whether two lists hold the same values.
func (c *Collected) Same(o *Collected) bool {
	for ; c != o; c, o = c.Before, o.Before {
		if c == nil || o == nil || c.Count != o.Count || !SameValue(c.Value, o.Value) {
			return false
		}
	}
	return true
}

// List returns all values of the list as one JSON array.
func (c *Collected) List() dsl.Value {
	doc := make([]byte, 0, c.Size()+int64(c.Len())+2)
	doc = append(doc, '[')
	var marks []string
	for i, v := range c.Tail(c.Len()) {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, v.JSON()...)
		for _, m := range v.Sensitive() {
			marks = append(marks, "/"+strconv.Itoa(i)+m)
		}
	}
	slices.Sort(marks)
	return dsl.NewValue(append(doc, ']'), marks, nil)
}

// Present says whether the node has changed something in the remote service, without the effects of
// its child runs. In a repeat step, Present considers only the iteration to which the next attempt
// belongs.
func (n *Node) Present() status.Effect {
	switch {
	case n.Loop.Between:
		return status.EffectNone
	case n.Done:
		return status.EffectDone
	case n.Doubt > 0:
		return status.EffectMaybe
	}
	return status.EffectNone
}

// EndedBy returns the name of the signal that ended the wait of the node, and "" if no signal ended
// it. In a repeat step, the deadline may have ended the wait of the present iteration. Then the
// field Signal may still have the signal of an earlier iteration, but EndedBy returns "".
func (n *Node) EndedBy() string {
	if n.TimedOut {
		return ""
	}
	return n.Signal.Name
}

// Result returns the output of the last call that succeeded, and true. In a repeat step, this call
// may belong to the previous iteration. If no call has succeeded, Result returns false.
func (n *Node) Result() (output StoredValue, known bool) {
	if !n.Known && n.Loop.Iteration > 0 {
		return n.Last, true
	}
	return n.Output, n.Known
}
