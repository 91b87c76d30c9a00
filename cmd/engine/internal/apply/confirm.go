package apply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/plan"
)

// noteUnlocked prints a note if the module uses agents but has no lock file. Then the command uses
// the installed agents.
func noteUnlocked(a *cli.App, r *module.Request) {
	if !r.Locked && len(r.Used) > 0 {
		a.Note("No lock file: using the agents that are installed. `engine init` locks their versions and checksums.")
	}
}

// confirm shows the plan and asks the user whether to apply it. It returns an error unless the
// answer is "yes".
func confirm(ctx context.Context, a *cli.App, r *module.Request) error {
	p, err := plan.New(ctx, a, r)
	if err != nil {
		return err
	}
	if err := p.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if err := a.Print("Apply this? Only \"yes\" goes on: "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return cli.Failed("Not confirmed", "Nothing was started.")
	}
	if err != nil && !errors.Is(err, io.EOF) { // the last line may have no line break
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}
