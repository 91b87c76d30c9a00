package keyrace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/saga-engine/engine/engine/store/naming"
)

// maxShown is how many operations the function `explain` shows at most: the last ones before the
// failure.
const maxShown = 12

// explain says where the search for an order failed. It shows the last operations of the longest
// order that was found, the state after them, and all candidates for the next operation. In this
// state, no candidate explains its answer.
func explain(scope naming.Scope, history []porcupine.Operation) string {
	got, info := porcupine.CheckOperationsVerbose(model(scope), history, giveUp)
	if got != porcupine.Illegal {
		return ""
	}
	var order []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, found := range part {
			if len(found) > len(order) {
				order = found
			}
		}
	}
	var (
		b     strings.Builder
		state keyContext
		// The variable `last` is a time: the earliest end of all operations that are not in the
		// order. An operation is a candidate for the next place in the order if it began before or
		// at this time.
		last int64
	)
	done := make(map[porcupine.Operation]bool, len(order))
	for i, op := range order {
		_, state = state.step(scope, op.Input.(ask), op.Output.(answer))
		done[op] = true
		if i >= len(order)-maxShown {
			fmt.Fprintf(&b, "  %s\n", describe(op))
		}
	}
	fmt.Fprintf(&b, "then the state is %+v, and none of these explains its answer:\n", state)
	var rest []porcupine.Operation
	for _, op := range history {
		if !done[op] {
			rest = append(rest, op)
		}
	}
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range rest {
		if last == 0 || op.Return < last {
			last = op.Return
		}
	}
	for _, op := range rest {
		if op.Call <= last {
			fmt.Fprintf(&b, "  %s\n", describe(op))
		}
	}
	return b.String()
}

func describe(op porcupine.Operation) string {
	names := map[kind]string{submit: "submit", end: "end", reset: "reset", look: "look", replace: "replace", admit: "admit"}
	in := op.Input.(ask)
	return fmt.Sprintf("%9d to %9d µs, client %3d: %s %+v: %+v", op.Call/1000, op.Return/1000, op.ClientId, names[in.kind], in, op.Output.(answer))
}
