package journal

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store"
)

// Definition returns the whole stored definition that contains a workflow, for people who
// ask which definition a run has. Each call reads it again. It returns ErrNotFound, or a
// *KeyError if the definition is sealed with an unknown key.
func (d *Definitions) Definition(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	stored, _, err := d.store.Definition(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load the definition of workflow %d: %w", id, err)
	}
	plain, err := crypt.Unwrap(d.sealer, definitionPlace(stored.Digest), stored.Data)
	if err != nil {
		return nil, fmt.Errorf("open definition %.12s: %w", stored.Digest, err)
	}
	def, err := dsl.Decode(plain)
	if err != nil {
		return nil, fmt.Errorf("read definition %.12s: %w", stored.Digest, err)
	}
	return def, nil
}
