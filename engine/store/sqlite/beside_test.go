package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// childSay does what a verb and a detached submission do in a terminal of their
// own: it posts to run 1, and leaves run 2 to nobody.
func childSay(path string) int {
	t := &childTest{}
	ctx := t.Context()
	s, err := Open(ctx, path, Options{Beside: true})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	defer s.Close()
	_, err = s.Post(ctx, store.Message{Run: 1, Kind: store.MessageVerb, By: "ann", Dedup: "once", Data: []byte("pause")})
	if err == nil {
		err = submitToNobody(t, s, 2)
	}
	fmt.Println("said:", err)
	return 0
}

func submitToNobody(t testing.TB, s *Store, run status.RunID) error {
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a", "b", "c"}}}})
	if err != nil {
		return err
	}
	id, w := join(t, s)
	at, nobody := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), store.EngineID(0)
	_, err = storetest.Submit(t.Context(), w, store.Transition{
		Run: run, At: at, Workflow: ids["w"], State: status.RunQueued, Owner: &nobody, NextCheck: at, Data: []byte("0"),
	}, naming.Names{Workflow: "w", Name: fmt.Sprint("detached-", run)})
	return errors.Join(err, w.Close(), s.Leave(t.Context(), id))
}

// childRest holds the file, with a run that waits for a person, until it is
// killed.
func childRest(path string) int {
	t := &childTest{}
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	id, w := join(t, s)
	submit(t, s, w, id, 1)
	out, err := w.Commit(t.Context(), []store.Transition{{Run: 1, Seq: 1, At: time.Now(), State: status.RunParked, NextCheck: store.Never, Data: []byte("1")}})
	if err != nil || !out[0].Landed {
		fmt.Println("error:", out, err)
		return 1
	}
	fmt.Println(id)
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		fmt.Println("error:", err)
	}
	return 1
}

// What another process says while one holds the file reaches the holder, by a
// hint and by its next tick. S85
func TestAnotherProcessSpeaks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, _ := populate(t, path)
	hints := s.Wakes(t.Context())
	for round := range 2 { // said again, it is there once
		out, err := child(t, "say", path, nil).CombinedOutput()
		if err != nil || string(out) != "said: <nil>\n" {
			t.Fatalf("child: err = %v\n%s", err, out)
		}
		if round == 0 {
			select {
			case <-hints:
			case <-time.After(10 * time.Second):
				t.Error("no hint came")
			}
		}
		tick, err := s.Tick(t.Context(), id, time.Hour, 10)
		if err != nil || !slices.Equal(tick.Inbox, []status.RunID{1}) || len(tick.Unowned) != 1 || tick.Unowned[0].Run != 2 || len(tick.Dead) != 0 {
			t.Errorf("tick = %+v, err = %v, want run 1 with a message and run 2 of nobody", tick, err)
		}
		got, err := s.Messages(t.Context(), 1, 0, 10)
		if err != nil || len(got) != 1 || got[0].By != "ann" || string(got[0].Data) != "pause" || got[0].Kind != store.MessageVerb {
			t.Errorf("messages = %+v, err = %v", got, err)
		}
	}
}

// The engine's own commits wake nobody: a busy engine would wake itself all the
// time.
func TestOwnCommitsAreNoHints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	hints := s.Wakes(t.Context())
	start := s.version()
	for seq := int32(1); seq < 20; seq++ {
		if out, err := w.Commit(t.Context(), []store.Transition{{Run: 1, Seq: seq, At: time.Now(), Data: []byte("1")}}); err != nil || !out[0].Landed {
			t.Fatalf("commit: %+v, err = %v", out, err)
		}
	}
	if _, err := s.Tick(t.Context(), id, time.Hour, 10); err != nil {
		t.Fatal(err)
	}
	if v := s.version(); v != start || v == 0 {
		t.Errorf("version = %d, then %d: the engine's own commits show", start, v)
	}
	b := open(t, path, Options{Beside: true})
	if _, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb}); err != nil {
		t.Fatal(err)
	}
	if v := s.version(); v == start {
		t.Errorf("version = %d as before: what another connection commits does not show", v)
	}
	select {
	case <-hints:
	case <-time.After(10 * time.Second):
		t.Error("no hint came")
	}
}

// S54: posts of one process and commits of another take turns; each that was
// acknowledged is there after the holder was killed in the middle.
func TestSpeakToABusyHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _, _ := populate(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "write", path, nil)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || strings.HasPrefix(lines.Text(), "error:") {
		t.Fatalf("child: %s", lines.Text())
	}
	drained := make(chan string)
	go func() {
		bad := ""
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "error:") {
				bad = lines.Text()
			}
		}
		drained <- bad
	}()
	b := open(t, path, Options{Beside: true})
	var said []store.MessageID
	for range 100 {
		id, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb})
		if err != nil {
			t.Errorf("post beside a busy holder: %v", err)
			break
		}
		said = append(said, id)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if bad := <-drained; bad != "" {
		t.Error(bad)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	checkWhole(t, path, nil)
	got, err := b.Messages(t.Context(), 1, 0, 1000)
	if err != nil || len(got) != len(said) {
		t.Fatalf("%d messages, err = %v, want %d", len(got), err, len(said))
	}
	for i, m := range got {
		if m.ID != said[i] {
			t.Errorf("message %d has id %d, want %d", i, m.ID, said[i])
		}
	}
}

