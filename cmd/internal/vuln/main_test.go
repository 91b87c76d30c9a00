package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// found is the error of a govulncheck that has found something.
func found(t *testing.T) error {
	t.Helper()
	return exec.Command("sh", "-c", "exit 3").Run()
}

func TestAFindingFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, c := range []struct {
		name string
		look error
		want int
	}{
		{"nothing found", nil, 0},
		{"found", found(t), 1},
		{"another error", errors.New("no such tool"), 1},
	} {
		var out strings.Builder
		if got := run(t.Context(), server.URL, &out, func() error { return c.look }); got != c.want {
			t.Errorf("%s: exit code %d, want %d\n%s", c.name, got, c.want, out.String())
		}
	}
}

func TestWithoutANetworkItSaysSo(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	for _, closed := range []bool{false, true} {
		if closed {
			server.Close()
		}
		var out strings.Builder
		got := run(t.Context(), server.URL, &out, func() error {
			t.Error("it looks without a database")
			return nil
		})
		if got != 0 || !strings.Contains(out.String(), "NOT LOOKED FOR") {
			t.Errorf("exit code %d, %q; want 0 and a plain word", got, out.String())
		}
	}
	for _, c := range []struct {
		look error
		want int
	}{{errors.New("dial tcp: timeout"), 0}, {found(t), 1}} {
		server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var out strings.Builder
		got := run(t.Context(), server.URL, &out, func() error {
			server.Close() // the network is cut while govulncheck runs
			return c.look
		})
		if got != c.want {
			t.Errorf("the network goes, %v: exit code %d, want %d", c.look, got, c.want)
		}
	}
}
