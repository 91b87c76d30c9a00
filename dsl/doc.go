// Package dsl reads workflows written in HCL and turns them into immutable
// values (nouns.go). The engine runs these values and needs no knowledge of HCL.
//
// Three functions do this work. Each of them continues after an error, so that it can report
// several errors at once:
//
//	Parse(fs.FS)            source text  → Module      names, graph, constants
//	Link(Module, agents)    + schemas    → Definition  arguments, types, undo
//	Workflow.Bind(values)   + variables  → Value       the input of one run
//
// The engine then computes everything else from a Workflow and a Scope: the
// arguments of a step, whether the step runs, how often it is repeated, and how
// it is undone. A Scope holds the variables of a run and the results of its
// finished steps. The functions of the language are pure, so a second evaluation
// gives the same value.
//
// # The language on one page
//
// The *.hcl and *.hcl.json files of a directory form one module. Files whose names begin with a dot
// or end in .test.hcl, .vars.hcl, .test.hcl.json or .vars.hcl.json do not belong to it.
//
//	engine    { required_version }
//	agent "N" { plugin, version, source, instances, max_concurrency, rate_limit, env, config {},
//	            idempotent,
//	            circuit_breaker { trip_after, failure_ratio, min_calls, window, cool_down, probes }
//	            action "N" { uses, input {}, output, result, ... } }
//	library "N" { source }
//	variable "N" { type, default, description, sensitive, nullable, validation { condition, error_message } }
//	locals { ... }
//	moved { from, to }
//	workflow "N" {
//	  description, deadline, priority, retention, retry {}, unique { key, scope, on_conflict, retain }
//	  concurrency { limit, key, when_full }, compensation { mode, deadline }
//	  schedule "N" { cron, time_zone, overlap, catch_up, variables
//	    select { sql, key, args, strategy, page_size, parallel, stable, max_keys, filter }
//	  }
//	  variable "N" {}   locals {}   output "N" { value, description, sensitive }
//	  step "N" {
//	    action = agent.NAME.ACTION        input { ... }   # or library.N.agent.NAME.ACTION
//	    workflow = workflow.NAME          input { ... }   # a child run, in place of action
//	    value, timer {}, wait {}                          # each of them in place of action
//	    when, for_each, max_parallel, max_failures, depends_on
//	    repeat { until, interval, max_iterations, collect }
//	    timeout, heartbeat_timeout, deadline, retry {}, on_rerun, idempotency_key, output_type, priority
//	    precondition {}, postcondition {} { condition, error_message, error_code }
//	    fail_when { condition, error_message, error_code, permanent }
//	    catch { errors, output }
//	    compensate { action, input {}, timeout, deadline, retry {}, idempotent, by_key }
//	    compensation = "none", pivot, idempotent, read_only
//	  }
//	  group "N" {
//	    for_each, max_parallel, max_failures, when, depends_on, deadline, catch {}
//	    locals {}   step "N" {}   group "N" {}   output "N" {}
//	  }
//	  notify { on, action, input {}, timeout, retry {} }
//	}
//
// Expressions can refer to:
//
//	var.N, local.N, run
//	step.N.ATTRIBUTE       or step.N["key"].ATTRIBUTE if the step has for_each; the attributes are
//	                       output, status, attempts, error, started_at, ended_at, timed_out, signal
//	                       and collected
//	group.N                in the same forms as step.N, without the last three attributes
//	each.key, each.value   with for_each
//	self                   in postcondition, fail_when, repeat and compensate
//	self.previous          with repeat, also in most other arguments of the step
//	self.collected         with repeat and collect, in the same arguments as self.previous
//	self.error             in the output of catch
//	self.key, self.output  in an action block: self.key in input, self.output in result and fail_when
//	failure                in compensate and notify
//	args                   in the input of an action block
//	row                    in a select block, and in the argument `variables` next to this block
//	event                  in on_event and reset_on
//
// If a step refers to another step, it depends on that step and starts later. References in a
// compensate block are an exception: they may only name steps that run earlier anyway. Besides
// references, only depends_on and pivot determine the order of the steps.
//
// # Sensitive values and secrets
//
// A Value is JSON with pointers to its sensitive parts. If an expression uses a sensitive part, the
// result of the expression is sensitive, too. A secret("env:X") never becomes part of the JSON: a
// Value holds a reference to it next to the JSON. secret.Resolve replaces the reference by the
// secret, right before the call. A text from a variable or an output never becomes such a
// reference, even if the text is "env:X".
//
// # Stored definitions
//
// A Definition is stored as a manifest and the contents that it names: the
// source text of the module and its libraries, the results of file(), env() and similar
// functions, and the schemas and checksums of the agents. Decode needs nothing else. So a run
// can use the same definition until the run ends.
//
// # Packages
//
// This package holds Parse, Link, stored definitions, and the names of the types in
// nouns.go. Packages below dsl/internal do the work. Of the packages in this list, a
// package may import only the ones above it or before it on the same line:
//
//	value, metered, functions   values, limits of cost, functions
//	report, eval, fasteval      findings, evaluation, faster evaluation of common expressions
//	argument, noun              arguments of calls, types of a linked definition
//	syntax, decl, link          text to blocks, blocks to declarations, declarations to workflows
//
// Packages outside of dsl may import dsl, and the packages below dsl that are not in dsl/internal,
// such as dsl/diag and dsl/secret.
package dsl
