package flows

import "strings"

// uncalled writes a step that calls no agent.
func (w *writer) uncalled(s scope, st *Step) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	w.open(s, st, "step")
	w.order(s, st)
	w.many(s, st, false)
	what, loops := w.rng.IntN(5), w.chance(30)
	st.Loops = loops
	switch what {
	case 0:
		use("value")
		n := "1"
		if loops {
			n = "try(self.previous.n, 0) + 1"
		}
		w.line(s, "value = { id = run.id, n = %s }", n)
	case 1:
		use("timer duration")
		w.line(s, "timer { duration = %q }", w.pick("2s", "15s", "40s"))
	case 2:
		use("timer until")
		w.line(s, "timer { until = timeadd(run.started_at, %q) }", w.pick("5s", "20s"))
	default:
		use("wait", "step deadline")
		w.line(s, "deadline = \"%ds\"", 20+w.rng.IntN(60))
		w.f("%s  wait {\n", s.indent)
		if w.chance(50) {
			use("wait list")
			w.f("%s    signal = [\"go\", \"stay\"]\n", s.indent)
		} else {
			w.f("%s    signal = \"go\"\n", s.indent)
		}
		if w.chance(50) {
			use("wait payload")
			w.f("%s    payload = object({ id = string })\n", s.indent)
		}
		if w.chance(60) {
			use("wait on_timeout")
			w.f("%s    on_timeout = \"continue\"\n", s.indent)
		}
		w.f("%s  }\n", s.indent)
		if w.chance(30) {
			use("postcondition")
			w.condition(s, "postcondition", "!self.timed_out || run.id != \"run-1\"")
		}
	}
	if what > 2 && loops && w.chance(50) {
		use("repeat", "repeat until signal", "repeat collect")
		w.line(s, "repeat {\n%s    until   = self.signal == \"stay\"\n%s    collect = coalesce(self.signal, \"none\")\n%s  }", s.indent, s.indent, s.indent)
	} else {
		w.loop(s, st, loops)
	}
	if loops && w.chance(20) && !contains(st.Uses, "when") && !contains(st.Uses, "when each") {
		use("repeat when")
		w.line(s, "when = length(self.collected) < 2")
	}
	w.guards(s, st, "", "")
	w.line(s, "")
}

// child writes a step with a child run.
func (w *writer) child(s scope, st *Step) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	use("child")
	st.Child = w.pick(s.kids...)
	switch {
	case st.Child == "kit.lib":
		use("child of a library", "library")
	case s.name == "kid":
		use("child in a child")
	}
	if strings.Contains(s.name, ".") {
		use("child in a group")
	}
	w.open(s, st, "step")
	if lib, flow, ok := strings.Cut(st.Child, "."); ok {
		w.line(s, "workflow = library.%s.workflow.%s", lib, flow)
	} else {
		w.line(s, "workflow = workflow.%s", st.Child)
	}
	w.order(s, st)
	w.many(s, st, true)
	if st.Keys != nil {
		use("child for_each")
	}
	if contains(st.Uses, "step deadline") {
		use("child deadline")
	}
	st.Loops = w.chance(12)
	if st.Loops {
		use("child repeat")
	}
	w.loop(s, st, st.Loops)
	switch {
	case w.chance(12):
		st.None = true
		use("child compensation none", "compensation none")
		w.line(s, "compensation = \"none\"")
	case st.Loops || w.chance(10):
		st.Own = true
		use("child compensate", "compensate")
		w.line(s, "compensate {\n%s    action = agent.far.tidy\n%s  }", s.indent, s.indent)
	}
	before := len(st.Uses)
	w.guards(s, st, "", "{ id = %s }")
	if caught(st.Uses[before:]) {
		use("child catch")
	}
	tag := "\"${run.id}-" + st.Name + "\""
	if st.Keys != nil || s.item {
		tag = "\"${run.id}-" + st.Name + "-${each.key}\""
	}
	if st.Loops {
		tag = "\"${run.id}-" + st.Name + "-${length(self.collected)}\""
		if st.Keys != nil || s.item {
			tag = "\"${run.id}-" + st.Name + "-${each.key}-${length(self.collected)}\""
		}
	}
	if w.chance(10) {
		tag = "\"shared\""
	}
	w.line(s, "input { tag = %s }", tag)
	w.line(s, "")
}

// caught reports whether a step has a catch block.
func caught(uses []string) bool { return contains(uses, "catch any") || contains(uses, "catch code") }

// group writes a group with its steps.
func (w *writer) group(s scope, st *Step) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	use("group")
	if strings.Contains(strings.TrimPrefix(s.name, "kit."), ".") {
		use("group in a group")
	}
	st.Child = s.name + "." + st.Name
	w.open(s, st, "group")
	w.order(s, st)
	w.many(s, st, true)
	for _, x := range st.Uses {
		switch x {
		case "for_each", "max_parallel", "when":
			use("group " + x)
		case "max_failures", "max_failures percent":
			use("group max_failures")
		case "when each":
			use("group when")
		case "step deadline":
			use("group deadline")
		}
	}
	if w.chance(30) {
		use("group catch")
		w.catch(s, st, "{ id = %s }")
	}
	use("group locals")
	w.line(s, "locals { in_%s = var.tag }", st.Name)
	inner := &Flow{}
	w.m.Flows[st.Child] = inner
	if w.chance(35) {
		key := ""
		switch {
		case !w.chance(40):
		case s.item || st.Keys != nil:
			key = "each.key"
		default:
			key = firstCharacter
		}
		w.limit(inner, "group ", s.indent+"  ", key)
	}
	in := scope{flow: inner, name: st.Child, indent: s.indent + "  ", kids: s.kids, groups: s.groups - 1, item: s.item || st.Keys != nil, most: 2}
	w.steps(in, false)
	w.outputs(in)
	w.line(s, "")
}
