package flows

import (
	"fmt"
	"strings"
)

// actions are the actions from which the method `action` chooses one for a step. Each of them
// changes something. "do" is in the list twice, so that it is chosen more often. "book" is a
// declared action: see the method `agent`. Package sim describes the other actions.
var actions = []string{"do", "do", "once", "lookup", "pay", "keep", "ask", "long", "book"}

// action writes a step that calls an agent.
func (w *writer) action(s scope, st *Step) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	use("action", "timeout", "run")
	for c, on := range map[string]bool{"agent max_concurrency": w.m.MaxConcurrency > 0, "agent rate_limit": w.m.Rate > 0, "agent idempotent": w.m.Idempotent} {
		if on && s.name != "kit.lib" {
			use(c)
		}
	}
	a := actions[w.rng.IntN(len(actions))]
	if w.chance(8) {
		a = "raw"
	}
	if s.name == "kit.lib" {
		use("library")
		if a == "book" {
			a = "do"
		}
	}
	w.open(s, st, "step")
	called := a
	if st.Declared = a == "pay" && s.name != "kit.lib" && w.chance(60); st.Declared {
		called = "order"
	}
	w.line(s, "action  = agent.far.%s", called)
	w.line(s, "timeout = \"%ds\"", 2+w.rng.IntN(8))
	w.order(s, st)
	w.urgency(s, st)
	w.many(s, st, true)
	st.None = a == "keep" || w.chance(5) && a != "book" && a != "raw"
	undoes := a != "raw" && !st.None
	st.Loops = a != "book" && (!undoes || a == "pay") && w.chance(40)
	if st.Loops && st.Declared {
		use("repeat of a declared action")
	}
	if undoes && !st.Loops && (a == "do" || a == "once") && w.chance(20) {
		st.Restarts = true
		use("on_rerun undo_first")
		w.line(s, "on_rerun = \"undo_first\"")
	}
	if st.None {
		use("compensation none")
		w.line(s, "compensation = \"none\"")
	}
	w.special(s, st, a)
	w.ownKey(s, st)
	w.loop(s, st, st.Loops)
	w.undo(s, st, a, undoes)
	w.retry(s, st)
	w.guards(s, st, a, substitutes[a == "raw"])
	w.input(s, st, a)
	w.line(s, "") // ends the block
}

// ownKey gives some steps an idempotency key of their own.
func (w *writer) ownKey(s scope, st *Step) {
	if st.Loops || st.Restarts || !w.chance(6) {
		return
	}
	st.Uses = append(st.Uses, "idempotency_key")
	key := fmt.Sprintf("${run.id}/%s", st.Name)
	if st.Keys != nil || s.item { // inside a group, run.id is the id of the run that contains the group
		key += "/${each.key}"
	}
	w.line(s, "idempotency_key = %q", key)
}

// substitutes holds the source text of catch.output for a step that calls an agent. The value for
// the key `true` is for the action `raw`, whose catch block has no output. The value for the key
// `false` is for all other actions.
var substitutes = map[bool]string{false: "{ id = %s, n = 0, ok = false }", true: ""}

// special writes the arguments that only some actions need.
func (w *writer) special(s scope, st *Step, a string) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	switch a {
	case "book":
		use("declared action", "declared lookup", "declared fail_when")
	case "raw":
		use("read_only", "output_type")
		w.line(s, "read_only   = true")
		w.line(s, "output_type = object({ id = string, doc = object({ n = number }) })")
	case "long":
		use("checkpoints")
		if w.chance(60) {
			use("heartbeat_timeout")
			w.line(s, "heartbeat_timeout = \"3s\"")
		}
	case "ask":
		use("fail_when")
		w.line(s, "fail_when {\n%s    condition  = !self.output.ok\n%s    error_code = \"sold_out\"\n%s    permanent  = %t\n%s    error_message = \"sold out\"\n%s  }", s.indent, s.indent, s.indent, w.chance(50), s.indent, s.indent)
	case "pay":
		if w.chance(30) && s.name != "kit.lib" {
			use("step idempotent")
			w.line(s, "idempotent = true")
		}
	}
}

