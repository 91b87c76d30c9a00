package flows

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// Changes lists the kinds of changes that Variant makes.
var Changes = []string{
	"add a step", "add a group", "add a child", "remove a step", "rename a step", "rename a group", "rename a child", "change a step",
	"another child", "workflow deadline", "add a notify block", "remove a notify block", "change a notify block",
}

// A move holds the old and the new name of a renamed step, for a moved block.
type move struct{ from, to string }

// Variant returns a module with one to four changes. A run of the module m may be moved to the new
// module. The move is refused if the run has begun a step that the new module changes or does not
// have.
//
// Variant makes the names of new steps from the number n, so that a name is unique in m and all its
// variants. So n must be greater than 0. If m is a variant itself, n must be greater than the
// number of m.
func (m *Module) Variant(rng *rand.Rand, n int) *Module {
	next := *m
	next.Flows, next.Files, next.moves, next.Changes = map[string]*Flow{}, maps.Clone(m.Files), slices.Clone(m.moves), nil
	for name, f := range m.Flows {
		own := *f
		own.Steps, own.Uses, own.Bells = slices.Clone(f.Steps), slices.Clone(f.Uses), slices.Clone(f.Bells)
		for i := range own.Steps {
			own.Steps[i].After = slices.Clone(own.Steps[i].After)
		}
		own.at.flow = &own
		next.Flows[name] = &own
	}
	v := &variation{writer: &writer{rng: rng, m: &next, next: 100 * n}, n: n}
	for range 1 + rng.IntN(4) {
		v.change()
	}
	v.movedBlocks()
	return &next
}

// A variation makes the changes of one variant.
type variation struct {
	*writer
	n int // number of the variant
}

// change makes one change, if the chosen workflow or group allows it.
func (v *variation) change() {
	f := v.m.Flows[v.pick(slices.Sorted(maps.Keys(v.m.Flows))...)]
	// Half of the changes are in this workflow, because most runs that people move have it.
	if v.chance(50) {
		f = v.m.Flows["w"]
	}
	switch k := v.rng.IntN(100); {
	case k < 30:
		v.add(f)
	case k < 40:
		v.remove(f)
	case k < 60:
		v.rename(f)
	case k < 78:
		v.alter(f)
	case k < 82:
		v.deadline(f)
	default:
		v.ring(f)
	}
}

// done records a change.
func (v *variation) done(what string) { v.m.Changes = append(v.m.Changes, what) }

// file returns the path of the file with a workflow or a group.
func file(s scope) string {
	if strings.HasPrefix(s.name, "kit.") {
		return "kit/kit.hcl"
	}
	return "main.hcl"
}

// A piece is a part of a file: whole lines.
type piece struct {
	path     string
	from, to int // byte positions
}

// block returns the block of a step, a group or a workflow. The name of the block is unique in the
// file. The block ends with a line that has the indentation of the first line, and only a closing
// brace.
func (v *variation) block(path, name string) piece {
	text := v.m.Files[path]
	at := regexp.MustCompile(`(?m)^( *)(step|group|workflow) "` + name + `" \{$`).FindStringSubmatchIndex(text)
	return v.until(path, at[0], text[at[2]:at[3]])
}

// until returns the block that begins at the position `from`, and whose first line has the given
// indentation.
func (v *variation) until(path string, from int, indent string) piece {
	end := "\n" + indent + "}\n"
	return piece{path, from, from + strings.Index(v.m.Files[path][from:], end) + len(end)}
}

// text returns the text of a piece.
func (v *variation) text(p piece) string { return v.m.Files[p.path][p.from:p.to] }

// replace replaces a piece.
func (v *variation) replace(p piece, with string) {
	text := v.m.Files[p.path]
	v.m.Files[p.path] = text[:p.from] + with + text[p.to:]
}

// home returns the block of a workflow or a group.
func (v *variation) home(s scope) piece {
	return v.block(file(s), s.name[strings.LastIndex(s.name, ".")+1:])
}

// tail returns the line with the output of a workflow or a group. All steps are before this line.
func (v *variation) tail(s scope) piece {
	p := v.home(s)
	text := v.text(p)
	from := strings.LastIndex(text, "\n"+s.indent+"output ") + 1
	return piece{p.path, p.from + from, p.from + from + strings.Index(text[from:], "\n") + 1}
}

