// Command engine-agent-sql is the agent for PostgreSQL databases.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