// open writes the first line of a step or group.
func (w *writer) open(s scope, st *Step, block string) { w.f("%s%s %q {\n", s.indent, block, st.Name) }

// line writes a line in a block. An empty line ends the block.
func (w *writer) line(s scope, format string, args ...any) {
	if format == "" {
		w.f("%s}\n", s.indent)
		return
	}
	w.f(s.indent+"  "+format+"\n", args...)
}

// order writes depends_on.
func (w *writer) order(s scope, st *Step) {
	if len(st.After) > 0 {
		st.Uses = append(st.Uses, "depends_on")
		w.line(s, "depends_on = [%s]", w.depends(s, st.After))
	}
}

// many writes for_each and its limits, the argument `when`, and the deadline of a step or group.
func (w *writer) many(s scope, st *Step, limits bool) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	if !s.item && w.chance(25) {
		use("for_each")
		st.Keys = []string{"a", "b", "c"}[:2+w.rng.IntN(2)]
		w.line(s, "for_each = toset([\"%s\"])", strings.Join(st.Keys, `", "`))
		if w.chance(40) {
			use("max_parallel")
			w.line(s, "max_parallel = %d", 1+w.rng.IntN(2))
		}
		switch w.rng.IntN(4) {
		case 0:
			use("max_failures")
			w.line(s, "max_failures = 1")
		case 1:
			use("max_failures percent")
			w.line(s, "max_failures = \"50%%\"")
		}
	}
	switch {
	case st.Keys != nil && w.chance(15):
		use("when each")
		w.line(s, "when = each.key != \"b\"")
	case w.chance(8):
		use("when")
		w.line(s, "when = run.id == \"%s\"", w.pick("nobody", "run-0"))
	}
	if limits && w.chance(20) {
		use("step deadline")
		w.line(s, "deadline = \"%ds\"", 10+w.rng.IntN(60))
	}
}

// urgency may write the priority of a step.
func (w *writer) urgency(s scope, st *Step) {
	if w.chance(20) {
		st.Uses = append(st.Uses, "step priority")
		w.line(s, "priority = %d", w.rng.IntN(101))
	}
}

// loop writes a repeat block.
func (w *writer) loop(s scope, st *Step, on bool) {
	if !on {
		return
	}
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	use("repeat")
	w.f("%s  repeat {\n", s.indent)
	w.f("%s    max_iterations = %d\n", s.indent, 1+w.rng.IntN(4))
	if w.chance(40) {
		use("repeat until", "repeat previous")
		w.f("%s    until          = try(self.previous, null) != null\n", s.indent)
	}
	if w.chance(50) {
		use("repeat interval")
		w.f("%s    interval       = \"%ds\"\n", s.indent, 1+w.rng.IntN(4))
	}
	use("repeat collect")
	w.f("%s    collect        = try(self.output.id, \"none\")\n%s  }\n", s.indent, s.indent)
}

