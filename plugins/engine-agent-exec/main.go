// Command engine-agent-exec is the agent that runs programs on the engine's machine.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
