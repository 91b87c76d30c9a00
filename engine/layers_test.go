package engine_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/saga-engine/engine"

// A layer is a package (or, with a trailing /..., a tree) and what it may
// import; an import that no entry allows is forbidden.
type layer struct {
	pkg   string
	why   string   // why it may import no more of ours
	ours  []string // of our packages, relative to the module; nil = none
	third []string // prefixes of third-party packages; nil = none
}

// layers is the table of allowed imports, lower layers first.
var layers = []layer{
	{"sdk/internal/names", "names of actions and codes depend on nothing", nil, nil},
	{"sdk/internal/jsontree", "a JSON tree knows no schema and no Go type", nil, nil},
	{"sdk/jsonscan", "a scanner of bytes knows nothing of what they mean", nil, nil},
	{"sdk/schema", "what an agent can do is data: it knows no call and no process", []string{"sdk/internal/names"}, nil},
	{"sdk/internal/typed", "structs as JSON know no action and no call", []string{"sdk/internal/jsontree", "sdk/internal/names", "sdk/schema"}, nil},
	{"sdk/internal/fastjson", "the fast way knows the general one, which it falls back to, and not the other way round", []string{"sdk/internal/jsontree", "sdk/internal/typed", "sdk/jsonscan", "sdk/schema"}, nil},
	{"sdk", "an agent's author depends on nothing but the standard library", []string{"sdk/schema", "sdk/internal/fastjson", "sdk/internal/jsontree", "sdk/internal/names", "sdk/internal/typed"}, nil},
	{"sdk/heap", "the collector's pace depends on nothing", nil, nil},
	{"sdk/client", "a program that submits runs needs no engine", nil, nil},
	{"sdk/private", "what keeps a process private depends on nothing", nil, nil},
	{"sdk/procgroup", "who kills a group of processes does not know what they do", nil, nil},
	{"sdk/plugin/...", "the process protocol is the only place of go-plugin and gRPC", []string{"sdk", "sdk/schema", "sdk/heap", "sdk/private", "sdk/procgroup", "sdk/plugin/..."},
		[]string{"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "google.golang.org/grpc", "google.golang.org/protobuf", "golang.org/x/sys"}},
	{"sdk/sdktest/...", "the rules for agents must run against any agent", []string{"sdk", "sdk/schema", "sdk/plugin", "sdk/sdktest/..."}, nil},
	{"plugins/...", "built-in agents prove that the SDK suffices", []string{"sdk", "sdk/plugin", "sdk/procgroup", "sdk/sdktest", "plugins/..."},
		[]string{"github.com/lib/pq"}},
	{"dsl/diag", "a finding knows its place, not how it was found", nil, []string{"github.com/agext/levenshtein", "golang.org/x/text"}},
	{"dsl/rung", "names of what follows an unknown outcome depend on nothing", nil, nil},
	{"dsl/internal/sorted", "the order of keys depends on nothing", nil, nil},
	{"dsl/internal/graph", "dependencies of numbers: a graph knows no steps", nil, nil},
	{"dsl/span", "a duration is a text and a number", nil, nil},
	{"dsl/internal/value", "a value knows no expression and no source text", []string{"dsl/internal/sorted", "dsl/span", "sdk/jsonscan", "sdk/schema"}, []string{"github.com/zclconf/go-cty"}},
	{"dsl/secret", "what must not be shown is a matter of values", []string{"dsl/internal/value"}, nil},
	{"dsl/internal/metered", "a price knows the sizes of values, and no workflow", []string{"dsl/internal/value"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/internal/functions", "functions are pure: they know their arguments only", []string{"dsl/diag", "dsl/internal/metered", "dsl/internal/sorted", "dsl/internal/value", "dsl/span"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty", "github.com/zclconf/go-cty-yaml", "github.com/apparentlymart/go-cidr", "github.com/google/uuid"}},
	{"dsl/internal/report", "who collects findings does not look for them", []string{"dsl/diag", "dsl/internal/metered", "dsl/internal/value"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/cron", "when a schedule ticks depends on its text and its zone only", nil, []string{"github.com/hashicorp/cronexpr"}},
	{"dsl/internal/rule", "a rule is made from syntax and types only", nil, []string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/selection", "the text of a query depends on no database", nil, nil},
	{"dsl/internal/eval", "an expression sees a scope, and not the workflow around it", []string{"dsl/cron", "dsl/internal/metered", "dsl/internal/report", "dsl/internal/sorted", "dsl/internal/value"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/internal/fasteval", "the fast way knows the general one, which it falls back to, and not the other way round", []string{"dsl/internal/eval", "dsl/internal/metered", "dsl/internal/sorted", "dsl/internal/value", "sdk/schema"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/internal/argument", "arguments know the schema of an action, and not its step", []string{"dsl/diag", "dsl/internal/eval", "dsl/internal/fasteval", "dsl/internal/sorted", "dsl/internal/value", "sdk/schema"},
		[]string{"github.com/zclconf/go-cty"}},
	{"dsl/internal/noun", "nouns are data and functions: they know no source text, and not how they were made", []string{"dsl/cron", "dsl/diag", "dsl/internal/eval", "dsl/internal/value", "dsl/rung", "sdk/schema", "dsl/selection"},
		[]string{"github.com/hashicorp/hcl/v2/hclsyntax"}},
	{"dsl/internal/syntax", "who reads blocks knows their layout, and not their meaning", []string{"dsl/diag", "dsl/internal/eval", "dsl/internal/functions", "dsl/internal/metered", "dsl/internal/report", "dsl/internal/sorted", "dsl/internal/value"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/lock", "lock files are plain values, without expressions and workflows", []string{"dsl/diag", "dsl/internal/report", "dsl/internal/syntax"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"}},
	{"dsl/internal/decl", "declarations say what is written: they know no schema of an agent", []string{"dsl/cron", "dsl/diag", "dsl/internal/eval", "dsl/internal/functions", "dsl/internal/graph", "dsl/internal/metered", "dsl/internal/noun", "dsl/internal/report", "dsl/internal/sorted", "dsl/internal/syntax", "dsl/internal/value", "dsl/secret", "dsl/selection"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/hashicorp/go-version", "github.com/zclconf/go-cty"}},
	{"dsl/internal/link", "linking reads no files: it has declarations and schemas", []string{"dsl/diag", "dsl/internal/argument", "dsl/internal/decl", "dsl/internal/eval", "dsl/internal/fasteval", "dsl/internal/metered", "dsl/internal/noun", "dsl/internal/report", "dsl/internal/rule", "dsl/internal/sorted", "dsl/internal/syntax", "dsl/internal/value", "dsl/selection", "dsl/span", "sdk", "sdk/schema"},
		[]string{"github.com/hashicorp/hcl/v2", "github.com/hashicorp/go-version", "github.com/zclconf/go-cty"}},
	{"dsl", "the language knows neither runs nor stores", []string{"dsl/diag", "dsl/internal/decl", "dsl/internal/eval", "dsl/internal/functions", "dsl/internal/link", "dsl/internal/metered", "dsl/internal/noun", "dsl/internal/report", "dsl/internal/sorted", "dsl/internal/syntax", "dsl/internal/value", "sdk/schema"},
		[]string{"github.com/hashicorp/hcl/v2"}},
	{"dsl/aspects", "only a comparison of definitions needs their parts", []string{"dsl/diag", "dsl/internal/link", "dsl/internal/noun", "dsl/internal/value"}, nil},
	{"dsl/language", "a description has only the tables of the language, and no module", []string{"dsl/internal/functions", "dsl/internal/sorted", "dsl/internal/syntax"},
		[]string{"github.com/hashicorp/hcl/v2/ext/typeexpr", "github.com/zclconf/go-cty"}},
	{"engine/machine/status", "states have names, whatever leads from one to the next", nil, nil},
	{"engine/machine/line", "the order of runs in line depends on their priority and their age alone", nil, nil},
	{"engine/internal/model", "the data of a run know neither rules nor bytes nor stories", []string{"dsl", "sdk", "engine/machine/line", "engine/machine/status"}, nil},
	{"engine/moving", "what a person sees of a migration is what is decided", []string{"dsl", "dsl/diag", "dsl/aspects", "engine/internal/model", "engine/machine/status"}, nil},
	{"engine/machine", "what is decided depends on nothing but the definition and the history", []string{"dsl", "sdk", "engine/internal/model", "engine/machine/line", "engine/machine/status", "engine/moving"}, nil},
	{"engine/story", "who tells what has happened decides nothing", []string{"engine/store/naming", "dsl", "engine/internal/model", "engine/machine", "engine/machine/status"}, nil},
	{"engine/internal/wire", "bytes of records know no store and no story", []string{"dsl", "engine/internal/model", "engine/machine", "engine/machine/line", "engine/machine/status"}, nil},
	{"engine/store/naming", "names of runs and texts know no rows", []string{"engine/machine/status"}, nil},
	{"engine/store/admission", "a check of rows knows no store that runs it", nil, nil},
	{"engine/store/health", "what is found in a store's settings knows no run", nil, nil},
	{"engine/store", "the contract of stores knows runs and their states, and no loop", []string{"engine/machine/status", "engine/store/admission", "engine/store/naming"}, nil},
	{"engine/store/rekey", "who replaces sealed data knows no key", []string{"engine/machine/status", "engine/store"}, nil},
	{"engine/store/snapshots", "who keeps a snapshot does not know what it contains", []string{"engine/machine/status", "engine/store"}, nil},
	{"engine/store/quota", "who divides a limit knows the engines that share it, and not the calls", []string{"engine/machine/status", "engine/store"}, nil},
	{"engine/store/intake", "who keeps submissions knows no run", []string{"engine/store"}, nil},
	{"engine/store/firings", "who keeps firings knows no workflow and starts no run", []string{"engine/store"}, nil},
	{"engine/store/events", "who keeps events knows no run", []string{"engine/store"}, nil},
	{"engine/store/schedules", "who keeps schedules parses no cron expression", []string{"engine/store"}, nil},
	{"engine/store/notice", "who keeps what has to be announced announces nothing", []string{"engine/machine/status", "engine/store", "engine/store/naming"}, nil},
	{"engine/store/replies", "who keeps replies sends none", []string{"engine/machine/status", "engine/store", "engine/store/naming"}, nil},
	{"engine/store/goals", "who may reach a goal again is decided by the store that keeps it", []string{"engine/machine/status", "engine/store", "engine/store/naming"}, nil},
	{"engine/refusal", "why a submission is refused is data: it asks no store and no run", []string{"engine/store/goals"}, nil},
	{"engine/store/faultpoints", "places where faults strike surround a store and change nothing", []string{"engine/internal/failpoint", "engine/machine/status", "engine/store", "engine/store/quota", "engine/store/notice", "engine/store/replies", "engine/store/goals", "engine/store/rekey", "engine/store/snapshots", "engine/store/health", "engine/store/schedules", "engine/store/events", "engine/store/firings", "engine/store/intake", "engine/store/naming"}, nil},
	{"engine/internal/wait", "a pause knows nothing of what it waits for", nil, nil},
	{"engine/internal/guard", "who stops a panic knows nothing of its cause", nil, nil},
	{"engine/crypt", "who seals does not know what is sealed", nil, []string{"golang.org/x/sys"}},
	{"engine/journal", "who reads and writes histories runs nothing", []string{"engine/store/naming", "dsl", "engine/crypt", "engine/internal/guard", "engine/internal/wait", "engine/internal/wire", "engine/machine", "engine/machine/status", "engine/store", "engine/store/rekey", "engine/store/snapshots", "engine/store/schedules", "engine/story"}, nil},
	{"engine/operator", "a verb needs no running engine", []string{"engine/store/faultpoints", "engine/store/naming", "dsl", "engine/crypt", "engine/internal/guard", "engine/internal/wait", "engine/journal", "engine/machine", "engine/machine/status", "engine/store", "engine/story"}, nil},
	{"engine/invoke", "what calls agents knows no runs, stores or leases", []string{"dsl", "engine/machine", "engine/machine/status", "sdk"}, nil},
	{"engine/internal/clock", "the time of the store is a number of its answers", nil, nil},
	{"engine/internal/outage", "it counts what failed, whatever that was", nil, nil},
	{"engine/internal/lists", "a list knows nothing of its items", nil, nil},
	{"engine/internal/commit", "a group commit knows transitions, not runs or agents", []string{"engine/internal/outage", "engine/internal/wait", "engine/store"}, nil},
	{"engine/internal/call", "a call knows its run's id and schema, not its state: it hands answers to a Member",
		[]string{"engine/store/naming", "dsl", "dsl/secret", "engine/crypt", "engine/internal/clock", "engine/internal/failpoint", "engine/internal/guard", "engine/internal/outage", "engine/internal/wait", "engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/store", "sdk"}, nil},
	{"engine/internal/children", "who answers for child runs asks the store, and decides on no run",
		[]string{"engine/store/naming", "dsl", "engine/crypt", "engine/internal/call", "engine/internal/clock", "engine/internal/failpoint", "engine/internal/guard", "engine/internal/outage", "engine/internal/wait",
			"engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/moving", "engine/store", "sdk"}, nil},
	{"engine/internal/limits", "a limit knows agents and the store's role that divides it, and no run",
		[]string{"engine/internal/clock", "engine/internal/outage", "engine/internal/wait", "engine/invoke", "engine/machine", "engine/store", "engine/store/quota"}, nil},
	{"engine/internal/owner", "who decides on runs knows no lease and no other engine",
		[]string{"engine/store/admission", "engine/store/naming", "dsl", "engine/crypt", "engine/internal/call", "engine/internal/clock", "engine/internal/commit", "engine/internal/failpoint", "engine/internal/limits", "engine/internal/guard", "engine/internal/lists", "engine/internal/outage", "engine/internal/wait",
			"engine/invoke", "engine/journal", "engine/machine", "engine/machine/line", "engine/machine/status", "engine/moving", "engine/store", "engine/store/snapshots", "engine/story"}, nil},
	{"engine/internal/cluster", "who finds runs hands them to their owner and calls no agent",
		[]string{"engine/store/naming", "engine/crypt", "engine/internal/call", "engine/internal/commit", "engine/internal/failpoint", "engine/internal/outage", "engine/internal/owner", "engine/internal/wait",
			"engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/store", "engine/store/snapshots", "engine/story"}, nil},
	{"engine/internal/submit", "who makes a run's first row calls no agent, and decides nothing about a run that exists",
		[]string{"dsl", "engine/crypt", "engine/internal/children", "engine/internal/clock", "engine/internal/commit", "engine/internal/failpoint", "engine/internal/guard", "engine/internal/owner", "engine/internal/wait",
			"engine/invoke", "engine/journal", "engine/machine", "engine/machine/line", "engine/machine/status", "engine/moving", "engine/refusal", "engine/store", "engine/store/admission", "engine/store/goals", "engine/store/naming", "engine/store/faultpoints", "engine/store/replies"}, nil},
	{"engine/internal/notify", "who announces a state starts a notification, and does not deliver it",
		[]string{"dsl", "engine/crypt", "engine/internal/commit", "engine/internal/failpoint", "engine/internal/guard", "engine/internal/owner", "engine/internal/submit", "engine/internal/wait", "engine/journal", "engine/machine", "engine/machine/status", "engine/store", "engine/store/naming", "engine/store/notice"}, nil},
	{"engine/internal/ticks", "who starts the runs of schedules submits them, and decides nothing about them",
		[]string{"dsl", "dsl/cron", "engine/crypt", "engine/internal/failpoint", "engine/internal/wait", "engine/journal", "engine/store", "engine/store/naming", "engine/store/schedules"}, nil},
	{"engine/internal/inbox", "who starts the runs of events submits them, and decides nothing about them",
		[]string{"dsl", "engine/crypt", "engine/internal/failpoint", "engine/internal/wait", "engine/journal", "engine/store", "engine/store/events", "engine/store/naming", "engine/store/schedules"}, nil},
	{"engine/internal/selects", "who starts the runs of rows decides nothing about a run",
		[]string{"dsl", "dsl/cron", "dsl/selection", "engine/crypt", "engine/internal/failpoint", "engine/internal/inbox", "engine/internal/ticks", "engine/internal/wait", "engine/journal", "engine/store", "engine/store/firings", "engine/store/naming"}, nil},
	{"engine/internal/publish", "who publishes a workflow writes rows, and starts no run",
		[]string{"dsl", "dsl/cron", "dsl/selection", "engine/crypt", "engine/internal/inbox", "engine/internal/selects", "engine/internal/ticks", "engine/internal/wait", "engine/journal", "engine/refusal", "engine/store", "engine/store/firings", "engine/store/replies", "engine/store/schedules"}, nil},
	{"engine/internal/intake", "who accepts submissions submits them, and decides nothing about them",
		[]string{"dsl", "engine/crypt", "engine/internal/failpoint", "engine/internal/wait", "engine/journal", "engine/store", "engine/store/intake"}, nil},
	{"engine/internal/sources", "who starts runs for rows of the store submits them, and decides nothing about them",
		[]string{"dsl", "engine/crypt", "engine/internal/inbox", "engine/internal/intake", "engine/internal/publish", "engine/internal/selects", "engine/internal/submit", "engine/internal/ticks", "engine/internal/wait", "engine/journal", "engine/machine", "engine/refusal", "engine/store", "engine/store/events", "engine/store/firings", "engine/store/goals", "engine/store/intake", "engine/store/naming", "engine/store/schedules"}, nil},
	{"engine/internal/outbox", "who delivers replies decides nothing about runs", []string{"engine/internal/failpoint", "engine/internal/guard", "engine/internal/wait", "engine/store/replies"}, nil},
	{"engine/internal/replyto", "who calls an agent with a reply repeats nothing and keeps nothing", []string{"dsl", "dsl/secret", "engine/internal/clock", "engine/internal/outbox", "engine/invoke", "engine/machine/status", "engine/store/replies", "sdk"}, nil},
	{"engine/webhook", "who sends replies knows no store and no run", []string{"engine/store/replies"}, nil},
	{"engine", "an embedder's face knows contracts, not databases, processes or screens",
		[]string{"dsl", "dsl/cron", "sdk", "engine/crypt", "engine/internal/call", "engine/internal/children", "engine/internal/cluster", "engine/internal/lists", "engine/internal/notify", "engine/internal/outage", "engine/internal/outbox", "engine/internal/owner", "engine/internal/publish", "engine/internal/replyto", "engine/internal/selects", "engine/internal/sources", "engine/internal/submit", "engine/internal/ticks", "engine/internal/wait",
			"engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/moving", "engine/refusal", "engine/store", "engine/store/firings", "engine/store/naming", "engine/store/notice", "engine/store/faultpoints", "engine/store/replies", "engine/store/schedules", "engine/story"}, nil},
	{"engine/internal/failpoint/...", "a place where a fault may strike knows nothing of what it strikes", []string{"engine/internal/failpoint/..."}, nil},
	{"engine/internal/hostile/cmd/...", "an agent of a test knows only the SDK", []string{"sdk", "sdk/plugin"}, nil},
	{"engine/internal/hostile/...", "it drives the built command and knows no code", nil, []string{"github.com/rogpeppe/go-internal"}},
	{"engine/internal/comments", "it reads the code as text", nil, nil},
	{"engine/internal/planted/...", "a list of faults changes source text and knows no code", nil, nil},
	{"engine/internal/keyrace", "a check of answers knows only what a store answers", []string{"engine/internal/pgtest", "engine/machine/status", "engine/store", "engine/store/goals", "engine/store/memory", "engine/store/naming", "engine/store/postgres"}, []string{"github.com/anishathalye/porcupine"}},
	{"engine/internal/chaos/...", "fault tests put everything together", []string{"dsl", "sdk", "sdk/...", "engine/..."}, []string{"github.com/lib/pq", "github.com/Shopify/toxiproxy", "github.com/rs/zerolog"}},
	{"engine/agents/...", "processes and breakers stay behind Invoker", []string{"dsl", "dsl/diag", "dsl/lock", "dsl/secret", "engine", "engine/agents/...", "engine/invoke", "engine/machine", "engine/machine/status", "engine/store", "sdk", "sdk/plugin", "sdk/schema"},
		[]string{"github.com/sony/gobreaker", "github.com/hashicorp/go-version", "golang.org/x/sys"}},
	{"engine/store/storekit", "what stores share is for their authors, not for engines", []string{"engine/machine/status", "engine/store"}, nil},
	{"engine/store/postgres/...", "a store knows transitions, not workflows", []string{"engine/store/admission", "engine/store/naming", "engine/store/health", "engine/internal/wait", "engine/machine/status", "engine/store", "engine/store/quota", "engine/store/notice", "engine/store/replies", "engine/store/goals", "engine/store/rekey", "engine/store/intake", "engine/store/firings", "engine/store/events", "engine/store/schedules", "engine/store/snapshots", "engine/store/storekit", "engine/store/postgres/..."},
		[]string{"github.com/lib/pq", "github.com/pressly/goose"}},
	{"engine/store/sqlite/...", "a store knows transitions, not workflows", []string{"engine/store/admission", "engine/store/naming", "engine/internal/wait", "engine/machine/status", "engine/store", "engine/store/quota", "engine/store/notice", "engine/store/replies", "engine/store/goals", "engine/store/rekey", "engine/store/events", "engine/store/schedules", "engine/store/snapshots", "engine/store/storekit", "engine/store/sqlite/..."},
		[]string{"modernc.org/sqlite", "github.com/pressly/goose", "golang.org/x/sys"}},
	{"engine/store/memory/...", "a store knows transitions, not workflows", []string{"engine/store/admission", "engine/store/naming", "engine/machine/status", "engine/store", "engine/store/quota", "engine/store/notice", "engine/store/replies", "engine/store/goals", "engine/store/rekey", "engine/store/events", "engine/store/schedules", "engine/store/snapshots", "engine/store/storekit", "engine/store/memory/..."}, nil},
	{"engine/store/storetest/...", "the suite must run against any store", []string{"engine/store/admission", "engine/store/naming", "engine/machine/status", "engine/store", "engine/store/quota", "engine/store/notice", "engine/store/replies", "engine/store/goals", "engine/store/rekey", "engine/store/events", "engine/store/schedules", "engine/store/snapshots", "engine/store/storekit", "engine/store/storetest/..."}, nil},
	{"engine/telemetry/...", "metrics know what an engine tells, not its parts", []string{"engine", "engine/machine", "engine/machine/status", "engine/store", "engine/story"},
		[]string{"github.com/prometheus/client_golang"}},
	{"engine/internal/pgtest/...", "it starts a database server for tests", []string{"engine/internal/pgtest/..."}, []string{"github.com/lib/pq"}},
	{"engine/internal/sim/...", "a simulation simulates the store and the agents", []string{"dsl", "engine", "engine/crypt", "engine/internal/sim/...", "engine/internal/wait", "engine/internal/wire", "engine/store/snapshots", "engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/operator", "engine/store", "engine/store/memory", "engine/store/naming", "engine/store/notice", "engine/store/quota", "engine/store/storekit", "engine/story", "sdk"}, nil},

	// The rooms of the command line. Commands import rooms. A room imports no command.
	{"cmd/engine/render", "who draws facts and tables reads nothing", []string{"dsl", "dsl/diag", "engine/machine/status", "engine/story"}, nil},
	{"cmd/internal/pause", "a pause knows nothing of what it waits for", nil, nil},
	{"cmd/engine/internal/words", "text knows no run and no store",
		[]string{"dsl/span"}, nil},
	{"cmd/engine/internal/exit", "a code depends on how a run ended, and on nothing else",
		[]string{"engine/machine/status", "engine/story"}, nil},
	{"cmd/engine/internal/regular", "who opens a file does not know what is in it",
		nil, nil},
	{"cmd/engine/internal/process", "the name of a process depends on the machine, and on nothing else", nil, nil},
	{"cmd/engine/internal/cli", "an invocation knows streams, flags and errors; it opens no state and loads no module",
		[]string{"cmd/engine/internal/exit", "cmd/engine/internal/regular", "cmd/engine/internal/words", "cmd/engine/render", "dsl/diag", "engine/crypt", "engine/journal", "engine/machine/status", "engine/store", "engine/store/naming", "engine/store/postgres", "engine/store/sqlite", "engine/story"}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	{"cmd/engine/internal/module", "who loads a module opens no state",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/regular", "cmd/engine/internal/words", "dsl", "dsl/diag", "dsl/lock", "engine/agents", "sdk/plugin"}, []string{"github.com/spf13/cobra"}},
	{"cmd/engine/internal/session", "who opens a state starts no engine and loads no module",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/words", "cmd/internal/pause", "engine/crypt", "engine/journal", "engine/store", "engine/store/faultpoints", "engine/store/postgres", "engine/store/sqlite"}, nil},
	{"cmd/engine/internal/history", "who reads runs changes none",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "dsl/diag", "engine", "engine/journal", "engine/machine", "engine/machine/line", "engine/machine/status", "engine/store", "engine/store/intake", "engine/store/replies", "engine/store/goals", "engine/store/notice", "engine/store/naming", "engine/story"}, nil},
	{"cmd/engine/internal/engines", "who makes an engine does not know for which command",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/regular", "cmd/engine/internal/process", "cmd/engine/internal/session", "dsl", "dsl/secret", "engine", "engine/agents", "engine/invoke", "engine/machine", "engine/store", "engine/webhook", "sdk/plugin"}, []string{"github.com/spf13/cobra"}},
	{"cmd/engine/internal/graph", "a drawing of steps knows no run",
		[]string{"cmd/engine/render", "dsl"}, nil},
	{"cmd/engine/internal/plan", "a plan starts no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/graph", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "dsl/rung", "engine/machine", "engine/machine/status", "engine/store"}, nil},
	{"cmd/engine/internal/follow", "who follows a run does not care who works on it",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/graph", "cmd/engine/internal/history", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "engine/journal", "engine/machine", "engine/store", "engine/story"}, nil},
	{"cmd/engine/internal/show", "what is shown has been read before",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "engine/machine", "engine/machine/status", "engine/store", "engine/store/intake", "engine/store/replies", "engine/store/goals", "engine/store/notice", "engine/story"}, nil},
	{"cmd/engine/internal/verbs", "a verb needs no engine in this process",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/follow", "cmd/engine/internal/history", "cmd/engine/internal/regular", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "engine/machine", "engine/machine/status", "engine/operator", "engine/store", "engine/story"}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}},
	{"cmd/engine/internal/explain", "an explanation changes nothing",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/process", "cmd/engine/internal/session", "cmd/engine/internal/verbs", "cmd/engine/internal/words", "cmd/engine/render", "engine/journal", "engine/machine", "engine/operator", "engine/store", "engine/story"}, nil},
	{"cmd/engine/internal/console", "a console evaluates and changes nothing",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "dsl/diag", "engine/machine"}, []string{"golang.org/x/term"}},
	{"cmd/engine/internal/starts", "what waits for an engine is not started here", []string{"engine/store", "engine/store/events", "engine/store/intake"}, nil},
	{"cmd/engine/internal/doctor", "a checkup starts nothing",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/internal/starts", "cmd/engine/internal/words", "cmd/engine/render", "cmd/internal/pause", "dsl", "dsl/diag", "engine", "engine/agents", "engine/journal", "engine/machine/status", "engine/store", "engine/store/intake", "engine/store/replies", "engine/store/health"}, nil},
	{"cmd/engine/internal/keys", "who seals a state again starts no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/session", "cmd/engine/render", "engine/crypt", "engine/journal", "engine/store"}, nil},
	{"cmd/engine/internal/eventbox", "who sends an event starts no run",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/session", "cmd/engine/render", "dsl/diag", "engine/store/events", "engine/store/schedules"}, nil},
	{"cmd/engine/internal/goal", "what a reset needs is decided in the store",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "engine/store", "engine/store/goals"}, nil},
	{"cmd/engine/internal/schedule", "who publishes workflows starts no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/engines", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/render", "dsl/diag", "engine", "engine/journal", "engine/store", "engine/store/firings", "engine/store/schedules"}, nil},
	{"cmd/engine/internal/apply", "one run to its end: it knows nothing of serving",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/engines", "cmd/engine/internal/exit", "cmd/engine/internal/follow", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/plan", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "cmd/internal/pause", "dsl", "dsl/diag", "engine", "engine/agents", "engine/crypt", "engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/store", "engine/store/replies", "engine/store/naming", "engine/store/sqlite", "engine/story"}, nil},
	{"cmd/engine/internal/alerts", "who pushes alerts knows an outbox, and no run",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/words", "cmd/engine/render", "cmd/internal/pause", "dsl", "dsl/secret", "engine/store", "sdk/procgroup"}, nil},
	{"cmd/engine/internal/serving", "who serves follows no single run",
		[]string{"cmd/engine/internal/alerts", "cmd/engine/internal/cli", "cmd/engine/internal/engines", "cmd/engine/internal/exit", "cmd/engine/internal/module", "cmd/engine/internal/process", "cmd/engine/internal/session", "cmd/engine/internal/starts", "cmd/engine/internal/words", "cmd/engine/render", "engine", "engine/agents", "engine/machine", "engine/machine/status", "engine/store", "engine/store/naming", "engine/store/intake", "engine/store/replies", "engine/story", "engine/telemetry"}, nil},
	{"cmd/engine/internal/commands/author", "commands of authors open no state themselves",
		[]string{"cmd/engine/example", "cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/graph", "cmd/engine/internal/module", "cmd/engine/internal/plan", "cmd/engine/internal/regular", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "dsl/diag", "dsl/language", "dsl/lock", "dsl/rung", "engine/agents", "sdk/schema"}, []string{"github.com/rogpeppe/go-internal", "github.com/spf13/cobra"}},
	{"cmd/engine/internal/migrate", "who moves a run asks its owner, and starts no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/internal/verbs", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "engine/machine", "engine/moving", "engine/operator", "engine/store"}, nil},
	{"cmd/engine/internal/restart", "who restarts a run records a new one, and starts no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/engines", "cmd/engine/internal/exit", "cmd/engine/internal/history", "cmd/engine/internal/module", "cmd/engine/internal/session", "cmd/engine/internal/verbs", "cmd/engine/internal/words", "cmd/engine/render", "dsl", "engine", "engine/moving", "engine/refusal", "engine/store", "engine/store/naming"}, nil},
	{"cmd/engine/internal/commands/runs", "commands on runs make no engine",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/console", "cmd/engine/internal/exit", "cmd/engine/internal/explain", "cmd/engine/internal/follow", "cmd/engine/internal/history", "cmd/engine/internal/migrate", "cmd/engine/internal/module", "cmd/engine/internal/restart", "cmd/engine/internal/session", "cmd/engine/internal/show", "cmd/engine/internal/verbs", "cmd/engine/internal/words", "cmd/engine/render", "dsl/diag", "engine/machine", "engine/machine/status", "engine/store", "engine/store/replies", "engine/store/naming", "engine/store/notice", "engine/store/storekit"}, []string{"github.com/spf13/cobra"}},
	{"cmd/engine/internal/commands/operate", "commands of operators leave the work to apply, serving, doctor, keys and schedule",
		[]string{"cmd/engine/internal/apply", "cmd/engine/internal/cli", "cmd/engine/internal/doctor", "cmd/engine/internal/eventbox", "cmd/engine/internal/exit", "cmd/engine/internal/goal", "cmd/engine/internal/history", "cmd/engine/internal/keys", "cmd/engine/internal/module", "cmd/engine/internal/schedule", "cmd/engine/internal/serving", "cmd/engine/internal/session", "cmd/engine/internal/words", "cmd/engine/render", "engine/machine/status", "engine/store", "engine/store/postgres"}, []string{"github.com/spf13/cobra"}},
	{"cmd/engine/example", "examples are files", nil, nil},
	{"cmd/internal/procs", "the number of processors depends on nothing", nil, nil},
	{"cmd/internal/vuln", "it runs a tool and knows no code", nil, nil},
	{"cmd/engine", "the process has the list of commands; what they do is in their rooms",
		[]string{"cmd/engine/internal/cli", "cmd/engine/internal/commands/author", "cmd/engine/internal/commands/operate", "cmd/engine/internal/commands/runs", "cmd/internal/procs", "sdk/heap", "sdk/private"}, []string{"github.com/spf13/cobra"}},
	{"cmd/bench/internal/gauge", "a gauge knows bytes and files of the system, and no engine", nil, nil},
	{"cmd/bench/internal/rival", "the other queue needs nothing of this one", nil, []string{"github.com/jackc/pgx/v5", "github.com/riverqueue/river"}},
	{"cmd/bench", "benchmarks use only packages that the product uses, too",
		[]string{"cmd/bench/internal/gauge", "cmd/bench/internal/rival", "cmd/internal/pause", "cmd/internal/procs", "dsl", "engine", "engine/agents", "engine/invoke", "engine/journal", "engine/machine", "engine/machine/status", "engine/operator", "engine/store", "engine/store/memory", "engine/store/naming", "engine/store/postgres", "engine/store/snapshots", "engine/store/sqlite", "engine/telemetry", "sdk", "sdk/heap"}, []string{"github.com/jackc/pgx/v5"}},
}

// forbiddenStd are parts of the standard library that a package, or with /... a tree of
// packages, must do without.
var forbiddenStd = map[string]map[string]string{
	"engine/internal/model": {
		"context": "data do not wait", "sync": "data are one goroutine's", "os": "data read nothing", "math/rand/v2": "chance would make two decisions differ",
	},
	"engine/machine": {
		"context": "deciding does not wait", "sync": "deciding is one goroutine's", "os": "deciding reads nothing",
		"net": "deciding reads nothing", "math/rand": "chance would make two decisions differ", "math/rand/v2": "chance would make two decisions differ",
		"crypto/rand": "chance would make two decisions differ",
	},
	"dsl/...": {"net/http": "the language reads only the files it is given", "os/exec": "expressions start nothing"},
}

// matches reports whether pkg is covered by pattern.
func matches(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pkg == pattern
}

// S13, S42: each package imports only what its layer allows; the definition
// language knows no engine, the core no clock, the loops no database.
func TestLayers(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "examples" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.pkg, pkg) })
		if i < 0 {
			t.Errorf("%s: package %s is in no layer", file, pkg)
			return nil
		}
		seen[layers[i].pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("read imports: %w", err)
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if problem := layers[i].problem(pkg, name); problem != "" {
				t.Errorf("%s: %s", path.Join(pkg, filepath.Base(file)), problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"sdk", "dsl", "dsl/internal/link", "engine/machine", "engine/machine/status", "engine"} {
		if !seen[pkg] {
			t.Errorf("no file of layer %s was found: the test looks at the wrong tree", pkg)
		}
	}
}

// House rule 3: an embedder reads package engine as one page. It has at most 15 files, besides tests.
// What an embedder does not need to see belongs in a package behind it.
func TestPackageEngineIsSmall(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	if len(files) == 0 || len(files) > 15 {
		t.Errorf("package engine has %d files besides tests, want 1 to 15: %s", len(files), strings.Join(files, ", "))
	}
}

// problem says why a package of the layer may not import name; "" = it may.
func (l layer) problem(pkg, name string) string {
	if ours, ok := strings.CutPrefix(name, module+"/"); ok {
		if !slices.ContainsFunc(l.ours, func(p string) bool { return matches(p, ours) }) {
			return fmt.Sprintf("imports %s: %s", ours, l.why)
		}
		return ""
	}
	if !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		for pattern, forbidden := range forbiddenStd {
			if why, bad := forbidden[name]; bad && matches(pattern, pkg) {
				return fmt.Sprintf("imports %s: %s", name, why)
			}
		}
		return ""
	}
	if !slices.ContainsFunc(l.third, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") }) {
		return fmt.Sprintf("imports %s, which is not in its layer's list: %s", name, l.why)
	}
	return ""
}

// Each row of the table has its row in CONTRIBUTING, which says in words what the package is for.
// CONTRIBUTING names no package that has no row here.
func TestLayersAreInContributing(t *testing.T) {
	data, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "\n## Layers\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) == 6 {
			for i, text := range strings.Split(cells[1], "`") {
				if i%2 == 1 { // between two backquotes
					named[text] = true
				}
			}
		}
	}
	named["plugins"] = named["plugins/engine-agent-*"] // one row for all agents
	delete(named, "plugins/engine-agent-*")
	for _, l := range layers {
		pkg := strings.TrimSuffix(l.pkg, "/...")
		if !named[pkg] {
			t.Errorf("CONTRIBUTING has no row for %s", pkg)
		}
		delete(named, pkg)
	}
	for pkg := range named {
		t.Errorf("CONTRIBUTING has a row for %s, which is in no layer", pkg)
	}
}

// The rules of the table catch what they are for.
func TestLayersCatch(t *testing.T) {
	tests := []struct{ pkg, imports string }{
		{"sdk", "github.com/hashicorp/go-plugin"},
		{"dsl", module + "/engine"},
		{"dsl/internal/eval", module + "/dsl/internal/fasteval"},
		{"dsl/internal/functions", "net/http"},
		{"engine/machine", "context"},
		{"engine/machine", module + "/engine"},
		{"engine", "github.com/lib/pq"},
		{"engine", module + "/engine/store/memory"},
		{"engine/store/postgres", module + "/dsl"},
		{"plugins/engine-agent-http", module + "/engine"},
		{"engine/agents", "github.com/zclconf/go-cty/cty"},
		{"cmd/engine/internal/cli", module + "/cmd/engine/internal/session"},
		{"cmd/engine/internal/session", module + "/cmd/engine/internal/module"},
		{"cmd/engine/internal/verbs", module + "/cmd/engine/internal/engines"},
		{"cmd/engine/internal/commands/runs", module + "/engine"},
	}
	for _, tt := range tests {
		i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.pkg, tt.pkg) })
		if i < 0 || layers[i].problem(tt.pkg, tt.imports) == "" {
			t.Errorf("%s may import %s", tt.pkg, tt.imports)
		}
	}
	if _, err := os.Stat("internal/cluster/supervisor.go"); err != nil {
		t.Error(err)
	}
}
