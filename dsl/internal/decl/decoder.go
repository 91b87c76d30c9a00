package decl

import "github.com/saga-engine/engine/dsl/internal/report"

// A decoder turns blocks into declarations.
type decoder struct {
	*report.Reporter
	lit           literalDecoder
	m             *Module
	source        readSource
	engineVersion string
}
