package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// envChild names the file that this test binary, started again as a child,
// works on, and how.
const envChild = "SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	how, path, ok := strings.Cut(os.Getenv(envChild), " ")
	switch {
	case !ok:
		os.Exit(m.Run())
	case how == "write":
		os.Exit(childWrite(path))
	case how == "open":
		os.Exit(childOpen(path))
	case how == "say":
		os.Exit(childSay(path))
	case how == "rest":
		os.Exit(childRest(path))
	}
	os.Exit(2)
}

// childWrite submits runs, asks each something and answers the last but two
// until it is killed, and prints what was acknowledged.
func childWrite(path string) int {
	t := &childTest{}
	ctx := t.Context()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	id, w := join(t, s)
	start := status.RunID(time.Now().UnixNano())
	var asked []store.Message
	for i := status.RunID(0); ; i++ {
		run := start + i
		submit(t, s, w, id, run)
		fmt.Println(run, 0)
		m := store.Message{Run: run, Kind: store.MessageVerb}
		if m.ID, err = s.Post(ctx, m); err != nil {
			fmt.Println("error:", err)
			return 1
		}
		fmt.Println(run, "asked")
		if asked = append(asked, m); len(asked) < 3 {
			continue
		}
		m, asked = asked[0], asked[1:]
		out, err := w.Commit(ctx, []store.Transition{{
			Run: m.Run, Seq: 1, At: time.Now(), State: status.RunSucceeded, NextCheck: store.Never, Consumed: []store.MessageID{m.ID}, Data: []byte("1"),
		}})
		if err != nil || !out[0].Landed {
			fmt.Println("error:", out, err)
			return 1
		}
		fmt.Println(m.Run, 1)
	}
}

// A childTest lets the helpers of the tests be used in a child.
type childTest struct{ testing.TB }

// Helper does nothing.
func (*childTest) Helper() {}

// Context never ends.
func (*childTest) Context() context.Context { return context.Background() }

// Fatal ends the child.
func (*childTest) Fatal(args ...any) {
	fmt.Println(append([]any{"error:"}, args...)...)
	os.Exit(1)
}

// child starts this test binary again.
func child(t *testing.T, how, path string, as *syscall.Credential) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if as != nil { // the build's directory may be closed to others
		data, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		self = filepath.Join(t.TempDir(), "child")
		if err := os.WriteFile(self, data, 0o755); err != nil {
			t.Fatal(err)
		}
		openUp(t, filepath.Dir(self))
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envChild+"="+how+" "+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return cmd
}

// openUp lets everybody through to a directory of the test.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(filepath.Base(filepath.Dir(dir)), "Test") || strings.HasPrefix(filepath.Base(dir), "Test"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// S54 I1: a process that is killed in the middle of its commits leaves a file
// that opens at once, holds everything that was acknowledged, and nothing by
// halves.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	acknowledged := make(map[string]bool)
	waiting := 0
	for round := range 6 {
		cmd := child(t, "write", path, nil)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Killed after a number of acknowledgements, so at another moment of its
		// work each time.
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if strings.HasPrefix(lines.Text(), "error:") {
				t.Error(lines.Text())
			}
			acknowledged[lines.Text()] = true
			if n == 7+31*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child ended by itself")
		}
		waiting += checkWhole(t, path, acknowledged)
	}
	if len(acknowledged) < 400 || waiting == 0 {
		t.Errorf("%d acknowledgements, %d unanswered: too few to prove anything", len(acknowledged), waiting)
	}
}

