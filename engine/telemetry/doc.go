// Package telemetry publishes metrics of an engine. Meters is an engine.Observer that counts
// events. At each scrape, Meters also reads present values from the engine: owned runs, calls in
// flight, circuits. The number of label values is limited: they are names of states and kinds, and
// names of at most 100 agents.
package telemetry
