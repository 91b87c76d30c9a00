package syntax

import "github.com/hashicorp/hcl/v2"

// LanguageVersion is the version of the workflow language that this package reads. Each stored
// definition holds the LanguageVersion of the engine that made it.
const LanguageVersion = "1"

// A bodySpec lists the attributes and inner blocks that a block may have. This file has the
// bodySpec of each block of the language, except actionSpec, which is in action.go.
type bodySpec struct {
	attrs  []attrSpec
	blocks []blockSpec
	free   bool // true = the block may have attributes with any name, but no inner blocks
	// The field `was` maps the earlier name of an attribute to its present name. Only a stored
	// definition may use the earlier name.
	was map[string]string
}

type attrSpec struct {
	name     string
	required bool
	// true = the attribute must be known before a run: it must not use references or functions.
	literal bool
	// true = the attribute is a type constraint, such as list(string).
	typ bool
}

type blockSpec struct {
	name  string
	label bool // true = the block has one label, which is its name
	many  bool // true = the block may occur several times
	body  *bodySpec
}

func opt(names ...string) []attrSpec {
	out := make([]attrSpec, len(names))
	for i, n := range names {
		out[i] = attrSpec{name: n}
	}
	return out
}

var (
	freeSpec = &bodySpec{free: true}

	conditionSpec = &bodySpec{attrs: []attrSpec{
		{name: "condition", required: true}, {name: "error_message", required: true}, {name: "error_code"},
	}}

	validationSpec = &bodySpec{attrs: []attrSpec{
		{name: "condition", required: true}, {name: "error_message", required: true},
	}}

	undoRetrySpec = &bodySpec{attrs: opt("max_attempts", "strategy", "initial_interval", "multiplier",
		"max_interval", "jitter", "on", "not_on")}

	retrySpec = &bodySpec{attrs: append(append([]attrSpec(nil), undoRetrySpec.attrs...),
		opt("on_exhausted", "cool_down", "cool_downs")...)}

	variableSpec = &bodySpec{
		attrs: []attrSpec{
			{name: "type", literal: true, typ: true}, {name: "default"}, {name: "description"},
			{name: "sensitive", literal: true}, {name: "nullable", literal: true},
		},
		blocks: []blockSpec{{name: "validation", many: true, body: validationSpec}},
	}

	compensateSpec = &bodySpec{
		attrs: []attrSpec{
			{name: "action", required: true}, {name: "timeout"}, {name: "deadline"},
			{name: "idempotent", literal: true}, {name: "by_key", literal: true},
		},
		blocks: []blockSpec{{name: "input", body: freeSpec}, {name: "retry", body: undoRetrySpec}},
	}

	refusalSpec = &bodySpec{attrs: append([]attrSpec{{name: "permanent", literal: true}}, conditionSpec.attrs...)}

	waitSpec = &bodySpec{attrs: []attrSpec{
		{name: "signal", required: true}, {name: "payload", literal: true, typ: true}, {name: "on_timeout", literal: true},
	}}

	timerSpec = &bodySpec{attrs: opt("duration", "until")}

	repeatSpec = &bodySpec{attrs: opt("until", "interval", "max_iterations", "collect")}

	stepSpec = &bodySpec{
		attrs: append(opt("action", "workflow", "value", "when", "for_each", "max_parallel", "max_failures", "depends_on",
			"timeout", "deadline", "heartbeat_timeout", "idempotency_key", "priority"),
			attrSpec{name: "output_type", literal: true, typ: true}, attrSpec{name: "compensation", literal: true},
			attrSpec{name: "pivot", literal: true}, attrSpec{name: "idempotent", literal: true},
			attrSpec{name: "read_only", literal: true}, attrSpec{name: "on_rerun", literal: true}),
		blocks: []blockSpec{
			{name: "wait", body: waitSpec},
			{name: "timer", body: timerSpec},
			{name: "repeat", body: repeatSpec},
			{name: "input", body: freeSpec},
			{name: "retry", body: retrySpec},
			{name: "catch", body: catchSpec},
			{name: "precondition", many: true, body: conditionSpec},
			{name: "fail_when", many: true, body: refusalSpec},
			{name: "postcondition", many: true, body: conditionSpec},
			{name: "compensate", body: compensateSpec},
		},
	}

	notifySpec = &bodySpec{
		attrs:  []attrSpec{{name: "on", required: true, literal: true}, {name: "action", required: true}, {name: "timeout"}},
		blocks: []blockSpec{{name: "input", body: freeSpec}, {name: "retry", body: undoRetrySpec}},
	}

	catchSpec = &bodySpec{attrs: []attrSpec{{name: "errors", required: true}, {name: "output"}}}

	outputSpec = &bodySpec{attrs: []attrSpec{
		{name: "value", required: true}, {name: "description"}, {name: "sensitive", literal: true},
	}}

	groupSpec = newGroupSpec()

	concurrencySpec = &bodySpec{attrs: []attrSpec{
		{name: "limit", required: true}, {name: "key"}, {name: "when_full", literal: true},
	}}

	admitSpec = &bodySpec{attrs: []attrSpec{
		{name: "sql", required: true, literal: true}, {name: "args"}, {name: "error_message", required: true},
		{name: "lock", literal: true}, {name: "bump", literal: true},
	}}

	selectSpec = &bodySpec{attrs: []attrSpec{
		{name: "sql", required: true, literal: true}, {name: "key", required: true}, {name: "args"},
		{name: "strategy", literal: true}, {name: "page_size"}, {name: "parallel"}, {name: "stable", literal: true},
		{name: "max_keys"}, {name: "filter"},
	}}

	workflowSpec = &bodySpec{
		attrs: opt("description", "deadline", "priority", "retention"),
		blocks: []blockSpec{
			{name: "variable", label: true, many: true, body: variableSpec},
			{name: "locals", many: true, body: freeSpec},
			{name: "step", label: true, many: true, body: stepSpec},
			{name: "group", label: true, many: true, body: groupSpec},
			{name: "output", label: true, many: true, body: outputSpec},
			{name: "retry", body: retrySpec},
			{name: "schedule", label: true, many: true, body: &bodySpec{attrs: []attrSpec{
				{name: "cron", required: true, literal: true}, {name: "time_zone", literal: true},
				{name: "overlap", literal: true}, {name: "catch_up", literal: true}, {name: "variables"},
			}, blocks: []blockSpec{{name: "select", body: selectSpec}}}},
			{name: "on_event", label: true, many: true, body: &bodySpec{attrs: []attrSpec{
				{name: "type", literal: true}, {name: "when"}, {name: "for_each"}, {name: "variables"},
			}, blocks: []blockSpec{{name: "select", body: selectSpec}}}},
			{name: "unique", body: &bodySpec{attrs: []attrSpec{
				{name: "key", required: true}, {name: "scope", literal: true}, {name: "on_conflict", literal: true}, {name: "retain"},
			}, blocks: []blockSpec{{name: "reset_on", label: true, many: true, body: &bodySpec{attrs: []attrSpec{
				{name: "type", literal: true}, {name: "when"}, {name: "key", required: true},
			}}}}}},
			{name: "concurrency", body: concurrencySpec},
			{name: "admit", label: true, many: true, body: admitSpec},
			{name: "compensation", body: &bodySpec{attrs: opt("mode", "deadline")}},
			{name: "notify", many: true, body: notifySpec},
		},
	}

	agentSpec = &bodySpec{
		attrs: []attrSpec{
			{name: "plugin", literal: true}, {name: "version", literal: true}, {name: "source", literal: true},
			{name: "instances"}, {name: "max_concurrency"}, {name: "rate_limit"}, {name: "env", literal: true},
			{name: "idempotent", literal: true},
		},
		blocks: []blockSpec{
			{name: "config", body: freeSpec},
			{name: "action", label: true, many: true, body: actionSpec},
			{name: "circuit_breaker", body: &bodySpec{attrs: opt("trip_after", "failure_ratio", "min_calls",
				"window", "cool_down", "probes"), was: map[string]string{"cooldown": "cool_down"}}},
		},
	}

	// ModuleSpec lists the blocks that a file may have at its top level.
	ModuleSpec = &bodySpec{blocks: []blockSpec{
		{name: "engine", many: true, body: &bodySpec{attrs: []attrSpec{{name: "required_version", literal: true}}}},
		{name: "agent", label: true, many: true, body: agentSpec},
		{name: "library", label: true, many: true, body: &bodySpec{attrs: []attrSpec{{name: "source", required: true, literal: true}}}},
		{name: "variable", label: true, many: true, body: variableSpec},
		{name: "locals", many: true, body: freeSpec},
		{name: "workflow", label: true, many: true, body: workflowSpec},
		{name: "moved", many: true, body: &bodySpec{attrs: []attrSpec{{name: "from", required: true}, {name: "to", required: true}}}},
	}}
)

