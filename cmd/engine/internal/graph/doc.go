// Package graph draws the steps of a workflow. In: a dsl.Workflow. Out: nodes and edges, as
// Graphviz or Mermaid. It has no side effects.
package graph
