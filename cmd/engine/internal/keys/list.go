package keys

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
)

// List prints the keys of a state, and how much data each of them has sealed or tagged.
func List(ctx context.Context, a *cli.App) error {
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	pinned, uses, err := count(ctx, s)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"keys": listed(s, pinned, uses)})
	}
	table := render.Table{Head: []string{"KEY", "USE", "ROWS", "MESSAGES", "LATE REPLIES", "DEFINITIONS", "SETTINGS"}}
	for _, u := range uses {
		key, use := u.Key, useOf(s, pinned, u.Key)
		if key == "" {
			key, use = "-", "unknown"
		}
		table.Add(key, use, strconv.Itoa(u.Rows), strconv.Itoa(u.Messages), strconv.Itoa(u.LateReplies), strconv.Itoa(u.Definitions), strconv.Itoa(u.Settings))
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// count returns the ids of the keys of the state, newest first, and what each key has sealed.
func count(ctx context.Context, s *session.Session) ([]string, []journal.KeyUse, error) {
	pinned, err := s.ReadKey(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case len(pinned) == 0:
		return nil, nil, cli.Failed("No encryption key", "%s has no encryption key: nothing in it is sealed.", s.Shown)
	}
	uses, err := journal.CountKeys(ctx, s.Store, s.Sealer)
	if err != nil {
		return nil, nil, s.Wrap("count what each key has sealed", err)
	}
	return pinned, uses, nil
}

// useOf returns one word that says how a key is used. "seals" means that the key is the newest
// key, and "opens" that it is an older key. "next" means that the key becomes the newest key when
// an engine starts with it. "missing" means that the key was not given to this command.
func useOf(s *session.Session, pinned []string, id string) string {
	switch given := crypt.KeyIDs(s.Sealer); {
	case id == pinned[0]:
		return "seals"
	case !slices.Contains(given, id):
		return "missing"
	case id == given[0] && !slices.Contains(pinned, id):
		return "next"
	}
	return "opens"
}

// listed returns, as JSON objects, each key with its use and the amount of data that it has sealed.
func listed(s *session.Session, pinned []string, uses []journal.KeyUse) []map[string]any {
	out := []map[string]any{}
	for _, u := range uses {
		m := map[string]any{
			"id": u.Key, "use": "unknown",
			"rows": u.Rows, "messages": u.Messages, "late_replies": u.LateReplies, "definitions": u.Definitions, "settings": u.Settings,
		}
		if u.Key != "" {
			m["use"] = useOf(s, pinned, u.Key)
		}
		out = append(out, m)
	}
	return out
}