// newGroupSpec returns the spec of a group block. A group may contain groups, so the spec contains
// a pointer to itself.
func newGroupSpec() *bodySpec {
	group := &bodySpec{attrs: opt("for_each", "max_parallel", "max_failures", "when", "depends_on", "deadline")}
	group.blocks = []blockSpec{
		{name: "catch", body: catchSpec},
		{name: "concurrency", body: concurrencySpec},
		{name: "locals", many: true, body: freeSpec},
		{name: "step", label: true, many: true, body: stepSpec},
		{name: "group", label: true, many: true, body: group},
		{name: "output", label: true, many: true, body: outputSpec},
	}
	return group
}

// labelName is the name of a block's label in messages.
const labelName = "name"

// hcl converts the spec to a schema of the hcl library.
func (s *bodySpec) hcl() *hcl.BodySchema {
	out := &hcl.BodySchema{}
	for _, a := range s.attrs {
		out.Attributes = append(out.Attributes, hcl.AttributeSchema{Name: a.name, Required: a.required})
	}
	for _, b := range s.blocks {
		h := hcl.BlockHeaderSchema{Type: b.name}
		if b.label {
			h.LabelNames = []string{labelName}
		}
		out.Blocks = append(out.Blocks, h)
	}
	return out
}

func (s *bodySpec) attr(name string) attrSpec {
	for _, a := range s.attrs {
		if a.name == name {
			return a
		}
	}
	return attrSpec{}
}

func (s *bodySpec) block(name string) blockSpec {
	for _, b := range s.blocks {
		if b.name == name {
			return b
		}
	}
	return blockSpec{}
}

// RootFields lists the attributes of each.*, self.*, failure.*, run.* and event.*. Every module has
// the same attributes.
var RootFields = map[string][]string{
	"each":    {"key", "value"},
	"self":    {"input", "output", "key", "timed_out", "signal", "previous", "collected", "error"},
	"failure": {"step", "code", "message"},
	"run":     {"id", "workflow", "key", "started_at", "tick", "status"},
	"event":   {"id", "type", "at", "data"},
}

// StepFields are the attributes of step.NAME.
var StepFields = []string{"output", "status", "attempts", "error", "started_at", "ended_at", "timed_out", "signal", "collected"}

// GroupFields are the attributes of group.NAME.
var GroupFields = []string{"output", "status", "attempts", "error", "started_at", "ended_at"}
