// Package dsl reads workflows written in HCL and turns them into immutable
// nouns that the engine runs without knowing hcl.
//
// There are three steps, and each reports all errors of all files at once:
//
//	Parse(fs.FS)            source text  → Module      names, graph, constants
//	Link(Module, agents)    + schemas    → Definition  arguments, types, undo
//	Workflow.Bind(values)   + variables  → Value       the input of one run
//
// Everything after that is a function of a Workflow and a Scope: the arguments
// of a step, whether it runs, how often it is repeated, how it is undone. A
// Scope shows the variables of a run and the results of its finished steps.
// Functions are pure, so evaluating twice gives the same.
//
// # The language on one page
//
// The *.hcl and *.hcl.json files of a directory form one module.
//
//	engine    { required_version }
//	agent "N" { plugin, version, instances, max_concurrency, env, config {},
//	            circuit_breaker { trip_after, failure_ratio, min_calls, window, cooldown, probes } }
//	variable "N" { type, default, description, sensitive, nullable, validation { condition, error_message } }
//	locals { ... }
//	workflow "N" {
//	  description, deadline, retry {}, unique { key }, compensation { mode, deadline }
//	  variable "N" {}   locals {}   output "N" { value, description, sensitive }
//	  step "N" {
//	    action = agent.NAME.ACTION        input { ... }
//	    when, for_each, max_parallel, max_failures, depends_on
//	    timeout, deadline, retry {}, idempotency_key, output_type
//	    precondition {}, postcondition {} { condition, error_message, error_code }
//	    catch { errors, output }
//	    compensate { action, input {}, timeout, deadline, retry {}, idempotent, by_key }
//	    compensation = "none", pivot, idempotent, read_only
//	  }
//	}
//
// Expressions refer to var.N, local.N, step.N.output.A (with for_each
// step.N["key"].output.A), step.N.status, attempts, error, started_at and
// timed_out, each.key and each.value, self in postcondition and compensate,
// failure in compensate, and run. A reference from one step to another is a
// dependency; there is no other order but depends_on.
//
// # Sensitive values and secrets
//
// A Value is JSON with pointers to its sensitive parts, which follow a value
// through every expression. A secret("env:X") never becomes part of the JSON:
// it travels as a reference next to it and is resolved by secret.Resolve, right
// before the call. No text a user can supply becomes such a reference.
//
// # Stored definitions
//
// A Definition encodes to a manifest and the blobs it names: the source text,
// the answers of file() and env(), the schemas and checksums of the agents.
// Decode needs nothing else, so a run finishes on what it started with.
//
// # Rooms
//
// This package holds the three steps, stored definitions, and the names of the
// nouns (nouns.go). The work is done in packages below dsl/internal, of which
// each may import only those before it:
//
//	value, metered, functions   values, what evaluation costs, functions
//	report, eval, fasteval      findings, expressions in a scope, the same faster
//	argument, noun              arguments of calls, the nouns
//	syntax, decl, link          text to blocks, to declarations, to nouns
//
// dsl/diag, dsl/lock, dsl/rung and dsl/secret are for others too.
package dsl
