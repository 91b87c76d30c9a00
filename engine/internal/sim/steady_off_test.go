//go:build !steady

package sim

// steadied says that this binary's interleavings are a function of reseed.
const steadied = false

func reseed(uint64) {}