// checkWhole looks for what stands there by halves and returns how many runs
// were asked and have not answered.
func checkWhole(t *testing.T, path string, acknowledged map[string]bool) (waiting int) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatalf("open after a kill: %v", err)
	}
	defer s.Close()
	db := raw(t, path)
	var bad string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&bad); err != nil || bad != "ok" {
		t.Errorf("integrity check: %s, err = %v", bad, err)
	}
	for what, query := range map[string]string{
		"runs without a name":            `SELECT count(*) FROM run WHERE run_id NOT IN (SELECT run_id FROM run_name)`,
		"names without a run":            `SELECT count(*) FROM run_name WHERE run_id NOT IN (SELECT run_id FROM run)`,
		"questions answered but waiting": `SELECT count(*) FROM inbox i JOIN journal j ON j.run_id = i.run_id AND j.seq = 1`,
		"runs without a row":             `SELECT count(*) FROM run WHERE run_id NOT IN (SELECT run_id FROM journal WHERE seq = 0)`,
		"rows without a run":             `SELECT count(*) FROM journal WHERE run_id NOT IN (SELECT run_id FROM run)`,
		"runs unlike their rows":         `SELECT count(*) FROM run r WHERE state <> (SELECT run_state FROM journal j WHERE j.run_id = r.run_id AND run_state IS NOT NULL ORDER BY seq DESC LIMIT 1)`,
	} {
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d %s, err = %v", n, what, err)
		}
	}
	for line := range acknowledged {
		id, seq, ok := strings.Cut(line, " ")
		run, err := strconv.ParseInt(id, 10, 64)
		if !ok || err != nil {
			t.Fatalf("child printed %q", line)
		}
		_, rows, err := store.LoadRun(t.Context(), s, status.RunID(run))
		if err != nil || seq == "1" && len(rows) != 2 {
			t.Errorf("run %s seq %s was acknowledged: %d rows, err = %v", id, seq, len(rows), err)
		}
		if seq == "asked" && len(rows) == 1 {
			waiting++
			if got, err := s.Messages(t.Context(), status.RunID(run), 0, 10); err != nil || len(got) != 1 {
				t.Errorf("run %s was asked and has not answered: messages = %+v, err = %v", id, got, err)
			}
		}
	}
	return waiting
}

// childOpen opens a file as an ordinary user and prints what it is told.
func childOpen(path string) int {
	for _, ro := range []bool{false, true} {
		t := &childTest{}
		s, err := Open(t.Context(), path, Options{ReadOnly: ro})
		if err == nil {
			_, err = store.Complete(s).Find(t.Context(), "1")
			err = errors.Join(err, s.Close())
		}
		fmt.Printf("read only %v: %v\n", ro, err)
	}
	t := &childTest{}
	s, err := Open(t.Context(), path, Options{Beside: true})
	if err == nil {
		_, err = s.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb})
		err = errors.Join(err, s.Close())
	}
	fmt.Printf("beside: %v\n", err)
	return 0
}

// A file or directory that may not be written is refused for writing, with a
// sentence that says so, and can be read all the same.
func TestReadOnlyPlaces(t *testing.T) {
	var as *syscall.Credential
	if os.Geteuid() == 0 { // modes do not bind root
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errU, errG); err != nil {
			t.Fatal(err)
		}
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	for name, c := range map[string]struct {
		file, dir fs.FileMode
		write     string
		read      string
		beside    string
	}{
		"file and directory": {0o444, 0o555, "permission denied", "<nil>", "read-only"},
		"directory":          {0o666, 0o555, "permission denied", "<nil>", "its directory is read-only"},
		"file":               {0o444, 0o755, "permission denied", "<nil>", "read-only"},
		"secret file":        {0o000, 0o755, "permission denied", "cannot be opened", "cannot be opened"},
		"open to all":        {0o600, 0o777, "run `chmod go-w ", "cannot be opened", "run `chmod go-w "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "place")
			path := filepath.Join(dir, "state.db")
			s, _, _ := populate(t, path)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path + ".lock"); err != nil {
				t.Fatal(err)
			}
			openUp(t, dir)
			if as != nil {
				if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
					t.Fatal(err)
				}
			}
			for p, mode := range map[string]fs.FileMode{path: c.file, dir: c.dir} {
				if err := os.Chmod(p, mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() {
				if err := os.Chmod(dir, 0o700); err != nil {
					t.Error(err)
				}
			})
			out, err := child(t, "open", path, as).CombinedOutput()
			write, rest, _ := strings.Cut(string(out), "\n")
			read, beside, ok := strings.Cut(rest, "\nbeside: ")
			if err != nil || !ok || !strings.Contains(write, c.write) || !strings.Contains(read, c.read) || !strings.Contains(beside, c.beside) {
				t.Errorf("child: err = %v\n%s\nwant %q to write, %q to read, %q to speak", err, out, c.write, c.read, c.beside)
			}
		})
	}
}
