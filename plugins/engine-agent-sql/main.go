// Command engine-agent-sql is the agent that reads and changes PostgreSQL databases.
package main

import "github.com/saga-engine/engine/sdk/plugin"

func main() { plugin.Serve(newAgent()) }
