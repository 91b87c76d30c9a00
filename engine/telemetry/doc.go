// Package telemetry publishes metrics of an engine. Meters is an engine.Observer that
// counts events. At each scrape it also asks the engine for present values: owned runs,
// calls in flight, circuits. The number of label values is bounded: labels are names of
// states and of at most 100 agents.
package telemetry
