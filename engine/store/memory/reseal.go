package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
)

// resealer is the part of a Store that replaces sealed data.
type resealer struct {
	*state
	*definitions
}

// Repin replaces the value of a setting, but only if the present value equals the parameter `old`
// ("" = the setting has no value yet). It returns the value that the setting has afterwards.
func (s *resealer) Repin(ctx context.Context, setting, old, value string) (string, error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if s.settings[setting] == old {
		s.settings[setting] = value
	}
	return s.settings[setting], nil
}

// Definitions returns definitions in the order of their digests: only those whose digest is greater
// than the parameter `after`, and no more than the parameter `limit` says.
func (s *resealer) Definitions(ctx context.Context, after string, limit int) ([]store.Definition, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Definition
	for digest, d := range s.defs {
		if digest > after {
			out = append(out, store.Definition{Digest: digest, Data: slices.Clone(d.Data)})
		}
	}
	slices.SortFunc(out, func(a, b store.Definition) int { return cmp.Compare(a.Digest, b.Digest) })
	return out[:min(len(out), limit)], nil
}

// AllMessages returns all messages and all late replies of the given runs.
func (s *resealer) AllMessages(ctx context.Context, runs ...status.RunID) (messages []store.Message, late []store.LateReply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	for _, id := range runs {
		for _, m := range s.inbox[id] {
			m.Data = slices.Clone(m.Data)
			messages = append(messages, m)
		}
		if r := s.runs[id]; r != nil {
			for _, l := range r.late {
				l.Data = slices.Clone(l.Data)
				late = append(late, l)
			}
		}
	}
	return messages, late, nil
}

// Reseal replaces data of one run. If it replaces rows of the journal, it also appends a row to the
// journal. In two cases it changes nothing and returns ErrStale: the run does not exist; or d.Rows
// is not empty, and the journal does not have exactly d.Next rows.
func (s *resealer) Reseal(ctx context.Context, d rekey.Resealed) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := s.runs[d.Run]
	if r == nil || len(d.Rows) > 0 && len(r.rows) != int(d.Next) {
		return store.ErrStale
	}
	r.short = nil
	for _, changed := range d.Rows {
		r.rows[changed.Seq].Data = slices.Clone(changed.Data)
	}
	if len(d.Rows) > 0 {
		r.rows = append(r.rows, row{Row: store.Row{Seq: d.Next, At: micro(d.At), Data: slices.Clone(d.Data)}})
	}
	for i := range s.inbox[d.Run] {
		m := &s.inbox[d.Run][i]
		for _, changed := range d.Messages {
			if m.ID == changed.ID {
				m.Data = slices.Clone(changed.Data)
			}
		}
	}
	for i := range r.late {
		l := &r.late[i]
		for _, changed := range d.Late {
			if l.Node == changed.Node && l.Call == changed.Call && l.Outcome == changed.Outcome {
				l.Data = slices.Clone(changed.Data)
			}
		}
	}
	return nil
}

// ResealDefinition replaces the data of a definition.
func (s *resealer) ResealDefinition(ctx context.Context, digest string, data []byte) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if d, ok := s.defs[digest]; ok {
		d.Data = slices.Clone(data)
		s.defs[digest] = d
	}
	return nil
}
