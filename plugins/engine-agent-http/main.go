// Command engine-agent-http is the agent that calls services over HTTP.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
