// Command engine-agent-mock is an agent without a service behind it. Its inputs
// say what becomes of a call, for tests, examples and benchmarks.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
