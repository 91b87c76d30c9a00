package machine

import "github.com/saga-engine/engine/engine/internal/model"

// What tests outside of the package compare with.
const (
	DefaultTimeout = defaultTimeout
	Grace          = grace
	MaxSignals     = maxSignals
	MaxSignalBytes = maxSignalBytes
	MaxSignalIDs   = maxSignalIDs
)

// Parts of the rules that have tests of their own.
var (
	Growth         = growth
	IdempotencyKey = idempotencyKey
)

// The largest number of iterations that one decision begins.
const MaxAtOnce = maxAtOnce

// StepRowOf is the journal's row of a node.
func StepRowOf(i int, n *model.Node) StepRow { return stepRow(i, n) }

// ValueBytes returns how many bytes of values the nodes hold together.
func (s *State) ValueBytes() int64 { return s.values.bytes }

// Signals returns how many signals the run has taken.
func (s *State) Signals() int { return int(s.signals.last) }

// Checkpoints returns how many bytes of checkpoints were recorded, as Ceilings count them.
func (s *State) Checkpoints() int64 { return s.checkpoints }

// SetNode replaces a node.
func (s *State) SetNode(i int, n *model.Node) { s.set(i, n) }

// HandedSignals returns how many signals belong to runs of groups.
func (s *State) HandedSignals() int { return len(s.signals.handed) }

const DefaultInstances = defaultInstances
