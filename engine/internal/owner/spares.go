package owner

import (
	"github.com/saga-engine/engine/engine/story"
)

// spares are what a shard has used and fills again, so that a decision allocates
// little.
type spares struct {
	facts [][]story.Fact   // were told
	flown []*pendingCommit // have landed and were acted on
}

// blankFacts returns an empty list of facts: those of a transition are made for
// observers only, and are much larger than all else it needs.
func (sp *spares) blankFacts() []story.Fact {
	if n := len(sp.facts); n > 0 {
		list := sp.facts[n-1]
		sp.facts = sp.facts[:n-1]
		return list
	}
	return make([]story.Fact, 0, 4)
}

// toldFacts keeps a list whose facts have been told.
func (sp *spares) toldFacts(f *pendingCommit) {
	const most, longest = 256, 16 // what lies idle is bounded
	list := f.facts
	f.facts = nil
	if list == nil || cap(list) > longest || len(sp.facts) == most {
		return
	}
	clear(list)
	sp.facts = append(sp.facts, list[:0])
}

// blankCommit returns a pendingCommit with nothing in it.
func (sp *spares) blankCommit() *pendingCommit {
	if n := len(sp.flown); n > 0 {
		f := sp.flown[n-1]
		sp.flown = sp.flown[:n-1]
		return f
	}
	return &pendingCommit{}
}

// doneWith keeps a pendingCommit that has landed and was acted on. It has no other
// user any more: the committer is done with it once it has told the shard.
func (sp *spares) doneWith(f *pendingCommit) {
	const most = 256 // what lies idle is bounded
	if len(sp.flown) == most {
		return
	}
	commands := f.commands
	if clear(commands); cap(commands) > 16 {
		commands = nil
	}
	*f = pendingCommit{commands: commands[:0]}
	sp.flown = append(sp.flown, f)
}