// add adds a step, a group or a child run after all others.
func (v *variation) add(f *Flow) {
	s := f.at
	v.b.Reset()
	if i := slices.IndexFunc(f.Steps, func(st Step) bool { return st.Name[0] == 'p' }); i >= 0 {
		v.last(s, i)
	} else {
		v.one(s)
	}
	p := v.tail(s)
	v.replace(p, v.b.String()+s.output())
	v.done(map[byte]string{'g': "add a group", 'c': "add a child"}[f.Steps[len(f.Steps)-1].Name[0]])
	if last := len(v.m.Changes) - 1; v.m.Changes[last] == "" {
		v.m.Changes[last] = "add a step"
	}
}

// remove removes a step or a group on which no other step depends.
func (v *variation) remove(f *Flow) {
	needed := map[int]bool{}
	for _, st := range f.Steps {
		for _, j := range st.After {
			needed[j] = true
		}
	}
	i := v.rng.IntN(len(f.Steps))
	if needed[i] || len(f.Steps) == 1 || f.Steps[i].Name[0] == 'p' {
		return
	}
	gone := f.Steps[i]
	v.replace(v.block(file(f.at), gone.Name), "")
	f.Steps = slices.Delete(f.Steps, i, i+1)
	for k := range f.Steps {
		for j, on := range f.Steps[k].After {
			if on > i {
				f.Steps[k].After[j]--
			}
		}
	}
	for name := range v.m.Flows {
		if gone.Name[0] == 'g' && (name == gone.Child || strings.HasPrefix(name, gone.Child+".")) {
			delete(v.m.Flows, name)
		}
	}
	for name := gone.Name; ; {
		k := slices.IndexFunc(v.m.moves, func(m move) bool { return m.to == name })
		if k < 0 {
			break
		}
		name = v.m.moves[k].from
		v.m.moves = slices.Delete(v.m.moves, k, k+1)
	}
	v.replace(v.tail(f.at), f.at.output())
	v.done("remove a step")
}

// rename gives a step or a group of a workflow another name. Steps in groups, and in workflows of
// libraries, cannot be renamed: their runs are not moved.
func (v *variation) rename(f *Flow) {
	if strings.Contains(f.at.name, ".") {
		return
	}
	st := &f.Steps[v.rng.IntN(len(f.Steps))]
	was, is := st.Name, fmt.Sprintf("%sv%d", st.Name, v.n)
	if strings.HasSuffix(was, fmt.Sprintf("v%d", v.n)) {
		return // this variant has renamed the step already
	}
	if st.Name[0] == 'g' {
		for _, name := range slices.Sorted(maps.Keys(v.m.Flows)) {
			if rest, ok := strings.CutPrefix(name+".", st.Child+"."); ok {
				v.rehome(name, strings.TrimSuffix(f.at.name+"."+is+"."+rest, "."), st.Child, f.at.name+"."+is)
			}
		}
		st.Child = f.at.name + "." + is
	}
	st.Name = is
	text := v.m.Files["main.hcl"]
	text = regexp.MustCompile(`(?m)^(  (?:step|group)) "`+was+`" \{$`).ReplaceAllString(text, `${1} "`+is+`" {`)
	v.m.Files["main.hcl"] = regexp.MustCompile(`\b(step|group)\.`+was+`\b`).ReplaceAllString(text, "${1}."+is)
	v.m.moves = append(v.m.moves, move{was, is})
	v.done(map[byte]string{'g': "rename a group", 'c': "rename a child"}[is[0]])
	if last := len(v.m.Changes) - 1; v.m.Changes[last] == "" {
		v.m.Changes[last] = "rename a step"
	}
}

// rehome changes the name of a group's workflow from `old` to `now`. The names of the workflows of
// nested groups begin with `was`; rehome replaces this beginning with `is`.
func (v *variation) rehome(old, now, was, is string) {
	f := v.m.Flows[old]
	delete(v.m.Flows, old)
	v.m.Flows[now] = f
	f.at.name = now
	for i := range f.Steps {
		if st := &f.Steps[i]; st.Name[0] == 'g' {
			st.Child = is + strings.TrimPrefix(st.Child, was)
		}
	}
}