// undo writes a compensate block for an action that needs one, or that may have one.
func (w *writer) undo(s scope, st *Step, action string, on bool) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	own := action == "pay" || on && action == "do" && !st.Restarts && w.chance(25)
	if !on || !own {
		return
	}
	use("compensate", "failure")
	w.f("%s  compensate {\n", s.indent)
	switch {
	case st.Loops:
		ids := "self.collected"
		if st.Declared {
			use("self.input in a loop")
			ids = lastArguments + " ? self.collected : []"
		}
		w.f("%s    action = agent.far.refund_all\n%s    input { ids = %s }\n", s.indent, s.indent, ids)
	case action == "pay":
		w.f("%s    action = agent.far.refund\n%s    input {\n%s      id  = self.output.id\n%s      why = \"${failure.step} ${failure.code} ${self.input.%s}\"\n%s    }\n",
			s.indent, s.indent, s.indent, s.indent, nameArgument(st, action), s.indent)
	default:
		use("compensate by_key")
		w.f("%s    action = agent.far.undo\n%s    by_key = true\n", s.indent, s.indent)
	}
	if w.chance(25) {
		use("compensate timeout")
		w.f("%s    timeout = \"5s\"\n", s.indent)
	}
	if w.chance(20) {
		use("compensate deadline")
		w.f("%s    deadline = \"%dm\"\n", s.indent, 1+w.rng.IntN(3))
	}
	if w.chance(20) {
		use("compensate retry")
		w.f("%s    retry { max_attempts = %d }\n", s.indent, 2+w.rng.IntN(3))
	}
	if w.chance(15) {
		use("compensate idempotent")
		w.f("%s    idempotent = true\n", s.indent)
	}
	w.f("%s  }\n", s.indent)
}

// retry may write a retry block.
func (w *writer) retry(s scope, st *Step) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	if !w.chance(45) {
		return
	}
	w.f("%s  retry {\n", s.indent)
	use("retry max_attempts")
	w.f("%s    max_attempts = %d\n", s.indent, 1+w.rng.IntN(4))
	if w.chance(30) {
		use("retry strategy")
		w.f("%s    strategy = %q\n", s.indent, w.pick("linear", "constant", "exponential"))
	}
	if w.chance(30) {
		use("retry pauses")
		w.f("%s    initial_interval = \"500ms\"\n%s    multiplier = 3\n", s.indent, s.indent)
		w.f("%s    max_interval = \"4s\"\n%s    jitter = %q\n", s.indent, s.indent, w.pick("none", "full"))
	}
	switch w.rng.IntN(6) {
	case 0:
		use("retry on")
		w.f("%s    on = [\"refused\"]\n", s.indent)
	case 1:
		use("retry not_on")
		w.f("%s    not_on = [\"unavailable\"]\n", s.indent)
	}
	switch w.rng.IntN(6) {
	case 0:
		use("on_exhausted park")
		w.f("%s    on_exhausted = \"park\"\n", s.indent)
	case 1:
		use("on_exhausted cool_down")
		w.f("%s    on_exhausted = \"cool_down\"\n%s    cool_down = \"10s\"\n%s    cool_downs = 1\n", s.indent, s.indent, s.indent)
	case 2:
		use("on_exhausted compensate")
		w.f("%s    on_exhausted = \"compensate\"\n", s.indent)
	}
	w.f("%s  }\n", s.indent)
}

// guards may write a precondition, a postcondition and a catch block. It passes the parameter
// `output` to the method `catch`.
func (w *writer) guards(s scope, st *Step, action, output string) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	if w.chance(10) {
		use("precondition")
		on := "run.id != \"run-1\"" // inside a group, run.id is the id of the run that contains the group
		switch {
		case (s.item || st.Keys != nil) && w.chance(50):
			on = "each.key != \"b\""
		case w.chance(40):
			on = "var.tag != \"shared\""
		}
		w.condition(s, "precondition", on)
	}
	if action != "" && action != "raw" && w.chance(12) {
		use("postcondition")
		w.condition(s, "postcondition", "self.output.n < 7")
	}
	if w.chance(25) {
		w.catch(s, st, output)
	}
}

// condition writes a precondition or a postcondition.
func (w *writer) condition(s scope, block, on string) {
	w.f("%s  %s {\n%s    condition     = %s\n%s    error_message = \"no\"\n", s.indent, block, s.indent, on, s.indent)
	if w.chance(30) {
		w.f("%s    error_code    = \"closed\"\n", s.indent)
	}
	w.f("%s  }\n", s.indent)
}

