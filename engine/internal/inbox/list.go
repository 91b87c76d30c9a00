package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const (
	keyPage  = 500  // largest number of keys of a list that one scan works on
	maxError = 2000 // largest size of the error of a failed key, in bytes
	maxShown = 3    // largest number of failed keys in the reason of a quarantined event
)

// errLost says that another engine has worked on the list of an event in the meantime.
var errLost = errors.New("another engine has worked on the list of the event")

// A longList is the list of keys of an event and a workflow, in memory. With it, an engine need not
// evaluate for_each again for each page, unless it has worked on another long list in between.
type longList struct {
	seq  int64 // Event.Seq; 0 = there is no list
	id   store.WorkflowID
	keys dsl.Each
}

// A lister works on the list of keys that an event gives to a workflow.
type lister struct {
	x   *Inbox
	e   *events.Event // the method `work` changes e.Lists and e.Version
	f   schedules.Workflow
	def *dsl.Definition
	on  keyed
}

// The type keyed is an on_event block with for_each.
type keyed interface {
	List(id string, at time.Time, data dsl.Value) (list dsl.Each, starts bool, err error)
	GivenEach(id string, at time.Time, data dsl.Value) func(key string, v dsl.Value) ([]dsl.Assignment, error)
}

// work starts the runs of the next page of keys, and stores which of them have started and which
// have failed. After the last key, it starts the runs of keys that have failed and that a person
// retries. The results mean the same as those of Inbox.start.
func (l *lister) work(ctx context.Context) (fault string, more bool, err error) {
	all, starts, err := l.keys()
	if err != nil {
		return err.Error(), false, nil
	}
	if !starts {
		return "", false, nil
	}
	own := l.progress()
	next := sort.SearchStrings(all.Keys, own.After)
	if next < len(all.Keys) && all.Keys[next] == own.After {
		next++
	}
	if next == len(all.Keys) {
		return l.finish(ctx, all, own)
	}
	end := min(next+keyPage, len(all.Keys))
	started, failed, err := l.start(ctx, all.Keys[next:end], all.Values[next:end])
	if err != nil {
		return "", false, err
	}
	own.After = all.Keys[end-1]
	own.Started += int64(len(started))
	own.Failed += int64(len(failed))
	if err := l.advance(ctx, own, events.Page{Failed: failed}); err != nil {
		return "", false, err
	}
	if end < len(all.Keys) {
		return "", true, nil
	}
	return l.finish(ctx, all, own)
}

// finish works on a list after each of its keys was tried once. If a person retries failed keys,
// finish tries the next page of them. If no such key is left, but some keys have failed, finish
// returns a fault that names some of the failed keys. If no key has failed, it returns no fault.
func (l *lister) finish(ctx context.Context, all dsl.Each, own events.List) (fault string, more bool, err error) {
	if own.Failed == 0 {
		return "", false, nil
	}
	filter := events.KeyFilter{Seq: l.e.Seq, Workflow: l.f.Name, Waiting: true, Limit: keyPage}
	waiting, err := l.x.cfg.Store.FailedKeys(ctx, filter)
	if err != nil {
		return "", false, err
	}
	if len(waiting) == 0 {
		filter.Waiting, filter.Limit = false, maxShown
		bad, err := l.x.cfg.Store.FailedKeys(ctx, filter)
		return faultOf(own, bad), false, err
	}
	var (
		keys   []string
		values []dsl.Value
		gone   []events.FailedKey
	)
	for _, k := range waiting {
		if i, found := slices.BinarySearch(all.Keys, k.Key); found {
			keys, values = append(keys, k.Key), append(values, all.Values[i])
		} else {
			gone = append(gone, events.FailedKey{Key: k.Key, Error: "for_each of the published definition does not return this key any more"})
		}
	}
	started, failed, err := l.start(ctx, keys, values)
	if err != nil {
		return "", false, err
	}
	own.Started += int64(len(started))
	own.Failed -= int64(len(started))
	err = l.advance(ctx, own, events.Page{Started: started, Failed: append(failed, gone...)})
	return "", err == nil, err
}

