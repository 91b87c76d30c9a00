// The vuln command looks for known vulnerabilities with the pinned govulncheck, which asks the Go
// vulnerability database. Without a network the command prints a message and exits with 0. So
// `make check` works without a network, too. If govulncheck finds a vulnerability, the command
// fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// database is the address of the database that govulncheck asks.
const database = "https://vuln.go.dev"

// patience is the longest wait for an answer of the database.
const patience = 10 * time.Second

func main() {
	os.Exit(run(context.Background(), database, os.Stdout, func() error {
		cmd := exec.Command("go", "tool", "-modfile=cmd/tools.mod", "govulncheck", "./...")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}))
}

// run calls the function `look` to find vulnerabilities, if the database answers. It returns the
// exit code of the command.
func run(ctx context.Context, db string, out io.Writer, look func() error) int {
	if err := reachable(ctx, db); err != nil {
		fmt.Fprintf(out, "NOT LOOKED FOR known vulnerabilities: %s does not answer (%v). Run `make vuln` where there is a network.\n", db, err)
		return 0
	}
	err := look()
	if err == nil {
		return 0
	}
	// The network may have failed during the search. govulncheck ends with exit code 3 if it has
	// found a vulnerability.
	var exit *exec.ExitError
	if gone := reachable(ctx, db); gone != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
		fmt.Fprintf(out, "NOT LOOKED FOR known vulnerabilities: %s does not answer any more (%v). Run `make vuln` again.\n", db, gone)
		return 0
	}
	fmt.Fprintf(out, "govulncheck: %v\n", err)
	return 1
}

// reachable returns an error that says why the vulnerability database does not answer; nil =
// it answers.
func reachable(ctx context.Context, db string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, db+"/index/db.json", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}