// catch writes a catch block. The parameter `output` is the source text of the argument `output`,
// with %s in place of the value of `id`, such as "{ id = %s }"; "" = the block has no output.
func (w *writer) catch(s scope, st *Step, output string) {
	use := func(names ...string) { st.Uses = append(st.Uses, names...) }
	w.f("%s  catch {\n", s.indent)
	if w.chance(60) {
		use("catch any")
		w.f("%s    errors = [\"*\"]\n", s.indent)
	} else {
		use("catch code")
		w.f("%s    errors = [\"%s\"]\n", s.indent, strings.Join(codes, `", "`))
	}
	if output != "" && w.chance(50) {
		use("catch output")
		id := `"caught"`
		if w.chance(70) {
			use("self.error")
			st.Tells = true
			id = `"caught ${self.error.code}"`
		}
		w.f("%s    output = "+output+"\n", s.indent, id)
	}
	w.f("%s  }\n", s.indent)
}

// codes are the error codes that a catch block with a list accepts. It accepts no other code.
var codes = []string{"refused", "sold_out", "deadline_exceeded", "cancelled", "precondition_failed", "no_room"}

// input writes the input of a step, which may refer to earlier steps.
func (w *writer) input(s scope, st *Step, action string) {
	name, arg := st.Name, nameArgument(st, action)
	if st.Keys != nil || s.item {
		name += "-${each." + w.pick("key", "value") + "}" // for_each has a set, so each.key and each.value are equal
	}
	w.f("%s  input {\n%s    %s = \"%s\"\n", s.indent, s.indent, arg, name)
	if note := w.note(s, st); note != "" {
		w.f("%s    note = %s\n", s.indent, note)
	}
	if st.Loops && st.Declared {
		w.f("%s    seen   = length(self.collected)\n%s    before = try(self.previous.id, \"none\")\n", s.indent, s.indent)
	}
	w.f("%s  }\n", s.indent)
}

// nameArgument returns the argument of an action that takes the name of the step.
func nameArgument(st *Step, action string) string {
	if st.Declared || action == "book" {
		return "what"
	}
	return "name"
}

// lastArguments is a condition in the compensate block of a loop over the action `order`. Each
// iteration gets two arguments: `seen` is the number of iterations before it, and `before` is the
// id that the previous iteration returned. The condition is true if self.input has both arguments
// from the same iteration. If the condition is false, the block undoes nothing. Then effects
// remain, and the checks of the simulation find them.
const lastArguments = "self.input.before == (self.input.seen == 0 ? \"none\" : self.collected[self.input.seen - 1])"

// note returns an expression for the argument `note`. The expression refers to an earlier step, to
// the run, or to a local.
func (w *writer) note(s scope, st *Step) string {
	if len(st.After) == 0 || !w.chance(60) {
		if w.chance(30) {
			return fmt.Sprintf("try(tostring(run.%s), \"\")", w.pick("key", "tick", "workflow"))
		}
		return "local.both"
	}
	of := &s.flow.Steps[st.After[w.rng.IntN(len(st.After))]]
	name := ref(of)
	if of.Keys != nil {
		name += "[\"a\"]"
	}
	use, attr := "", ""
	switch w.rng.IntN(5) {
	case 0:
		use, attr = "step status", "status"
	case 1:
		use, attr = "step attempts", "attempts"
	case 2:
		use, attr = "step error", w.pick("error.code", "error.message", "error.data")
	case 3:
		use, attr = "step times", w.pick("started_at", "ended_at")
	default:
		use, attr = "step output", "output.id"
		if of.Name[0] == 'g' {
			use = "group output"
		}
	}
	switch {
	case of.Loops && w.chance(50):
		use, attr = "step collected", "collected[0]"
	case contains(of.Uses, "wait") && w.chance(50):
		use, attr = "step signal", w.pick("signal", "timed_out")
	}
	st.Uses = append(st.Uses, use)
	return fmt.Sprintf("try(tostring(%s.%s), \"\")", name, attr)
}

func contains(list []string, one string) bool {
	for _, x := range list {
		if x == one {
			return true
		}
	}
	return false
}
