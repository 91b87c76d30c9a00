package keys

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/engine/crypt"
)

// New prints a new key. It opens no state.
func New(a *cli.App) error {
	key, err := crypt.NewKey()
	if err != nil {
		return fmt.Errorf("print a new key: %w", err)
	}
	if a.JSON {
		sealer, err := crypt.NewSealer(key)
		if err != nil {
			return fmt.Errorf("print a new key: %w", err)
		}
		return a.PrintJSON(map[string]any{"key": key.Text(), "id": sealer.KeyID()})
	}
	return a.Print("%s\n", key.Text())
}
