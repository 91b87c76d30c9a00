// Package telemetry turns what an engine does into metrics. Meters is an
// engine.Observer that counts; what is true at the moment (runs owned, calls in
// flight, breakers) it asks for at each scrape. Label values are bounded: they
// are names of states, and of agents.
package telemetry
