package memory

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/store"
)

// definitions is the part of a Store that holds definitions and settings.
type definitions struct {
	*state
	settings map[string]string
	defs     map[string]store.Definition
}

// PutDefinition stores a definition, unless its digest is stored already. It returns the
// ids of the workflows by name.
func (s *definitions) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if _, ok := s.defs[d.Digest]; !ok {
		d.Data = slices.Clone(d.Data)
		d.Workflows = slices.Clone(d.Workflows)
		s.defs[d.Digest] = d
		for _, w := range d.Workflows {
			s.flows = append(s.flows, flow{d.Digest, w.Name, slices.Clone(w.Steps), w.Retention})
		}
	}
	ids := make(map[string]store.WorkflowID, len(d.Workflows))
	for i, f := range s.flows {
		if f.digest == d.Digest {
			ids[f.name] = store.WorkflowID(i + 1)
		}
	}
	return ids, nil
}

// Definition returns the definition that contains the workflow, and the name of the
// workflow. It returns ErrNotFound if there is no such workflow.
func (s *definitions) Definition(ctx context.Context, id store.WorkflowID) (store.Definition, string, error) {
	if err := s.lock(ctx); err != nil {
		return store.Definition{}, "", err
	}
	defer s.mu.Unlock()
	f, ok := s.flowLocked(id)
	if !ok {
		return store.Definition{}, "", store.ErrNotFound
	}
	d := s.defs[f.digest]
	d.Data = slices.Clone(d.Data)
	return d, f.name, nil
}

// Pin stores the value of a setting if the setting has no value yet. It returns the stored
// value. If `value` is "", Pin only reads the setting.
func (s *definitions) Pin(ctx context.Context, setting, value string) (string, error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if s.settings[setting] == "" && value != "" {
		s.settings[setting] = value
	}
	return s.settings[setting], nil
}
