package postgres

import (
	"context"
	"testing"
	"time"
)

// A store that is closed has ended its notifications, those that were put off and
// those on their way: none asks the database afterwards.
func TestCloseAwaitsNotifications(t *testing.T) {
	var b bell
	begun, ended := make(chan struct{}), false
	b.background(func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		ended = true
	})
	<-begun
	now := time.Now()
	if !b.ring(now, nil) || b.ring(now, func(context.Context) { t.Error("a notification comes after the end") }) {
		t.Error("the first notification waits, or the second does not")
	}
	b.close()
	if !ended {
		t.Error("closed while a notification is on its way")
	}
	b.background(func(context.Context) { t.Error("a notification begins after the end") })
	b.close()
}
