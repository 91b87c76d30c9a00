package sim

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// notifyBlocksOf returns the numbers of the notify blocks that announce a state of the runs of a
// workflow. For the workflow of a group, these are the notify blocks of the workflow that contains
// the group.
func notifyBlocksOf(k *kin, flow *dsl.Workflow, state string) (numbers []int) {
	for _, block := range flow.Notifications(state) {
		name := block.Flow.Notifies + ".notify" // name of the first block; the next one has NAME.notify.2
		for i, number := range k.moduleOf(flow).Flows[block.Flow.Notifies].Bells {
			if i > 0 {
				name = fmt.Sprintf("%s.notify.%d", block.Flow.Notifies, i+1)
			}
			if name == block.Flow.Name {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}

// namedBy returns the name with which a notification names a run. This is the name of the run
// itself. But for the run of a group, it is the name of the nearest run around it that is not the
// run of a group.
func namedBy(w *world, s *runLog) string {
	for p := s; p != nil; p = w.stories[p.kin.parent] {
		if s = p; p.flow == nil || !strings.Contains(strings.TrimPrefix(p.flow.Name, "kit."), ".") {
			break
		}
	}
	return s.name
}
