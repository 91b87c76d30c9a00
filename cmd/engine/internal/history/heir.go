package history

import (
	"context"
	"errors"
	"strconv"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Heir returns the name of the run that has taken over the results of the given run; "" =
// there is none. If retention has removed the heir, Heir returns the name that can be computed
// from the heir's id.
func Heir(ctx context.Context, s *session.Session, run status.RunID) (string, error) {
	role, ok := s.Store.Store.(naming.Heirs)
	if !ok {
		return "", nil
	}
	id, err := role.Heir(ctx, run)
	if err != nil {
		return "", s.Wrap("find the run that has taken over the results", err)
	}
	if id == 0 {
		return "", nil
	}
	return NameOf(ctx, s, id)
}

// NameOf returns the public name of the run with an internal id. If the run does not exist any
// more, it returns the name that can be computed from the id.
func NameOf(ctx context.Context, s *session.Session, id status.RunID) (string, error) {
	row, err := s.Store.Find(ctx, strconv.FormatInt(int64(id), 10))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return naming.RunName(id), nil
	case err != nil:
		return "", s.Wrap("find the run", err)
	}
	return row.Name, nil
}
