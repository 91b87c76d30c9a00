package schema

import (
	"encoding/json"
	"time"
)

// A Schema says what an agent can do: its configuration and its actions. It
// is what `engine-agent-NAME describe` prints as JSON, and what a workflow is
// checked against before anything runs.
type Schema struct {
	Name    string            `json:"name"`              // agent name, as in engine-agent-NAME
	Version string            `json:"version"`           // semantic version of the agent
	Doc     string            `json:"doc,omitempty"`     // one sentence
	Config  []Field           `json:"config,omitempty"`  // arguments of the agent block's config {}
	Actions map[string]Action `json:"actions,omitempty"` // by action name
}

// An ActionSchema describes one action.
type Action struct {
	Doc     string      `json:"doc,omitempty"`
	Inputs  []Field     `json:"inputs,omitempty"`
	Outputs []Field     `json:"outputs,omitempty"`
	Errors  []ErrorCode `json:"errors,omitempty"` // the only codes the action may answer with, besides the engine's own

	Idempotent    bool          `json:"idempotent,omitempty"`     // same key, one effect (S32)
	ReadOnly      bool          `json:"read_only,omitempty"`      // changes nothing
	ByKey         bool          `json:"by_key,omitempty"`         // an undo that needs only the forward key
	Lookup        bool          `json:"lookup,omitempty"`         // the outcome of a key can be asked
	Heartbeats    bool          `json:"heartbeats,omitempty"`     // sends heartbeats
	Progress      bool          `json:"progress,omitempty"`       // sends progress notes
	Checkpoints   bool          `json:"checkpoints,omitempty"`    // records step-completed progress
	Cancellable   bool          `json:"cancellable,omitempty"`    // may be interrupted in flight; stops early then
	CompensatedBy string        `json:"compensated_by,omitempty"` // name of the action that undoes this one
	Typical       time.Duration `json:"typical,omitempty"`        // usual duration in nanoseconds; 0 = not known
}

// Kind is the outermost constructor of a Type.
type Kind string

// The kinds of types. The zero Kind is invalid.
const (
	KindAny    Kind = "any"
	KindBool   Kind = "bool"
	KindNumber Kind = "number"
	KindString Kind = "string"
	KindList   Kind = "list"
	KindSet    Kind = "set"
	KindMap    Kind = "map"
	KindObject Kind = "object"
)

// A Type is the type of a value, in the terms of the workflow language. In
// JSON a type is written as in cty's type expressions: "string",
// ["list","number"], ["object",{"a":"string"},["a"]] where the last part names
// the optional attributes; "any" is written "dynamic".
type Type struct {
	Kind   Kind
	Elem   *Type   // element type of list, set and map
	Fields []Field // attributes of an object, sorted by name
}

// A Field is one named input, output or configuration argument.
type Field struct {
	Name      string            `json:"name"`
	Type      Type              `json:"type"`
	Optional  bool              `json:"optional,omitempty"` // inputs: may be left out or null; outputs: may be null
	Default   json.RawMessage   `json:"default,omitempty"`  // value of an optional input left out; none = null
	Enum      []json.RawMessage `json:"enum,omitempty"`     // the only values allowed; empty = any
	Sensitive bool              `json:"sensitive,omitempty"`
	Doc       string            `json:"doc,omitempty"`

	// Pattern is a regular expression (RE2) that the string as a whole, each
	// element of a list, or each key of a map must match; "" = anything.
	Pattern string `json:"pattern,omitempty"`
	// Codes says that the string, the elements of a list, or the values of a map
	// are error codes with which the action may answer. They are checked as such.
	Codes bool `json:"codes,omitempty"`
}

// An ErrorCode is one failure an action may answer with.
type ErrorCode struct {
	Code      string `json:"code"`                // snake_case
	Retryable bool   `json:"retryable,omitempty"` // a transient fault (S77): repeated by default
	Doc       string `json:"doc,omitempty"`
}

// AnyCode in an action's error codes stands for every code: which ones there
// are depends on the input.
const AnyCode = "*"