// S30: a crashed holder is taken over at once, whatever its lease says; what
// was said to its runs meanwhile, and after its death, is answered by whoever
// takes the file next.
func TestCrashedHolderWithMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	cmd := child(t, "rest", path, nil)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // keeps it waiting
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dead store.EngineID
	if _, err := fmt.Fscanln(out, &dead); err != nil {
		t.Fatalf("child: %v", err)
	}
	b := open(t, path, Options{Beside: true})
	first, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb, Dedup: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.As(err, new(*LockedError)) {
		t.Errorf("open beside the holder: err = %v, want a LockedError", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	second, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb, Dedup: "b"})
	if err != nil {
		t.Fatalf("post to a file that nobody holds: %v", err)
	}
	if live, err := store.Complete(b).Live(t.Context()); len(live) != 1 || err != nil {
		t.Errorf("live engines = %v, err = %v: speaking must not end leases", live, err)
	}
	s := open(t, path, Options{})
	id, w := join(t, s)
	tick, err := s.Tick(t.Context(), id, time.Hour, 10)
	if err != nil || !slices.Equal(tick.Dead, []store.EngineID{dead}) {
		t.Errorf("tick = %+v, err = %v, want engine %d dead", tick, err, dead)
	}
	if ok, err := s.Fence(t.Context(), dead); !ok || err != nil {
		t.Errorf("fence: dead = %v, err = %v", ok, err)
	}
	if ids, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(0, 10))); err != nil || !slices.Equal(ids, []status.RunID{1}) {
		t.Errorf("orphans = %v, err = %v, want the run at rest, for its messages", ids, err)
	}
	take := store.Transition{Run: 1, Seq: 2, At: time.Now(), Owner: &id, Consumed: []store.MessageID{first, second}, Data: []byte("2")}
	if out, err := w.Commit(t.Context(), []store.Transition{take}); err != nil || !out[0].Landed {
		t.Errorf("take over: %+v, err = %v", out, err)
	}
	if left, err := b.Messages(t.Context(), 1, 0, 10); err != nil || len(left) != 0 {
		t.Errorf("messages = %+v, err = %v, want them answered", left, err)
	}
}

// A store beside the holder speaks and looks; what the owner does it cannot.
func TestBesideOwnsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, _ := populate(t, path)
	b := open(t, path, Options{Beside: true})
	ctx := t.Context()
	_, fence := b.Fence(ctx, id)
	_, pass := b.Pass(ctx, "p", time.Hour)
	for name, err := range map[string]error{
		"fence": fence, "pass": pass,
		"discard":   b.Discard(ctx, 1, []store.MessageID{1}),
		"keep late": b.KeepLate(ctx, store.LateReply{Run: 1}),
		"keep logs": b.KeepLogs(ctx, []store.LogLine{{Run: 1}}),
		"delivered": b.Delivered(ctx, []int64{1}),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: err = %v, want %v", name, err, errReadOnly)
		}
	}
	guest, w := join(t, b)
	if tick, err := b.Tick(ctx, guest, time.Hour, 1); err != nil || tick.Now.IsZero() {
		t.Errorf("tick: %+v, err = %v, want the store's time", tick, err)
	}
	at := time.Now()
	own := store.Transition{Run: 9, At: at, Workflow: 1, State: status.RunRunning, Owner: &guest, NextCheck: at, Data: []byte("0")}
	if sub, err := storetest.Submit(ctx, w, own, naming.Names{}); !errors.Is(err, errBeside) {
		t.Errorf("submit a run of its own: %+v, err = %v, want %v", sub, err, errBeside)
	}
	if out, err := w.Commit(ctx, []store.Transition{{Run: 1, Seq: 1, At: at, Owner: &guest, Data: []byte("1")}}); !errors.Is(err, errReadOnly) {
		t.Errorf("commit: %+v, err = %v, want %v", out, err, errReadOnly)
	}
	if err := b.Leave(ctx, guest); err != nil {
		t.Errorf("leave: %v", err)
	}
	if err := submitToNobody(t, b, 2); err != nil {
		t.Errorf("submit a run of nobody: %v", err)
	}
	if _, err := b.Post(ctx, store.Message{Run: 99, Kind: store.MessageVerb}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("post to no run: err = %v, want ErrNotFound", err)
	}
	if pinned, err := b.Pin(ctx, journal.SettingKey, "k"); err != nil || pinned != "k" {
		t.Errorf("pin = %q, err = %v", pinned, err)
	}
	if got, err := s.Runs(ctx, store.RunFilter{}); err != nil || len(got) != 2 || got[0].Name != "detached-2" || got[0].Owner != 0 {
		t.Errorf("runs = %+v, err = %v, want what was submitted beside", got, err)
	}
	// It never had the file: the next process may take it.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{})
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := b.Post(ctx, store.Message{Run: 1, Kind: store.MessageVerb}); err == nil {
		t.Error("posted to a closed store")
	}
}
