//go:build steady

package sim

import _ "unsafe" // for go:linkname

// steadied says that this binary's interleavings are a function of reseed.
const steadied = true

//go:linkname reseed runtime.steadyReseed
func reseed(seed uint64)
