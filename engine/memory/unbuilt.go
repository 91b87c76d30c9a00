package memory

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

var errUnbuilt = errors.New("memory: not built yet")

func (s *Store) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	return false, errUnbuilt
}

func (s *Store) Overdue(ctx context.Context, self engine.EngineID, grace time.Duration, limit int) ([]machine.RunID, error) {
	return nil, errUnbuilt
}

func (s *Store) Live(ctx context.Context) ([]engine.Member, error) { return nil, errUnbuilt }

func (s *Store) LoadMany(ctx context.Context, runs []machine.RunID) ([]engine.Loaded, error) {
	return nil, errUnbuilt
}

func (s *Store) Post(ctx context.Context, m engine.Message) (engine.MessageID, error) {
	return 0, errUnbuilt
}

func (s *Store) Messages(ctx context.Context, run machine.RunID, limit int) ([]engine.Message, error) {
	return nil, errUnbuilt
}

func (s *Store) Discard(ctx context.Context, run machine.RunID, ids []engine.MessageID) error {
	return errUnbuilt
}

func (s *Store) KeepLate(ctx context.Context, l engine.LateReply) error { return errUnbuilt }

func (s *Store) LateReplies(ctx context.Context, run machine.RunID) ([]engine.LateReply, error) {
	return nil, errUnbuilt
}

func (s *Store) KeepLogs(ctx context.Context, lines []engine.LogLine) error { return errUnbuilt }

func (s *Store) Logs(ctx context.Context, run machine.RunID, after int64, limit int) ([]engine.LogLine, error) {
	return nil, errUnbuilt
}

func (s *Store) Undelivered(ctx context.Context, limit int) ([]engine.AlertRow, error) {
	return nil, errUnbuilt
}

func (s *Store) Delivered(ctx context.Context, ids []int64) error { return errUnbuilt }
