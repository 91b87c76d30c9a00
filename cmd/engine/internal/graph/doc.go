// Package graph draws the steps of a workflow. In: a dsl.Workflow. Out: nodes and edges, and a
// text in the language of Graphviz or Mermaid. It has no side effects.
package graph
