package decl

import "github.com/saga-engine/engine/dsl/internal/report"

// A decoder turns blocks into declarations.
type decoder struct {
	*report.Reporter
	lit           literalDecoder
	m             *Module    // module to which the decoder adds the declarations
	libs          *libraries // libraries of the main module
	source        readSource // source of the results of file(), env() and similar functions
	engineVersion string     // version to compare with required_version; "" = do not compare
}
