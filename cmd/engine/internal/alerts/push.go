package alerts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk/procgroup"
)

// webhookPatience is how long a webhook may take to answer.
const webhookPatience = 10 * time.Second

// To returns the pusher that runs the program of --on-alert. If onAlert is "", To returns the
// pusher that calls the URL of --alert-webhook. The program gets the environment in the
// parameter `environ`, without the engine's credentials.
func To(onAlert, url string, environ []string) pusher {
	if onAlert != "" {
		return program{path: onAlert, env: withoutSecrets(environ)}
	}
	return webhook{url: url, client: &http.Client{
		Timeout: webhookPatience,
		// The client follows no redirect: otherwise the alert could go to another address than
		// the user has given.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// A webhook is a pusher that sends each alert in an HTTP POST request.
type webhook struct {
	url    string
	client *http.Client
}

// String returns only scheme and host of the URL, because paths of webhooks are secrets.
func (w webhook) String() string { return hostOf(w.url) }

func (w webhook) push(ctx context.Context, a store.AlertRow, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("--alert-webhook is not a URL that can be called")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "engine/"+cli.Version)
	req.Header.Set("Idempotency-Key", "alert-"+strconv.FormatInt(a.ID, 10))
	res, err := w.client.Do(req)
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // the text of the *url.Error holds the URL, which is secret
	}
	if err != nil {
		return fmt.Errorf("call the webhook: %w", err)
	}
	defer res.Body.Close()
	// If the body is not read, the connection cannot be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		err := fmt.Errorf("the webhook answered %s", render.Clean(res.Status))
		switch {
		case res.StatusCode == http.StatusRequestTimeout, res.StatusCode == http.StatusTooEarly, res.StatusCode == http.StatusTooManyRequests:
		case res.StatusCode >= 400 && res.StatusCode < 500:
			return &refusedError{err}
		}
		return err
	}
	return nil
}

// A program is a pusher that runs an executable file for each alert.
type program struct {
	path string
	env  []string
}

// String returns the path of the program.
func (p program) String() string { return p.path }

// programRefuses is the exit code (EX_DATAERR) with which a program says that it will never
// take this alert. After any other failure the hook runs the program again.
const programRefuses = 65

// programGrace is how long the hook still reads the program's output after the program has
// ended or was killed.
const programGrace = time.Second

func (p program) push(ctx context.Context, a store.AlertRow, body []byte) error {
	cmd := exec.CommandContext(ctx, p.path)
	cmd.Dir = filepath.Dir(p.path)
	cmd.Env = append(slices.Clone(p.env),
		"ENGINE_ALERT_ID="+strconv.FormatInt(a.ID, 10), "ENGINE_ALERT_KIND="+plain(a.Kind), "ENGINE_ALERT_RUN="+plain(a.Name),
		"ENGINE_ALERT_WORKFLOW="+plain(a.Workflow), "ENGINE_ALERT_KEY="+plain(a.Key), "ENGINE_ALERT_STEP="+plain(a.Step), "ENGINE_ALERT_CODE="+plain(a.Code),
	)
	cmd.Stdin = bytes.NewReader(append(body, '\n'))
	said := &tail{most: 2 << 10}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = procgroup.Own()
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process) }
	cmd.WaitDelay = programGrace
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return nil // the program succeeded, but one of its children kept the output open
	case ctx.Err() != nil:
		return fmt.Errorf("run %s: it took too long and was ended%s", filepath.Base(p.path), said.text())
	}
	failure := fmt.Errorf("run %s: %w%s", filepath.Base(p.path), err, said.text())
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == programRefuses {
		return &refusedError{failure}
	}
	return failure
}

// plain removes zero bytes from s, because an environment variable cannot hold them.
func plain(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// withoutSecrets returns a copy of environ without the variables that hold the engine's
// credentials (secret.ReservedEnv).
func withoutSecrets(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return secret.ReservedEnv(name)
	})
}

// A tail keeps the last bytes that were written to it. The field `most` is how many bytes it
// keeps.
type tail struct {
	most int
	kept []byte
}

// Write appends b to the kept bytes. If these are then more bytes than the field `most` allows,
// Write drops the oldest bytes.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = slices.Delete(t.kept, 0, over)
	}
	return len(b), nil
}

// text returns the kept text as the end of an error message (": TEXT"). It returns "" if there is
// no text.
func (t *tail) text() string {
	s := strings.TrimSpace(string(t.kept))
	if s == "" {
		return ""
	}
	return ": " + render.Clean(s)
}

// hostOf returns scheme and host of a URL. The path and the query are never shown, because they
// may hold tokens.
func hostOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return fmt.Sprintf("%s://%s", scheme, host)
}
