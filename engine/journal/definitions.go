package journal

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
	"weak"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// maxDefinitions limits the number of compiled workflows in Definitions. If Definitions has at
// least so many, it forgets all of them before it adds others. Put adds all workflows of a
// definition at once, so Definitions may have more than this number.
const maxDefinitions = 256

// Definitions is a cache of compiled workflows, and stores definitions. It is safe for
// concurrent use.
type Definitions struct {
	store  store.Catalogue
	sealer crypt.Sealer // nil = definitions with sensitive values cannot be read

	mu       sync.Mutex   // protects the next three fields
	since    status.RunID // first run whose rows must all be tagged; 0 = not known yet
	byID     map[store.WorkflowID]*dsl.Workflow
	byDigest map[string]map[string]store.WorkflowID

	loading sync.Mutex // protects the next field; held while Shared reads a definition
	whole   map[store.WorkflowID]weak.Pointer[dsl.Definition]
}

// NewDefinitions returns an empty cache. The parameter `store` is where the definitions are stored.
func NewDefinitions(store store.Catalogue, sealer crypt.Sealer) *Definitions {
	d := &Definitions{store: store, sealer: sealer}
	d.resetLocked()
	return d
}

func (d *Definitions) resetLocked() {
	d.byID = map[store.WorkflowID]*dsl.Workflow{}
	d.byDigest = map[string]map[string]store.WorkflowID{}
}

