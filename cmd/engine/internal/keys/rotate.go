package keys

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// Preview prints how much data Rotate would seal again. It changes nothing.
func Preview(ctx context.Context, a *cli.App) error {
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	pinned, uses, err := count(ctx, s)
	if err != nil {
		return err
	}
	newest := s.Sealer.KeyID()
	if a.JSON {
		return a.PrintJSON(map[string]any{"key": newest, "preview": true, "left": left(uses, newest), "keys": listed(s, pinned, uses)})
	}
	if left(uses, newest) == 0 {
		return a.Print("Nothing is sealed with another key than %s.\n", newest)
	}
	return a.Print("`engine key rotate` would seal %s again with the key %s.\n", leftText(uses, newest), newest)
}

// A rotation is the result of one call of Rotate.
type rotation struct {
	journal.Resealing
	left  int // number of rows that an older key has sealed or tagged
	text  string
	early []store.Member // engines that may still seal with an older key
}

// finished reports whether the state needs only its newest key from now on.
func (r *rotation) finished() bool { return r.left == 0 && len(r.early) == 0 }

// Rotate makes the first given key the newest key of the state. With this key, it seals again all
// data that an older key has sealed. If no such data is left, and no engine may still seal with an
// older key, the state needs only the newest key from then on. In all other cases Rotate returns
// exit code 1 as an error.
func Rotate(ctx context.Context, a *cli.App) error {
	s, err := session.OpenKept(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.ReadKey(ctx); err != nil {
		return err
	}
	if s.Sealer == nil {
		return cli.Failed("No encryption key", "%s has no encryption key: nothing in it is sealed.", s.Shown)
	}
	if err := journal.PinKey(ctx, s.Store, s.Sealer, a.Now()); err != nil {
		return wrap(s, "make the key the newest one", err)
	}
	r := &rotation{}
	if r.Resealing, err = journal.Reseal(ctx, s.Store, s.Sealer); err != nil {
		return wrap(s, "seal the state again", err)
	}
	uses, err := journal.CountKeys(ctx, s.Store, s.Sealer)
	if err != nil {
		return wrap(s, "count what each key has sealed", err)
	}
	r.left, r.text = left(uses, r.Done.Key), leftText(uses, r.Done.Key)
	if r.left == 0 {
		if r.early, err = journal.FinishRotation(ctx, s.Store, s.Sealer); err != nil {
			return wrap(s, "finish the change of the key", err)
		}
	}
	if err := r.print(a); err != nil {
		return err
	}
	if !r.finished() {
		return exit.Code(exit.Failed)
	}
	return nil
}

// wrap returns err with the name of the failed operation, which is the parameter `doing`. It does
// not change an error about a key, because such an error is clear without the name.
func wrap(s *session.Session, doing string, err error) error {
	var key *crypt.KeyError
	if errors.As(err, &key) {
		return err
	}
	return s.Wrap(doing, err)
}

// left returns the number of rows that an older key has sealed or tagged. The parameter `newest` is
// the id of the newest key.
func left(uses []journal.KeyUse, newest string) (n int) {
	for _, u := range uses {
		if u.Key != newest {
			n += u.Total()
		}
	}
	return n
}

// leftText returns a text with the number of rows that each older key has sealed or tagged.
func leftText(uses []journal.KeyUse, newest string) string {
	var parts []string
	for _, u := range uses {
		if u.Key == newest || u.Total() == 0 {
			continue
		}
		of := "key " + u.Key
		if u.Key == "" {
			of = "an unknown key"
		}
		parts = append(parts, render.Count(u.Total(), "row")+" of "+of)
	}
	return strings.Join(parts, " and ")
}

func (r *rotation) print(a *cli.App) error {
	if a.JSON {
		return a.PrintJSON(r.json())
	}
	d := r.Done
	lines := []string{"Sealed again with key " + d.Key + ": " + strings.Join([]string{
		render.Count(d.Rows, "row"), render.Count(d.Messages, "message"), replies(d.LateReplies), render.Count(d.Definitions, "definition"),
	}, ", ") + "; " + render.Count(r.Runs, "run") + "."}
	for _, run := range r.Refused {
		lines = append(lines, "Run "+run.PublicName()+" stays as it is: "+run.Err.Error()+".")
	}
	for _, m := range r.early {
		lines = append(lines, "Engine "+render.Clean(history.MemberText(m))+" began before the key was changed, and may still seal with an older key.")
	}
	switch {
	case r.finished():
		lines = append(lines, "Nothing of an older key is left. Remove the older keys from "+cli.KeyVariable+" or from the key file. Keep them as long as you keep backups of before.")
	case len(r.Refused) > 0:
		lines = append(lines, "Not finished: "+r.text+" left. Such a run keeps its key: restore it from a backup, or wait until retention removes it.")
	case r.left > 0:
		lines = append(lines, "Not finished: "+r.text+" left. Run `engine key rotate` again.")
	default:
		lines = append(lines, "Not finished: restart these engines with the newest key first, and run `engine key rotate` again.")
	}
	return a.Print("%s\n", strings.Join(lines, "\n"))
}

func (r *rotation) json() map[string]any {
	refused, early := []map[string]any{}, []map[string]any{}
	for _, run := range r.Refused {
		refused = append(refused, map[string]any{"run": run.PublicName(), "problem": run.Err.Error()})
	}
	for _, m := range r.early {
		early = append(early, map[string]any{"engine": m.Engine, "address": m.Address})
	}
	d := r.Done
	return map[string]any{
		"key": d.Key, "finished": r.finished(), "left": r.left, "runs": r.Runs, "busy": r.Busy, "refused": refused, "engines": early,
		"rows": d.Rows, "messages": d.Messages, "late_replies": d.LateReplies, "definitions": d.Definitions, "settings": d.Settings,
	}
}

func replies(n int) string {
	if n == 1 {
		return "1 late reply"
	}
	return strconv.Itoa(n) + " late replies"
}
