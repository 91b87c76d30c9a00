package ticks

import (
	"encoding/json"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
)

// givenPlace is the place of the deployment variables of a published workflow, for a Sealer.
func givenPlace(workflow string) []byte { return []byte("published\x00" + workflow) }

// EncodeGiven returns the values of deployment variables in the form in which a store keeps them.
// With a key they are sealed, because a value may be sensitive.
func EncodeGiven(sealer crypt.Sealer, workflow string, given []dsl.Assignment) ([]byte, error) {
	texts := map[string]string{}
	for _, a := range given {
		texts[a.Name] = a.Text
	}
	plain, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("encode variables: %w", err)
	}
	return crypt.Wrap(sealer, givenPlace(workflow), plain, sealer != nil)
}

// DecodeGiven returns the values that EncodeGiven has encoded.
func DecodeGiven(sealer crypt.Sealer, workflow string, data []byte) ([]dsl.Assignment, error) {
	plain, err := crypt.Unwrap(sealer, givenPlace(workflow), data)
	if err != nil {
		return nil, fmt.Errorf("open variables of published workflow %q: %w", workflow, err)
	}
	texts := map[string]string{}
	if err := json.Unmarshal(plain, &texts); err != nil {
		return nil, fmt.Errorf("decode variables of published workflow %q: %w", workflow, err)
	}
	var given []dsl.Assignment
	for name, text := range texts {
		given = append(given, dsl.Assignment{Name: name, Text: text, Source: "engine publish --var"})
	}
	return given, nil
}
