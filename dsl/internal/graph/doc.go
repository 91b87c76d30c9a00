// Package graph sorts numbers by their dependencies. Package decl uses it for the steps of a
// workflow.
//
// Each node of a graph is a number, and a node waits for other nodes. The package knows nothing
// about steps. The results depend only on the graph, and not on the order of a map.
package graph
