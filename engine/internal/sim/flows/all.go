package flows

// All lists the constructs that New generates, in the order of docs/language.md.
var All = []string{
	// agents and libraries
	"agent max_concurrency", "agent rate_limit", "agent idempotent", "declared action", "declared lookup", "declared fail_when", "library",
	// workflows
	"deadline", "priority", "workflow retry", "unique", "concurrency queue", "concurrency reject", "concurrency key",
	"mode manual", "compensation deadline", "variable", "locals", "output",
	"notify succeeded", "notify failed", "notify compensated", "notify cancelled", "notify parked", "notify compensation_failed", "notify overdue",
	"notify retry", "two notify blocks",
	// what a step does
	"action", "child", "child of a library", "value", "timer duration", "timer until", "wait", "wait list", "wait payload", "wait on_timeout",
	// arguments of a step
	"when", "when each", "for_each", "max_parallel", "max_failures", "max_failures percent", "depends_on", "timeout", "step deadline", "step priority",
	"heartbeat_timeout", "checkpoints", "on_rerun undo_first", "retry max_attempts", "retry unbounded", "retry strategy", "retry pauses", "retry on", "retry not_on",
	"on_exhausted park", "on_exhausted cool_down", "on_exhausted compensate", "catch any", "catch code", "catch output", "self.error", "precondition",
	"postcondition", "fail_when", "compensate", "compensate by_key", "compensate retry", "compensate deadline", "compensate timeout", "compensate idempotent",
	"compensation none", "pivot", "after the pivot", "step idempotent", "read_only", "output_type", "idempotency_key",
	"repeat", "repeat until", "repeat interval", "repeat collect", "repeat previous", "repeat when",
	"repeat of a declared action", "self.input in a loop", "repeat until signal",
	// what an expression refers to
	"step output", "step status", "step attempts", "step error", "step times", "step signal", "step collected", "group output",
	"failure", "run",
	// groups and child runs
	"group", "group in a group", "group for_each", "group max_parallel", "group max_failures", "group when", "group deadline", "group catch", "group locals",
	"group concurrency queue", "group concurrency reject", "group concurrency key",
	"child in a group", "child in a child", "child for_each", "child deadline", "child catch", "child repeat", "child compensate", "child compensation none",
	"child unique", "child concurrency",
}
