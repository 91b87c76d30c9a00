package decl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A moved block says that a step was renamed from the name `from` to the name `to`.
type moved struct {
	from, to string
	where    hcl.Range // position of the block
	toAt     hcl.Range // position of the attribute `to`
	fromAt   hcl.Range // position of the attribute `from`
}

// A moveDecoder reads moved blocks.
type moveDecoder struct{ *decoder }

// moves reads the moved blocks, and sets the field Moved of each workflow. The caller must have
// read the workflows before.
func (d moveDecoder) moves(blocks []*syntax.Block) {
	byFrom, byTo := map[string]moved{}, map[string]moved{}
	for _, b := range blocks {
		m := moved{where: b.DefRange}
		var okFrom, okTo bool
		m.from, m.fromAt, okFrom = d.stepName(b, "from")
		m.to, m.toAt, okTo = d.stepName(b, "to")
		if !okFrom || !okTo {
			continue
		}
		first, dup := byFrom[m.from]
		if !dup {
			first, dup = byTo[m.to]
		}
		switch {
		case m.from == m.to:
			d.Errorf(m.where, "Step moved to itself", "from and to are both step.%s. Remove the block.", m.from)
		case dup && first.from == m.from:
			d.Errorf(m.where, "Step moved twice", "Step %q is moved already at %s. A step can have only one new name.", m.from, report.Range(first.where))
		case dup:
			d.Errorf(m.where, "Two steps moved to one", "The block at %s moves step %q to step %q, too. Only one step can get this name.", report.Range(first.where), first.from, m.to)
		default:
			byFrom[m.from], byTo[m.to] = m, m
		}
	}
	for _, name := range sorted.Keys(byFrom) {
		d.follow(name, byFrom)
	}
}

// follow follows the moved blocks from the step `from` to its present name. For example, the blocks
// that move `a` to `b` and `b` to `c` give the step `a` the present name `c`. The method `follow`
// adds the result to each workflow that has a step with the present name. It reports an error if no
// workflow has such a step, if the blocks form a cycle, or if one of these workflows still has the
// step `from`.
func (d moveDecoder) follow(from string, byFrom map[string]moved) {
	m := byFrom[from]
	to, steps := m.to, 0
	for next, ok := byFrom[to]; ok; next, ok = byFrom[to] {
		if to = next.to; to == from || steps > len(byFrom) {
			if to == from {
				d.Errorf(m.where, "Moved blocks form a cycle", "Step %q is moved to step %q, and from there back to %q. Keep only the blocks that lead to the present name.", from, m.to, from)
			}
			return // if `from` is not in the cycle, other calls of `follow` report the cycle
		}
		steps++
	}
	found := false
	var names []string
	for _, w := range d.m.Workflows {
		names = append(names, sorted.Keys(w.Index)...)
		if _, has := w.Index[to]; !has || w.Twin {
			continue
		}
		found = true
		if i, has := w.Index[from]; has {
			d.Errorf(m.fromAt, "Moved step still exists", "Workflow %q still has step %q, at %s, so it was not moved. Remove that step or this block.",
				w.Name, from, report.Range(w.Steps[i].Where))
			continue
		}
		if w.Moved == nil {
			w.Moved = map[string]string{}
		}
		w.Moved[from] = to
	}
	if !found && !d.m.Partial {
		d.Errorf(m.toAt, "Unknown step in moved", "No workflow of the module has a step %q.%s", to, diag.DidYouMean(to, names))
	}
}

// stepName reads an attribute of a moved block. The value of the attribute must be step.NAME. It
// returns the name and the position of the attribute. After an error, ok is false.
func (d moveDecoder) stepName(b *syntax.Block, attr string) (name string, at hcl.Range, ok bool) {
	e := b.Attr(attr)
	if e == nil { // the Reader has reported that the attribute is missing
		return "", b.DefRange, false
	}
	if name, ok = stepTraversal(e); ok {
		return name, e.Range, true
	}
	e.Bad = true
	d.Errorf(e.Range, "Invalid step in moved", "%s is written step.NAME, also for a group, without quotes. Variables and outputs cannot be moved: give the new variable a default.", attr)
	return "", e.Range, false
}

// stepTraversal returns the name in a reference of the form step.NAME.
func stepTraversal(e *eval.Expr) (string, bool) {
	t := e.Traversal()
	if len(t) != 2 || t.RootName() != "step" {
		return "", false
	}
	attr, ok := t[1].(hcl.TraverseAttr)
	return attr.Name, ok && syntax.ValidName(attr.Name)
}
