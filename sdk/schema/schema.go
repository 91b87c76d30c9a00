package schema

import (
	"encoding/json"
	"time"
)

// A Schema describes what an agent can do: its configuration and its actions.
// `engine-agent-NAME describe` prints it as JSON. The engine checks a workflow against the
// schemas of its agents before any run starts.
type Schema struct {
	Name    string            `json:"name"`              // name of the agent, as in engine-agent-NAME
	Version string            `json:"version"`           // semantic version of the agent
	Doc     string            `json:"doc,omitempty"`     // one sentence about the agent
	Config  []Field           `json:"config,omitempty"`  // arguments of config {} in the agent block
	Actions map[string]Action `json:"actions,omitempty"` // actions, by name
}

// An Action describes one action: its inputs, outputs, error codes, and the properties on
// which the engine relies.
type Action struct {
	Doc     string  `json:"doc,omitempty"`
	Inputs  []Field `json:"inputs,omitempty"`
	Outputs []Field `json:"outputs,omitempty"`
	// Errors holds the error codes that the action declares. The action may also answer with
	// the codes that every action may use.
	Errors []ErrorCode `json:"errors,omitempty"`

	// Idempotent means that all calls with the same idempotency key together have only one
	// effect (S32).
	Idempotent  bool `json:"idempotent,omitempty"`
	ReadOnly    bool `json:"read_only,omitempty"`   // the action changes nothing
	ByKey       bool `json:"by_key,omitempty"`      // the action is an undo that needs only the key of the call to undo
	Lookup      bool `json:"lookup,omitempty"`      // the agent can look up the outcome of a call
	Heartbeats  bool `json:"heartbeats,omitempty"`  // the action sends heartbeats
	Progress    bool `json:"progress,omitempty"`    // the heartbeats contain progress and notes
	Checkpoints bool `json:"checkpoints,omitempty"` // the action sends checkpoints
	// Cancellable means that the engine may interrupt a call in flight. The action then
	// stops early.
	Cancellable   bool          `json:"cancellable,omitempty"`
	CompensatedBy string        `json:"compensated_by,omitempty"` // name of the action that undoes the effect of this action; "" = none
	Typical       time.Duration `json:"typical,omitempty"`        // usual duration in nanoseconds; 0 = not known
}

// Kind says whether a Type is a string, a list, an object and so on. It does not say which
// types the elements or attributes have.
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

// A Type is the type of a value in the workflow language. Its JSON form is the same as in the
// package cty: "string", ["list","number"], ["object",{"a":"string"},["a"]]. The last list of
// an object type names the optional attributes. The JSON form of KindAny is "dynamic".
type Type struct {
	Kind   Kind
	Elem   *Type   // type of the elements of a list, set or map; nil for other kinds
	Fields []Field // attributes of an object, sorted by name; nil for other kinds
}

// A Field is one named input, output or configuration argument.
type Field struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Optional means for an input: the input may be missing or null. Optional means for an output:
	// the output may be null.
	Optional bool `json:"optional,omitempty"`
	// Default is the value of an optional input that is missing or null; nil = no default.
	Default   json.RawMessage   `json:"default,omitempty"`
	Enum      []json.RawMessage `json:"enum,omitempty"` // the only allowed values; empty = all values
	Sensitive bool              `json:"sensitive,omitempty"`
	Doc       string            `json:"doc,omitempty"`

	// Pattern is a regular expression (RE2). A string, each element of a list, or each key of a
	// map must match the whole expression; "" = any text.
	Pattern string `json:"pattern,omitempty"`
	// Codes means that this input contains error codes with which the action may answer. The
	// codes are the string itself, the elements of a list, or the values of a map.
	Codes bool `json:"codes,omitempty"`
}

// An ErrorCode is an error code with which an action may answer.
type ErrorCode struct {
	Code      string `json:"code"`                // the error code, in snake_case
	Retryable bool   `json:"retryable,omitempty"` // the error is transient (S77): the engine repeats the call by default
	Doc       string `json:"doc,omitempty"`
}

// AnyCode is a special value in the error codes of an action. It means that the action may
// answer with any code, because the codes depend on the input.
const AnyCode = "*"
