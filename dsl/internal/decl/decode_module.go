package decl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// module reads the blocks at the top level of all files. It begins with the parts that other
// blocks need: first the results of file(), env() and similar functions, then variables, libraries
// and locals.
func (d *decoder) module(blocks []*syntax.Block) {
	for _, b := range blocks {
		readRecorder{d}.recordReads(b)
	}
	d.m.Agents = map[string]*Agent{}
	d.m.Variables = map[string]*Variable{}
	d.m.locals = map[string]*eval.Local{}
	d.m.Libraries = map[string]*Library{}
	for _, b := range blocks {
		switch b.Kind {
		case "variable":
			if twin := d.variable(b, d.m.Variables, true); twin != nil {
				d.m.TwinVariables = append(d.m.TwinVariables, twin)
			}
		case "library":
			libraryDecoder{d}.library(b)
		case "locals":
			d.m.ownLocals = append(d.m.ownLocals, d.localsBlock(b, d.m.locals, true)...)
		}
	}
	seen := map[string]hcl.Range{}
	var moves []*syntax.Block
	if d.tooMany(blocks) {
		return
	}
	for _, b := range blocks {
		switch b.Kind {
		case "engine":
			d.engine(b)
		case "agent":
			a := d.agent(b)
			actionDecoder{d}.actions(a)
			if first, dup := d.m.Agents[b.Label]; dup {
				d.duplicate(b, first.Where)
				d.m.TwinAgents = append(d.m.TwinAgents, a)
				continue
			}
			d.m.Agents[b.Label] = a
		case "workflow":
			w := d.workflow(b)
			first, dup := seen[b.Label]
			if dup {
				d.duplicate(b, first)
				w.Twin = true
			} else {
				seen[b.Label] = b.DefRange
			}
			d.m.Workflows = append(d.m.Workflows, w)
		case "moved":
			moves = append(moves, b)
		}
	}
	moveDecoder{d}.moves(moves)
}

// maxShared limits the product of two numbers: the number of workflows, groups and steps with a child
// run, and the number of variables and locals outside of workflows. For each workflow and group, the
// engine checks all these variables and locals again, and each child run gets their values.
const maxShared = 1_000_000

// tooMany returns whether the module has too many workflows: more than maxWorkflows, or more than
// maxShared allows. If so, it also reports an error.
func (d *decoder) tooMany(blocks []*syntax.Block) bool {
	n, uses := 0, 0
	for _, b := range blocks {
		if b.Kind == "workflow" {
			n++
			uses += 1 + childStarts(b)
		}
	}
	shared := len(d.m.Variables) + len(d.m.locals)
	if d.m.Older || n <= maxWorkflows && uses*shared <= maxShared {
		return false
	}
	d.Errorf(hcl.Range{}, "Too many workflows",
		"The module declares %d workflows, %d groups and steps with child runs, and %d variables and local values for all of them. It may declare at most %d workflows. All three kinds together, times such variables and local values, may be at most %d. Split the module.",
		n, uses-n, shared, maxWorkflows, maxShared)
	return true
}

// childStarts returns the number of groups and of steps with a child run in a workflow or group.
func childStarts(b *syntax.Block) int {
	n := 0
	for _, c := range b.Blocks {
		switch {
		case c.Kind == "group":
			n += 1 + childStarts(c)
		case c.Kind == "step" && c.Attr("workflow") != nil:
			n++
		}
	}
	return n
}

const maxWorkflows = 10_000
