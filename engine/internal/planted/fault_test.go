package planted

// A fault is one deliberate change of the source and the test that notices it.
type fault struct {
	name string // the promise that the change breaks, as a short sentence
	in   string // the declaration that changes; see declaration
	old  string // a piece of that declaration, in which it occurs once
	new  string // what the piece becomes
	also []edit // further changes of the same fault
	by   []test // tests that must fail; one of them is enough
	same string // why nothing can be seen of the change; then by is empty
}

// An edit is one further change of a fault.
type edit struct{ in, old, new string }

// A test is a pattern for -run in a package, named relative to the module.
type test struct{ pkg, run string }

// catches names tests of one package.
func catches(pkg, run string) []test { return []test{{pkg, run}} }

// areas are the lists of faults, one for each part of the shell.
var areas = map[string][]fault{
	"engine":   engineFaults,
	"postgres": postgresFaults,
	"goals":    goalFaults,
	"replace":  replaceFaults,
	"sqlite":   sqliteFaults,
	"agents":   agentsFaults,
	"plugin":   pluginFaults,
	"sdk":      sdkFaults,
	"dsl":      dslFaults,
	"cli":      cliFaults,
	"limits":   limitFaults,
	"admit":    admitFaults,
	"waits":    waitsFaults,
	"order":    orderFaults,
	"notify":   notifyFaults,
	"replies":  replyFaults,
	"starts":   startsFaults,
	"events":   eventFaults,
	"selects":  selectsFaults,
	"children": childrenFaults,
	"capacity": capacityFaults,
	"views":    viewFaults,
}
