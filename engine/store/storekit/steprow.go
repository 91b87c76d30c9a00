package storekit

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// StepRowSize is the size in bytes of one stored store.StepRow.
const StepRowSize = 16

// stepEpoch is the time from which stored complete-by times are counted, in microseconds.
// PostgreSQL uses the same epoch, so a view in SQL can easily convert the number to a timestamp.
var stepEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// AppendStepRows appends the stored form of rows to b. Each row has these fields, in big
// endian: node int4, state int1, failures int1, attempt int2, complete-by int8 in
// microseconds since 2000 (0 = none). If the count of failures or the number of the attempt
// is too large for its field, the largest value is stored.
func AppendStepRows(b []byte, rows []store.StepRow) []byte {
	for _, r := range rows {
		b = binary.BigEndian.AppendUint32(b, uint32(r.Node))
		b = append(b, byte(r.State), byte(clamp(r.Failures, math.MaxUint8)))
		b = binary.BigEndian.AppendUint16(b, uint16(clamp(r.Attempt, math.MaxUint16)))
		var by int64
		if !r.CompleteBy.IsZero() {
			by = r.CompleteBy.Sub(stepEpoch).Microseconds()
		}
		b = binary.BigEndian.AppendUint64(b, uint64(by))
	}
	return b
}

func clamp(n, most int) int { return max(0, min(n, most)) }

// DecodeStepRows reverses AppendStepRows. Times are in UTC.
func DecodeStepRows(b []byte) ([]store.StepRow, error) {
	if len(b)%StepRowSize != 0 {
		return nil, fmt.Errorf("engine: step rows of %d bytes are not a multiple of %d", len(b), StepRowSize)
	}
	rows := make([]store.StepRow, 0, len(b)/StepRowSize)
	for ; len(b) > 0; b = b[StepRowSize:] {
		r := store.StepRow{
			Node:     int32(binary.BigEndian.Uint32(b)),
			State:    status.StepState(b[4]),
			Failures: int(b[5]),
			Attempt:  int(binary.BigEndian.Uint16(b[6:])),
		}
		if by := int64(binary.BigEndian.Uint64(b[8:])); by != 0 {
			r.CompleteBy = stepEpoch.Add(time.Duration(by) * time.Microsecond)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// FoldSteps returns the nodes of a run as lists show them, in the order of the node numbers. The
// parameter `changes` contains the changes of the nodes' states, oldest first. Each returned node
// has the state after its last change. A node without a change is pending, so people see each node
// as soon as the run is submitted (S14). For a running node, LockedBy is the parameter `owner`. If
// the parameter `nodes` contains a node twice, FoldSteps uses the later name: a moved run has other
// names for its steps than the definition with which it began.
func FoldSteps(nodes []store.NodeName, owner store.EngineID, changes []store.StepRow) []store.StepView {
	last := make(map[int32]store.StepRow, len(nodes))
	for _, c := range changes {
		last[c.Node] = c
	}
	views := make([]store.StepView, 0, len(nodes))
	latest := make(map[int32]int, len(nodes))
	for i, n := range nodes {
		latest[n.Node] = i
	}
	for i, n := range nodes {
		if latest[n.Node] != i {
			continue
		}
		v := store.StepView{Name: n.Name, StepRow: store.StepRow{Node: n.Node, State: status.StepPending}}
		if c, ok := last[n.Node]; ok {
			v.StepRow = c
		}
		if v.State == status.StepRunning {
			v.LockedBy = owner
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b store.StepView) int { return int(a.Node) - int(b.Node) })
	return views
}
