// Package telemetry publishes metrics of an engine. Meters is an engine.Observer that
// counts events. At each scrape it also reads present values from the engine: owned runs,
// calls in flight, circuits. The number of label values is limited: labels are names of
// states and of at most 100 agents.
package telemetry
