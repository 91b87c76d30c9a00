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

// maxShared limits the product of two numbers: the number of workflows, and the number of
// variables and locals outside of workflows. For each workflow, the engine checks all these
// variables and locals again.
const maxShared = 1_000_000

// tooMany returns whether the module has too many workflows: more than maxWorkflows, or more than
// maxShared allows. If so, it also reports an error.
func (d *decoder) tooMany(blocks []*syntax.Block) bool {
	n := 0
	for _, b := range blocks {
		if b.Kind == "workflow" {
			n++
		}
	}
	shared := len(d.m.Variables) + len(d.m.locals)
	if d.m.Older || n <= maxWorkflows && n*shared <= maxShared {
		return false
	}
	d.Errorf(hcl.Range{}, "Too many workflows",
		"The module declares %d workflows and %d variables and local values for all of them. It may declare at most %d workflows, and workflows times such declarations may be at most %d. Split the module.",
		n, shared, maxWorkflows, maxShared)
	return true
}

const maxWorkflows = 10_000
