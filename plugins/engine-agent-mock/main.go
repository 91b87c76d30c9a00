// Command engine-agent-mock is an agent without a service. Its inputs say how it answers.
// It is for tests, examples and benchmarks.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
