package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
)

// Run checks the state, its engines and its open runs, and prints the findings. If a finding is an
// error, Run returns exit code 1 as an error.
func Run(ctx context.Context, a *cli.App, f module.AgentFlags) error {
	c := &checkup{a: a, flow: map[store.WorkflowID]*flowUse{}}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		for _, d := range cli.Diagnose(err) {
			c.say("state", health.Error, "", "%s. %s", d.Summary, d.Detail)
		}
		return c.report()
	}
	defer s.Close()
	c.s = s
	c.say("state", health.OK, "", "%s answers.", s.Shown)
	for _, check := range []func(context.Context) error{
		c.settings, c.key, c.engines, c.leases, c.queue, c.runs, c.histories, c.definitions, c.redundancy,
		func(ctx context.Context) error { return c.plugins(ctx, f) }, c.alerts,
		func(ctx context.Context) error { return checkSubmissions(ctx, c) },
		func(ctx context.Context) error { return checkStarts(ctx, c) },
		func(ctx context.Context) error { return checkReplies(ctx, c) },
	} {
		if err := check(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, d := range cli.Diagnose(err) {
				c.say("state", health.Error, "", "%s. %s", d.Summary, d.Detail)
			}
		}
	}
	return c.report()
}

// settings adds the store's findings about its own settings. Some kinds of store have no such
// findings.
func (c *checkup) settings(ctx context.Context) error {
	e, ok := c.s.Store.Store.(health.Examiner)
	if !ok {
		return nil
	}
	found, err := e.Examine(ctx)
	if err != nil {
		return c.s.Wrap("examine the state", err)
	}
	c.found = append(c.found, found...)
	return nil
}

// key checks that the encryption keys of this command belong to the state. It warns if the
// state still needs an older key, because the newest key has not sealed everything yet.
func (c *checkup) key(ctx context.Context) error {
	ids, err := c.s.ReadKey(ctx)
	var p *cli.Problem
	if errors.As(err, &p) {
		c.say("key", health.Error, "", "%s", p.Diags[0].Detail)
		return nil
	}
	switch {
	case err != nil || len(ids) == 0:
	case len(ids) > 1:
		c.say("key", health.Warning, "`engine key rotate` seals it again with the newest key, and says when the older key is not needed any more.",
			"The newest encryption key is %s. The state may still hold data of an older key: %s.", ids[0], strings.Join(ids[1:], ", "))
	default:
		c.say("key", health.OK, "", "The encryption key is the one of the state.")
	}
	return err
}