// alterations lists texts in a step that a variant may change. The field `old` is a pattern for the
// old text, and the field `new` is the new text, in which ${1} means the indentation.
var alterations = []struct {
	old *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`(?m)^( *)timeout = "\d+s"$`), `${1}timeout = "11s"`},
	{regexp.MustCompile(`(?m)^( *)deadline = "\d+s"$`), `${1}deadline = "75s"`},
	{regexp.MustCompile(`(?m)^( *)timer \{ duration = "\d+s" \}$`), `${1}timer { duration = "7s" }`},
	{regexp.MustCompile(`(?m)^( *)note = local.both$`), `${1}note = "other ${local.both}"`},
	{regexp.MustCompile(`(?m)^( *)max_attempts = \d+$`), `${1}max_attempts = 5`},
	{regexp.MustCompile(`(?m)^( *)max_iterations = \d+$`), `${1}max_iterations = 5`},
	{regexp.MustCompile(`(?m)^( *)input \{ tag = "\$\{run.id\}-`), `${1}input { tag = "$${run.id}-x`},
	{regexp.MustCompile(`(?m)^( *)priority = \d+$`), `${1}priority = 99`},
	{regexp.MustCompile(`(?m)^( *)workflow = workflow.kid$`), `${1}workflow = workflow.deep`},
}

// alter changes an argument of a step.
func (v *variation) alter(f *Flow) {
	st := &f.Steps[v.rng.IntN(len(f.Steps))]
	if st.Name[0] == 'g' {
		return // the steps of a group are altered as steps of its own workflow
	}
	p := v.block(file(f.at), st.Name)
	text := v.text(p)
	for _, k := range v.rng.Perm(len(alterations)) {
		a := alterations[k]
		changed := a.old.ReplaceAllString(text, a.new)
		if changed == text {
			continue
		}
		v.replace(p, changed)
		if k == len(alterations)-1 {
			st.Child = "deep"
			v.done("another child")
		} else {
			v.done("change a step")
		}
		return
	}
}

// deadline changes the deadline of a workflow.
func (v *variation) deadline(f *Flow) {
	if f.Bells == nil && strings.Contains(strings.TrimPrefix(f.at.name, "kit."), ".") {
		return // a group has none
	}
	p := v.home(f.at)
	text := v.text(p)
	if changed := regexp.MustCompile(`(?m)^  deadline = "\d+m"$`).ReplaceAllString(text, fmt.Sprintf("  deadline = \"%dm\"", 10+v.n)); changed != text {
		v.replace(p, changed)
		v.done("workflow deadline")
	}
}

// ring adds, changes or removes a notify block of a workflow. A block that changes gets a number
// that no block had before.
func (v *variation) ring(f *Flow) {
	if strings.Contains(strings.TrimPrefix(f.at.name, "kit."), ".") {
		return // a group has no notify block
	}
	number := 10*v.n + len(f.Bells)
	v.b.Reset()
	v.bell(f.at, number)
	p := v.tail(f.at)
	p.from = p.to
	switch k := len(f.Bells) - 1; {
	case k < 0 || k == 0 && v.chance(30):
		f.Bells = append(f.Bells, number)
		v.done("add a notify block")
		v.replace(v.bellsEnd(p, f), v.b.String())
	case v.chance(30):
		f.Bells = f.Bells[:k]
		v.done("remove a notify block")
		v.replace(v.lastBell(p, f), "")
	default:
		number = 10*v.n + k
		if slices.Contains(f.Bells, number) {
			return // this variant has changed the block already
		}
		old := v.lastBell(p, f)
		v.b.Reset()
		v.bell(f.at, number)
		f.Bells[k] = number
		v.done("change a notify block")
		v.replace(old, v.b.String())
	}
}

// bellsEnd returns the empty piece before the end of a workflow. There a new notify block can be
// inserted, because notify blocks are the last blocks of a workflow.
func (v *variation) bellsEnd(p piece, f *Flow) piece {
	home := v.home(f.at)
	end := home.to - len("}\n")
	return piece{p.path, end, end}
}

// lastBell returns the last notify block of a workflow.
func (v *variation) lastBell(p piece, f *Flow) piece {
	home := v.home(f.at)
	from := strings.LastIndex(v.text(home), "\n  notify {\n") + 1
	return v.until(p.path, home.from+from, "  ")
}

// movedBlocks writes the moved blocks into the main file.
func (v *variation) movedBlocks() {
	const begin = "moved {\n"
	text, _, _ := strings.Cut(v.m.Files["main.hcl"], begin)
	for _, m := range v.m.moves {
		text += fmt.Sprintf("moved {\n  from = step.%s\n  to   = step.%s\n}\n", m.from, m.to)
	}
	v.m.Files["main.hcl"] = text
}
