// Package schema describes what an agent can do: its configuration, its actions, and the
// types of their fields. `engine-agent-NAME describe` prints a Schema as JSON. A workflow
// is checked against it before any run starts.
//
// Package sdk makes a Schema from the tags of Go structs; package dsl reads it. Authors of
// agents rarely need this package. It imports the standard library only.
package schema
