// Command engine-agent-mock is an agent without a remote service. The inputs of a call say how the
// agent answers. This agent is for tests, examples and benchmarks.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
