// Package schema describes what an agent can do: its configuration, its actions, and the
// types of their fields. `engine-agent-NAME describe` prints a Schema as JSON. The engine
// checks a workflow against the schemas of its agents before any run starts.
//
// Package sdk makes a Schema from the tags of Go structs; package dsl reads the Schema. Authors of
// agents rarely need package schema. The package needs no other module: it imports only the
// standard library and package names of its own module.
package schema
