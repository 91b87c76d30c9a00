package flows

// Reasons why New does not generate a name of the language.
const (
	beforeRun = "it is decided before a run exists, and no event of a run depends on it"
	noEvent   = "people see it, and no event of a run depends on it"
	outside   = "it needs a database with rows, events or clocks outside of runs"
	plugins   = "it is about processes of plugins, and the worlds have none"
	defaults  = "it gives steps the default of an argument of step.retry, which modules have"
	undoes    = "one code decides about attempts of steps and of undos, and modules have it in step.retry"
)

// Left lists the names of the language that no generated module has, each with its reason. A name
// in a block has a path, such as workflow.retry.jitter. If the name is in a step, a group, a
// variable or an output, the path begins with the nearest of these blocks. In all other cases it
// begins with the outermost block. The path of a block also covers all names in this block. The key
// of a reference begins with the word "ref", such as "ref event".
var Left = map[string]string{
	"engine": beforeRun,

	"agent.plugin":          plugins,
	"agent.version":         plugins,
	"agent.source":          plugins,
	"agent.instances":       plugins,
	"agent.env":             plugins,
	"agent.config":          plugins,
	"agent.circuit_breaker": "the worlds have no circuits; they defer calls at random instead",

	"variable.type":        beforeRun,
	"variable.description": noEvent,
	"variable.sensitive":   noEvent,
	"variable.nullable":    beforeRun,
	"variable.validation":  beforeRun,
	"output.description":   noEvent,
	"output.sensitive":     noEvent,

	"workflow.description":        noEvent,
	"workflow.retention":          "the worlds end before a run is old",
	"workflow.schedule":           outside,
	"workflow.on_event":           outside,
	"workflow.admit":              outside,
	"workflow.unique.scope":       outside,
	"workflow.unique.on_conflict": outside,
	"workflow.unique.retain":      outside,
	"workflow.unique.reset_on":    outside,

	"workflow.retry.max_attempts":     defaults,
	"workflow.retry.strategy":         defaults,
	"workflow.retry.initial_interval": defaults,
	"workflow.retry.multiplier":       defaults,
	"workflow.retry.jitter":           defaults,
	"workflow.retry.on":               defaults,
	"workflow.retry.not_on":           defaults,
	"workflow.retry.on_exhausted":     defaults,
	"workflow.retry.cool_down":        defaults,
	"workflow.retry.cool_downs":       defaults,

	"workflow.notify.retry.max_attempts":     undoes,
	"workflow.notify.retry.strategy":         undoes,
	"workflow.notify.retry.initial_interval": undoes,
	"workflow.notify.retry.multiplier":       undoes,
	"workflow.notify.retry.jitter":           undoes,
	"workflow.notify.retry.on":               undoes,
	"workflow.notify.retry.not_on":           undoes,

	"step.compensate.retry.strategy":         undoes,
	"step.compensate.retry.initial_interval": undoes,
	"step.compensate.retry.multiplier":       undoes,
	"step.compensate.retry.max_interval":     undoes,
	"step.compensate.retry.jitter":           undoes,
	"step.compensate.retry.on":               undoes,
	"step.compensate.retry.not_on":           undoes,

	"ref event": outside,
}
