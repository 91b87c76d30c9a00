package engine

import "context"

// Scan makes one pass of a Supervisor.
func (s *Supervisor) Scan(ctx context.Context) (int, error) { return s.scan(ctx) }

// WithDefaults returns the options with defaults.
func (o Options) WithDefaults() Options { return o.withDefaults() }

// Validate checks the options.
func (o Options) Validate() error { return o.validate() }

// Wrap and Unwrap are how definitions and rows are sealed.
var (
	Wrap       = wrap
	Unwrap     = unwrap
	RowPlace   = rowPlace
	MarkEchoes = markEchoes
	NewRedact  = func(secrets ...string) func(string) string { return (&redactor{secrets: secrets}).text }
)

// DecodeMessage opens a message of an inbox.
var DecodeMessage = decodeMessage
