package serving

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// A runLog writes a log line when a run is accepted, is taken over, turns back, needs a person
// or ends, and for each verb. It looks up names in a separate goroutine, so that the engine
// never waits for a lookup. If there are too many lines in a short time, it leaves some out
// and counts them.
type runLog struct {
	store store.Full
	log   *slog.Logger
	lines chan runLine
	lost  atomic.Int64
	// Public names of runs. Only the goroutine of the method `run` uses this map.
	names map[status.RunID]string
}

type runLine struct {
	run  status.RunID
	fact story.Fact
}

const (
	runLogLines  = 4096            // largest number of lines that wait to be written
	runLogNames  = 10000           // largest number of run names in memory
	runLogRush   = 100             // if more lines than this wait, the log does not look up names
	findPatience = 2 * time.Second // longest time to look up one name
)

var _ engine.Observer = (*runLog)(nil)

func newRunLog(store store.Full, log *slog.Logger) *runLog {
	return &runLog{store: store, log: log, lines: make(chan runLine, runLogLines), names: map[status.RunID]string{}}
}

// runLogFacts are the kinds of facts for which runLog writes a line.
var runLogFacts = []story.FactKind{
	story.FactRunCreated, story.FactRunTakenOver, story.FactRunTurned, story.FactRunParked, story.FactRunFinished, story.FactVerb,
}

// FactKinds returns the kinds of facts for which runLog writes a line.
func (l *runLog) FactKinds() story.FactKinds { return story.NewFactKinds(runLogFacts...) }

// Facts receives facts about a run. If runLog writes a log line for facts of this kind, Facts puts
// the fact into the queue of runLog. If the queue is full, Facts drops the fact and counts it as
// lost.
func (l *runLog) Facts(run status.RunID, _ int, facts []story.Fact) {
	for i := range facts {
		if !slices.Contains(runLogFacts, facts[i].Kind) {
			continue // the engine sends this kind of fact because another observer needs it
		}
		select {
		case l.lines <- runLine{run, facts[i]}:
		default:
			l.lost.Add(1)
		}
	}
}

// LateReply logs an answer that came after complete-by.
func (l *runLog) LateReply(run status.RunID, attempt machine.AttemptID) {
	l.log.Warn("late answer: it is kept and changes nothing", "run", naming.RunName(run), "call", attempt.Call)
}

// Pass logs how many runs a scan has taken over or claimed. It logs nothing if there are none.
func (l *runLog) Pass(p engine.PassStats) {
	if p.Taken > 0 {
		l.log.Info("took over runs that no engine owned", "runs", p.Taken)
	}
}

// Fenced does nothing: the engine itself logs that it was fenced.
func (l *runLog) Fenced() {}

// run is the method that writes the log lines until ctx ends. Then it writes the lines that still
// wait, and returns.
func (l *runLog) run(ctx context.Context) {
	for {
		select {
		case line := <-l.lines:
			l.write(ctx, line)
		case <-ctx.Done():
			for {
				select {
				case line := <-l.lines:
					l.write(context.WithoutCancel(ctx), line)
				default:
					return
				}
			}
		}
	}
}

func (l *runLog) write(ctx context.Context, line runLine) {
	if n := l.lost.Swap(0); n > 0 {
		l.log.Warn("lines about runs were left out", "lines", n)
	}
	f := line.fact
	attrs := []any{"run", l.name(ctx, line)}
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, name, value)
		}
	}
	switch f.Kind {
	case story.FactRunCreated:
		add("key", f.Key)
		l.log.Info("run accepted", attrs...)
	case story.FactRunTakenOver:
		if f.Unowned {
			l.log.Info("run claimed", attrs...)
			return
		}
		l.log.Info("run taken over", attrs...)
	case story.FactRunTurned:
		add("step", f.Step)
		add("code", f.Code)
		l.log.Info("run is being undone", attrs...)
	case story.FactVerb:
		add("verb", f.Code)
		add("status", f.Status)
		add("step", f.Step)
		add("by", f.By)
		add("reason", f.Message)
		l.log.Info("operator", attrs...)
	case story.FactRunParked:
		add("status", f.Status)
		add("code", f.Code)
		l.log.Warn("run needs a person", attrs...)
	case story.FactRunFinished:
		add("status", f.Status)
		add("code", f.Code)
		delete(l.names, line.run)
		l.log.Info("run ended", attrs...)
	}
}

// name returns a run's public name. If the store does not answer in time or does not have the run,
// it returns the run's id instead. It also returns the id if it does not know the name and more
// than runLogRush lines wait. Commands accept the name and the id.
func (l *runLog) name(ctx context.Context, line runLine) string {
	if len(l.names) > runLogNames {
		clear(l.names)
	}
	if line.fact.Run != "" {
		l.names[line.run] = line.fact.Run
	}
	if name, ok := l.names[line.run]; ok {
		return name
	}
	if len(l.lines) > runLogRush {
		return naming.RunName(line.run)
	}
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	row, err := l.store.Find(ctx, strconv.FormatInt(int64(line.run), 10))
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			l.log.Debug("look up the name of a run", "run", naming.RunName(line.run), "error", err)
		}
		return naming.RunName(line.run)
	}
	l.names[line.run] = row.Name
	return row.Name
}