// Workflow returns a workflow of a stored definition. It returns ErrNotFound if there is no
// such workflow, and a *KeyError if the definition is sealed with an unknown key.
func (d *Definitions) Workflow(ctx context.Context, id store.WorkflowID) (*dsl.Workflow, error) {
	d.mu.Lock()
	wf := d.byID[id]
	d.mu.Unlock()
	if wf != nil {
		return wf, nil
	}
	stored, name, err := d.store.Definition(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load the definition of workflow %d: %w", id, err)
	}
	plain, err := crypt.Unwrap(d.sealer, definitionBinding(stored.Digest), stored.Data)
	if err != nil {
		return nil, &unreadable{fmt.Errorf("open definition %.12s: %w", stored.Digest, err)}
	}
	def, err := dsl.Decode(plain)
	if err != nil {
		return nil, &unreadable{fmt.Errorf("read definition %.12s: %w", stored.Digest, err)}
	}
	if wf = def.Workflow(name); wf == nil {
		return nil, &unreadable{fmt.Errorf("definition %.12s holds no workflow %q", stored.Digest, name)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byID) >= maxDefinitions {
		d.resetLocked()
	}
	d.byID[id] = wf
	return wf, nil
}

// An unreadable error says that this engine cannot read stored data. A later try would return the
// same error.
type unreadable struct{ error }

// Unwrap returns the cause.
func (u *unreadable) Unwrap() error { return u.error }

// Put stores a definition if it is not stored yet, and returns the ids of its workflows by
// name.
func (d *Definitions) Put(ctx context.Context, def *dsl.Definition) (map[string]store.WorkflowID, error) {
	digest := def.Digest()
	d.mu.Lock()
	ids := d.byDigest[digest]
	d.mu.Unlock()
	if ids != nil {
		return ids, nil
	}
	stored := store.Definition{Digest: digest}
	// If there is a key, every definition is sealed. The reason is that literals, and results
	// of env() and file(), may be secret without being marked as sensitive.
	sensitive := d.sealer != nil
	for _, name := range def.Stored() {
		wf := def.Workflow(name)
		sensitive = sensitive || hasSensitiveDefault(wf)
		w := store.DefinedWorkflow{Name: name, Retention: wf.Retention.Truncate(time.Microsecond)}
		for _, s := range wf.Steps {
			w.Steps = append(w.Steps, s.Name)
		}
		stored.Workflows = append(stored.Workflows, w)
	}
	data, err := crypt.Wrap(d.sealer, definitionBinding(digest), def.Encode(), sensitive)
	if err != nil {
		return nil, fmt.Errorf("store definition %.12s: %w", digest, err)
	}
	stored.Data = data
	if ids, err = d.store.PutDefinition(ctx, stored); err != nil {
		return nil, fmt.Errorf("store definition %.12s: %w", digest, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byID) >= maxDefinitions {
		d.resetLocked()
	}
	d.byDigest[digest] = ids
	for name, id := range ids {
		d.byID[id] = def.Workflow(name)
	}
	return ids, nil
}

// Family returns the ids of all workflows of the definition with the given digest, by name. The
// function `member` returns the id of any workflow of this definition. Family calls `member` only
// if the cache does not have the definition yet. If the id that `member` returns belongs to another
// definition, Family returns an error.
func (d *Definitions) Family(ctx context.Context, digest string, member func() (store.WorkflowID, error)) (map[string]store.WorkflowID, error) {
	d.mu.Lock()
	ids := d.byDigest[digest]
	d.mu.Unlock()
	if ids != nil {
		return ids, nil
	}
	id, err := member()
	if err != nil {
		return nil, err
	}
	def, err := d.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	if def.Digest() != digest {
		return nil, fmt.Errorf("workflow %d belongs to definition %.12s, not to %.12s", id, def.Digest(), digest)
	}
	return d.Put(ctx, def)
}

// hasSensitiveDefault reports whether a workflow has a sensitive variable with a default. In
// that case the source text of the workflow contains a sensitive value.
func hasSensitiveDefault(wf *dsl.Workflow) bool {
	for _, v := range wf.Variables {
		if v.Sensitive && v.HasDefault {
			return true
		}
	}
	return false
}

// Definition returns the whole stored definition that contains a workflow. Each call reads the
// definition from the store again. The error contains ErrNotFound if there is no such workflow, and
// a *KeyError if the definition is sealed with an unknown key.
func (d *Definitions) Definition(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	stored, _, err := d.store.Definition(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load the definition of workflow %d: %w", id, err)
	}
	plain, err := crypt.Unwrap(d.sealer, definitionBinding(stored.Digest), stored.Data)
	if err != nil {
		return nil, fmt.Errorf("open definition %.12s: %w", stored.Digest, err)
	}
	def, err := dsl.Decode(plain)
	if err != nil {
		return nil, fmt.Errorf("read definition %.12s: %w", stored.Digest, err)
	}
	return def, nil
}

// Shared does the same as Definition, but saves time: a module may have hundreds of workflows, and
// reading it takes long. As long as a caller uses a returned definition, Shared returns the same
// object again, for each workflow of this definition.
func (d *Definitions) Shared(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	d.loading.Lock()
	defer d.loading.Unlock()
	if def := d.whole[id].Value(); def != nil {
		return def, nil
	}
	def, err := d.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	ids, err := d.Put(ctx, def) // the definition is stored already, so Put only reads the ids
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(d.whole, func(_ store.WorkflowID, p weak.Pointer[dsl.Definition]) bool { return p.Value() == nil })
	if d.whole == nil {
		d.whole = map[store.WorkflowID]weak.Pointer[dsl.Definition]{}
	}
	d.whole[id] = weak.Make(def)
	for _, member := range ids {
		d.whole[member] = d.whole[id]
	}
	return def, nil
}

// Beside returns the id of the workflow with the given name. It looks in the definition that
// contains the workflow with the given id. It returns an error if the definition cannot be read, or
// has no workflow with this name.
func (d *Definitions) Beside(ctx context.Context, id store.WorkflowID, name string) (store.WorkflowID, error) {
	wf, err := d.Workflow(ctx, id)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	ids := d.byDigest[wf.Digest]
	d.mu.Unlock()
	if ids == nil {
		def, err := d.Definition(ctx, id)
		if err != nil {
			return 0, err
		}
		if ids, err = d.Put(ctx, def); err != nil { // the definition is stored already, so Put only reads the ids
			return 0, err
		}
	}
	other, ok := ids[name]
	if !ok {
		return 0, &unreadable{fmt.Errorf("definition %.12s holds no workflow %q", wf.Digest, name)}
	}
	return other, nil
}
