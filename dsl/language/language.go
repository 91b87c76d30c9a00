package language

import (
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A Language describes the workflow language for programs, such as editors. It is made from the
// tables with which dsl.Parse reads files, so it contains exactly what dsl.Parse accepts.
type Language struct {
	Version    string                   `json:"language_version"`
	Blocks     []syntax.BlockSchema     `json:"blocks"` // blocks at the top level of a file
	References []syntax.ReferenceSchema `json:"references"`
	Functions  []Signature              `json:"functions"`
}

// Describe returns the description of the language that this engine reads.
func Describe() Language {
	return Language{
		Version: syntax.LanguageVersion, Blocks: syntax.Describe(),
		References: syntax.References(), Functions: signatures(),
	}
}
