// Command engine-agent-http is the agent for remote services that speak HTTP.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
