// Command demo shows the order example: an order that succeeds, an order that is undone, and the
// shop's ledger, which proves both results. Build the binaries first. Then run `make demo` in the
// root of the repository.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	module    = "examples/order-saga"
	stateDir  = module + "/.engine" // state of the runs and of the shop; each demo deletes it first
	engineBin = "bin/engine"
	shopBin   = "bin/shop"
	shopDB    = stateDir + "/shop.db"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo runs the commands of the demo. It returns an error if a result is not the expected result.
func demo(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if _, err := os.Stat(engineBin); err != nil {
		return fmt.Errorf("%s is missing: run make build first, and this from the root of the repository", engineBin)
	}
	if err := os.RemoveAll(stateDir); err != nil {
		return fmt.Errorf("clear the last demo's state: %w", err)
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fmt.Errorf("make room for state: %w", err)
	}
	p := printer{out: stdout}
	p.title("A shop with inventory, payment, shipping and mail; each charge fails once before it works")
	if err := command(ctx, stdout, stderr, "go", "build", "-o", shopBin, "./"+module+"/shop").Run(); err != nil {
		return fmt.Errorf("build the shop: %w", err)
	}
	shop, err := startShop(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.stop()) }()

	var wrong []string
	apply := func(want int, args ...string) {
		if err != nil {
			return
		}
		var got int
		args = append([]string{engineBin, "apply", module, "--var", "shop_url=" + shop.url}, args...)
		p.command(args)
		got, err = exitCode(command(ctx, stdout, stderr, args...))
		p.line("exit code %d", got)
		if got != want {
			wrong = append(wrong, fmt.Sprintf("exit code %d, not %d", got, want))
		}
	}
	p.title("An order that succeeds")
	apply(0, "--var", "order_id=o-1001")
	p.title("An order that nobody delivers: the charge is refunded, the reservations are released")
	apply(4, "--var", "order_id=o-1002", "--var", "country=AQ")
	p.title("The first order again: its run is there already, nothing is done twice")
	apply(0, "--var", "order_id=o-1001")
	if err != nil {
		return err
	}

	p.title("The shop's own ledger")
	ledger := []string{shopBin, "ledger", "--db", shopDB, "--expect", "o-1001=done", "--expect", "o-1002=undone"}
	code, err := exitCode(command(ctx, stdout, stderr, ledger...))
	if err != nil {
		return err
	}
	if code != 0 {
		wrong = append(wrong, "the ledger is not as it should be")
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	p.title("All as expected. Look around:")
	p.line("%s list --chdir %s", engineBin, module)
	p.line("%s show o-1002 --chdir %s", engineBin, module)
	return p.err
}

// command returns a process that is ready to start. When ctx ends, the process gets an
// interrupt, as after Ctrl-C.
func command(ctx context.Context, stdout, stderr io.Writer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd
}

// exitCode runs a command and returns its exit code. It returns an error if the command could not
// run.
func exitCode(cmd *exec.Cmd) (int, error) {
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	}
	return 0, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
}

// A shopProcess holds the running process of the shop.
type shopProcess struct {
	url   string
	stdin io.Closer // pipe to the shop's standard input; the shop ends when the pipe is closed or the demo ends
	exit  <-chan error
	cmd   *exec.Cmd
}

// startShop starts the shop on a free port of the loopback address and waits until it
// accepts connections.
func startShop(ctx context.Context, stderr io.Writer) (*shopProcess, error) {
	ready := filepath.Join(stateDir, "shop.addr")
	cmd := exec.Command(shopBin, "serve", "--addr", "127.0.0.1:0", "--db", shopDB, "--ready-file", ready, "--with-stdin", //nolint:noctx // the method `stop` ends the shop, but only after the engine has ended
		"--no-carrier", "AQ", "--fault", "charge:times=1,status=503")
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the shop: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the shop: %w", err)
	}
	exit := make(chan error, 1)
	go func() { exit <- cmd.Wait() }()
	s := &shopProcess{stdin: stdin, exit: exit, cmd: cmd}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-exit:
			return nil, fmt.Errorf("the shop ended at once: %w", err)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the shop: %w", ctx.Err()), s.stop())
		case <-tick.C:
		}
		text, err := os.ReadFile(ready)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the shop's address: %w", err), s.stop())
		}
		s.url = string(bytes.TrimSpace(text))
		return s, nil
	}
}

// stop ends the shop and waits for its end.
func (s *shopProcess) stop() error {
	if err := s.stdin.Close(); err != nil {
		return fmt.Errorf("stop the shop: %w", err)
	}
	select {
	case err := <-s.exit:
		if err != nil {
			return fmt.Errorf("the shop ended badly: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
	}
	err := s.cmd.Process.Kill()
	<-s.exit
	return errors.Join(errors.New("the shop did not stop by itself"), err)
}

// A printer writes the demo's own lines, not the output of commands. The field `err` holds the
// first error of writing.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format+"\n", args...); err != nil && p.err == nil {
		p.err = fmt.Errorf("print: %w", err)
	}
}

func (p *printer) title(text string) { p.line("\n== %s", text) }

func (p *printer) command(args []string) { p.line("$ %s", strings.Join(args, " ")) }
