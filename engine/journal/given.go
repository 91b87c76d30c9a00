package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// givenBinding returns the bytes to which the seal of deployment variables is bound: the name of
// their published workflow. The sealed data cannot be used for another workflow.
func givenBinding(workflow string) []byte { return []byte("published\x00" + workflow) }

// EncodeGiven returns the values of deployment variables in the form in which a store keeps them.
// The parameter `vars` must have a value for each deployment variable, and may have values of other
// variables. If there is a key, the values are sealed, because a value may be sensitive.
func EncodeGiven(sealer crypt.Sealer, wf *dsl.Workflow, vars dsl.Value) ([]byte, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(vars.JSON(), &all); err != nil {
		return nil, fmt.Errorf("encode variables: %w", err)
	}
	given := map[string]json.RawMessage{}
	for _, v := range wf.Variables {
		if v.Deployment {
			given[v.Name] = all[v.Name]
		}
	}
	plain, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("encode variables: %w", err)
	}
	return crypt.Wrap(sealer, givenBinding(wf.Name), plain, sealer != nil)
}

// DecodeGiven returns the values that EncodeGiven has encoded.
func DecodeGiven(sealer crypt.Sealer, wf *dsl.Workflow, data []byte) ([]dsl.Assignment, error) {
	plain, err := crypt.Unwrap(sealer, givenBinding(wf.Name), data)
	if err != nil {
		return nil, fmt.Errorf("open variables of published workflow %q: %w", wf.Name, err)
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(plain, &values); err != nil {
		return nil, fmt.Errorf("decode variables of published workflow %q: %w", wf.Name, err)
	}
	var given []dsl.Assignment
	for _, name := range slices.Sorted(maps.Keys(values)) {
		a, err := wf.Assign(name, values[name], "engine publish")
		if err != nil {
			return nil, fmt.Errorf("decode variables of published workflow %q: %w", wf.Name, err)
		}
		given = append(given, a)
	}
	return given, nil
}

// eachGiven calls the function `fn` with each published workflow of a store. It does nothing if the
// store cannot keep published workflows.
func eachGiven(ctx context.Context, st store.Full, fn func(schedules.Store, schedules.Workflow) error) error {
	role, ok := schedules.Of(st)
	if !ok {
		return nil
	}
	list, err := role.Published(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if err := fn(role, w); err != nil {
			return err
		}
	}
	return nil
}