// faultOf returns the reason why the event is quarantined: some of its keys could start no run. The
// parameter `bad` holds the keys that the reason names.
func faultOf(own events.List, bad []events.FailedKey) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d keys could start no run", own.Failed, own.Failed+own.Started)
	for _, k := range bad {
		fmt.Fprintf(&b, "; %q: %s", k.Key, k.Error)
	}
	if own.Failed > int64(len(bad)) {
		fmt.Fprintf(&b, "; and %d more", own.Failed-int64(len(bad)))
	}
	return b.String()
}

// keys returns the keys and values of the list. It keeps a long list in memory for the next page.
func (l *lister) keys() (all dsl.Each, starts bool, err error) {
	x := l.x
	x.mu.Lock()
	long := x.long
	x.mu.Unlock()
	if long.seq == l.e.Seq && long.id == l.f.ID {
		return long.keys, true, nil
	}
	all, starts, err = l.on.List(l.e.ID, l.e.At, dsl.NewValue(l.e.Data, nil, nil))
	if err == nil && len(all.Keys) > keyPage {
		x.mu.Lock()
		x.long = longList{l.e.Seq, l.f.ID, all}
		x.mu.Unlock()
	}
	return all, starts, err
}

// progress returns how far engines have come with the list.
func (l *lister) progress() events.List {
	for _, own := range l.e.Lists {
		if own.Workflow == l.f.Name {
			return own
		}
	}
	return events.List{Workflow: l.f.Name}
}

// advance stores the progress after a page.
func (l *lister) advance(ctx context.Context, own events.List, p events.Page) error {
	p.Workflow, p.Lists = l.f.Name, slices.Clone(l.e.Lists)
	i := slices.IndexFunc(p.Lists, func(other events.List) bool { return other.Workflow == own.Workflow })
	if i < 0 {
		p.Lists = append(p.Lists, own)
	} else {
		p.Lists[i] = own
	}
	moved, err := l.x.cfg.Store.AdvanceEvent(ctx, *l.e, p)
	if err == nil && !moved {
		err = errLost
	}
	if err != nil {
		return err
	}
	failpoint.Hit("event.advanced")
	l.e.Lists = p.Lists
	l.e.Version++
	return nil
}

// start starts the runs of some keys. An error means that the page must be repeated, because the
// store or this engine could not submit a run now.
func (l *lister) start(ctx context.Context, keys []string, values []dsl.Value) (started []string, failed []events.FailedKey, err error) {
	b, err := l.x.binder(l.def.Workflow(l.f.Name), l.f)
	if err != nil {
		return nil, nil, err
	}
	given := l.on.GivenEach(l.e.ID, l.e.At, dsl.NewValue(l.e.Data, nil, nil))
	bad := func(key, why string) {
		if len(why) > maxError {
			why = why[:maxError]
		}
		why = strings.ToValidUTF8(strings.ReplaceAll(why, "\x00", ""), "")
		failed = append(failed, events.FailedKey{Key: key, Error: why})
	}
	var (
		runs []Run
		of   []string // keys of the runs in `runs`
	)
	for i, key := range keys {
		run := Run{Definition: l.def, Workflow: l.f.Name, Name: KeyRunName(l.f.Name, l.e.ID, key), By: l.e.By, Trigger: Trigger(l.e.Type, l.e.ID)}
		list, err := given(key, values[i])
		fault := ""
		if err != nil {
			fault = err.Error()
		} else {
			run.Vars, fault = b.bind(list)
		}
		if fault != "" {
			bad(key, fault)
			continue
		}
		runs, of = append(runs, run), append(of, key)
	}
	if len(runs) == 0 {
		return nil, failed, nil
	}
	for i, res := range l.x.cfg.SubmitAll(ctx, runs) {
		switch {
		case res.Err == nil:
			started = append(started, of[i])
		case res.Lasting:
			bad(of[i], res.Err.Error())
		default:
			return nil, nil, fmt.Errorf("start run %s: %w", runs[i].Name, res.Err)
		}
	}
	failpoint.Hit("event.keys")
	return started, failed, nil
}
