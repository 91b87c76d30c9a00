package eventbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// maxListed is the largest number of events that a command reads.
const maxListed = 10_000

// SendOptions are the flags of `engine event send`.
type SendOptions struct {
	Data string // JSON
	ID   string // "" = the command makes an id
}

// Send sends an event.
func Send(ctx context.Context, a *cli.App, kind string, o SendOptions) error {
	if !json.Valid([]byte(o.Data)) {
		return cli.Failed("Invalid data", "--data is JSON, such as --data '{\"id\": \"o-1\"}'. A text needs double quotes inside of it: --data '\"text\"'.")
	}
	e := events.Event{ID: o.ID, Type: kind, Data: []byte(o.Data), By: cli.UserName()}
	if e.ID == "" {
		e.ID = strings.ToLower(rand.Text())
	}
	if err := e.Validate(); err != nil {
		return cli.Failed("Invalid event", "%s.", strings.TrimPrefix(err.Error(), "engine: "))
	}
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	sent, err := role.SendEvent(ctx, e)
	if err != nil {
		return s.Wrap("send an event", err)
	}
	if err := warn(ctx, a, s, kind); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"id": e.ID, "sent": sent})
	}
	if !sent {
		a.Note("Event %s is in the inbox already. Nothing was sent.", e.ID)
	}
	return a.Print("%s\n", e.ID)
}

// warn prints a warning if no published workflow has a block for events of this type.
func warn(ctx context.Context, a *cli.App, s *session.Session, kind string) error {
	role, ok := schedules.Of(s.Store)
	if !ok {
		return nil
	}
	flows, err := role.Published(ctx)
	if err != nil {
		return s.Wrap("list published workflows", err)
	}
	var known []string
	for _, f := range flows {
		for _, on := range f.Events {
			if on == kind {
				return nil
			}
			known = append(known, on)
		}
	}
	a.Note("Warning: no published workflow has an on_event or reset_on block for type %s.%s An engine will quarantine the event. Publish a workflow with `engine publish PATH`, then use `engine event retry ID`.", kind, diag.DidYouMean(kind, known))
	return nil
}

// List prints the events in the inbox. If `quarantined` is true, it prints only quarantined events.
func List(ctx context.Context, a *cli.App, quarantined bool) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := role.ListEvents(ctx, quarantined, maxListed)
	if err != nil {
		return s.Wrap("list events", err)
	}
	if a.JSON {
		out := []map[string]any{}
		for _, e := range list {
			out = append(out, map[string]any{
				"id": e.ID, "type": e.Type, "data": json.RawMessage(e.Data), "by": e.By, "at": e.At.UTC().Format(time.RFC3339Nano),
				"done": append([]string{}, e.Done...), "quarantined": e.Quarantined, "lists": append([]events.List{}, e.Lists...),
			})
		}
		return a.PrintJSON(map[string]any{"events": out})
	}
	if len(list) == 0 {
		a.Note("There are no such events. Engines remove an event when its runs are recorded.")
		return nil
	}
	table := render.Table{Head: []string{"EVENT", "TYPE", "SENT", "STATUS"}}
	for _, e := range list {
		state := "waits"
		for _, l := range e.Lists {
			state += fmt.Sprintf("; %s: %d keys started", l.Workflow, l.Started)
			if l.Failed > 0 {
				state += fmt.Sprintf(", %d failed", l.Failed)
			}
		}
		if e.Quarantined != "" {
			state = "quarantined: " + strings.Join(strings.Fields(e.Quarantined), " ")
		}
		table.Add(e.ID, e.Type, e.At.UTC().Format(time.RFC3339), state)
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// maxKeys is the largest number of failed keys that one command shows.
const maxKeys = 1000

// Keys prints the failed keys of an event: the keys that could start no run.
func Keys(ctx context.Context, a *cli.App, id string) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := find(ctx, s, role, id)
	if err != nil {
		return err
	}
	list, err := role.FailedKeys(ctx, events.KeyFilter{Seq: e.Seq, Limit: maxKeys})
	if err != nil {
		return s.Wrap("list failed keys", err)
	}
	if a.JSON {
		out := []map[string]any{}
		for _, k := range list {
			out = append(out, map[string]any{"workflow": k.Workflow, "key": k.Key, "error": k.Error, "waits": k.Waits})
		}
		return a.PrintJSON(map[string]any{"id": id, "keys": out})
	}
	if len(list) == 0 {
		a.Note("Event %s has no key that could start no run.", id)
		return nil
	}
	table := render.Table{Head: []string{"WORKFLOW", "KEY", "STATUS"}}
	for _, k := range list {
		state := strings.Join(strings.Fields(k.Error), " ")
		if k.Waits {
			state = "waits for another try; before: " + state
		}
		table.Add(k.Workflow, k.Key, state)
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if len(list) == maxKeys {
		a.Note("Only the first %d keys are shown.", maxKeys)
	}
	return nil
}

// find returns the event with an id.
func find(ctx context.Context, s *session.Session, role events.Store, id string) (events.Event, error) {
	list, err := role.ListEvents(ctx, false, maxListed)
	if err != nil {
		return events.Event{}, s.Wrap("list events", err)
	}
	for _, e := range list {
		if e.ID == id {
			return e, nil
		}
	}
	return events.Event{}, unknown(s, id)
}

// Retry makes an event wait again, so that an engine works on it.
func Retry(ctx context.Context, a *cli.App, id string) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := role.RetryEvent(ctx, id)
	switch {
	case err != nil:
		return s.Wrap("retry an event", err)
	case !found:
		return unknown(s, id)
	case a.JSON:
		return a.PrintJSON(map[string]any{"id": id})
	}
	return a.Print("Event %s waits again.\n", id)
}

// Drop removes an event from the inbox, so that the event starts no run any more.
func Drop(ctx context.Context, a *cli.App, id string) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := find(ctx, s, role, id)
	if err != nil {
		return err
	}
	if err := role.RemoveEvents(ctx, e.Seq); err != nil {
		return s.Wrap("remove an event", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"id": id})
	}
	return a.Print("Dropped event %s.\n", id)
}

// unknown returns the error for an event that is not in the inbox.
func unknown(s *session.Session, id string) error {
	return cli.Failed("Unknown event", "No event %q is in the inbox of %s. Its runs may be recorded already. `engine event list` shows the events that are in the inbox.", id, s.Shown)
}

// open opens the state of --dsn and returns it with its inbox of events.
func open(ctx context.Context, a *cli.App) (*session.Session, events.Store, error) {
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	role, ok := events.Of(s.Store)
	if !ok {
		s.Close()
		return nil, nil, cli.Failed("No events", "This state keeps no events. Use PostgreSQL or an embedded state.")
	}
	return s, role, nil
}
