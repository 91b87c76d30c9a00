// Command demo shows the order process. An application submits runs in its own transactions. Two
// engines at a time work on the runs, and the demo kills the first one. One run waits for an
// operator. At the end, the demo shows the replies that the application has got. `make demo-orders`
// starts the demo with a private PostgreSQL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// patience is the longest time that the demo waits for one condition, such as a status of a run.
const patience = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	d := &demo{ctx: ctx, out: os.Stdout}
	flag.StringVar(&d.bin, "bin", "bin", "directory with engine, shop, orders and the agents")
	flag.StringVar(&d.module, "module", "examples/order-processing", "directory of the workflow")
	flag.StringVar(&d.dsn, "dsn", "", "PostgreSQL database")
	flag.Parse()
	err := d.run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// A demo holds the processes of the demo and its first error. After an error it starts no process
// and no command.
type demo struct {
	ctx              context.Context //nolint:containedctx // the demo runs only once
	out              io.Writer
	bin, module, dsn string
	dir              string // logs and files of the demo; removed at the end
	processes        []*process
	err              error
}

func (d *demo) run() (err error) {
	if d.dsn == "" {
		return errors.New("--dsn is missing: make demo-orders starts a database and gives it")
	}
	if d.dir, err = os.MkdirTemp("", "order-demo-"); err != nil {
		return fmt.Errorf("make room for logs: %w", err)
	}
	defer func() {
		for i := len(d.processes) - 1; i >= 0; i-- {
			err = errors.Join(err, d.processes[i].stop())
		}
		if err != nil {
			d.showLogs()
		}
		err = errors.Join(err, os.RemoveAll(d.dir))
	}()

	d.title("A database, a shop, and an order application with tables of its own")
	d.engine(0, "db", "migrate", "--dsn", d.dsn)
	d.do(0, "orders", "init", "--dsn", d.dsn)
	shop := d.serve("shop", "serve", "--addr", "127.0.0.1:0", "--db", filepath.Join(d.dir, "shop.db"), "--with-stdin",
		"--no-carrier", "AQ", "--fault", "charge:times=1,delay=3s,after=true")
	app := d.serve("orders", "serve", "--dsn", d.dsn, "--with-stdin")
	d.engine(0, "publish", d.module, "--dsn", d.dsn, "--var", "shop_url="+shop, "--var", "orders_url="+app)
	first := d.startEngine("engine-1")

	d.title("An order and its run: one transaction. The transaction of the second order fails: nothing is left of it")
	d.do(0, "orders", "place", "--dsn", d.dsn, "--id", "o-1", "--amount", "3400")
	d.do(1, "orders", "place", "--dsn", d.dsn, "--id", "o-2", "--amount", "1200", "--fail")

	d.title("The engine is killed while the charge is in flight; the Supervisor of another engine takes the run over")
	d.await("the charge of o-1", `(?m)^o-1 +charge `, "shop", "ledger", "--db", filepath.Join(d.dir, "shop.db"))
	d.startEngine("engine-2")
	d.await("both engines", `(?s)engine-1.*engine-2|engine-2.*engine-1`, "engine", "doctor", "--dsn", d.dsn)
	d.kill(first)
	d.await("the end of o-1", `(?m)^o-1 .* succeeded +accepted started succeeded$`, "orders", "list", "--dsn", d.dsn)

	d.title("No carrier answers: the run waits for an operator, and the application is told")
	d.put(shop+"/faults/book", "times=1000,status=503")
	d.do(0, "orders", "place", "--dsn", d.dsn, "--id", "o-3", "--amount", "900")
	d.await("the open circuit", `circuit`, "engine", "show", "order/o-3", "--events", "--dsn", d.dsn)
	d.await("the stop of o-3", `(?m)^o-3 .* parked +accepted started parked$`, "orders", "list", "--dsn", d.dsn)
	d.awaitAlert("order/o-3")
	d.engine(0, "list", "--status", "attention", "--dsn", d.dsn)

	d.title("A third engine joins. The operator repairs the cause and repeats the step, not the whole process")
	d.startEngine("engine-3")
	d.put(shop+"/faults/book", "times=0")
	d.engine(0, "retry", "order/o-3", "--reason", "the carrier answers again", "--dsn", d.dsn)
	d.await("the end of o-3", `(?m)^o-3 .* succeeded +accepted started parked (started )?succeeded$`, "orders", "list", "--dsn", d.dsn)

	d.title("Nobody delivers to AQ: another try cannot help, so the charge is refunded")
	d.do(0, "orders", "place", "--dsn", d.dsn, "--id", "o-4", "--amount", "500", "--country", "AQ")
	d.await("the undo of o-4", `(?m)^o-4 .* compensated +accepted started compensated$`, "orders", "list", "--dsn", d.dsn)

	d.title("What the application knows, and the shop's own ledger")
	if out := d.do(0, "orders", "list", "--dsn", d.dsn); d.err == nil && strings.Contains(out, "o-2") {
		d.err = errors.New("order o-2 is stored, although its transaction failed")
	}
	d.do(0, "shop", "ledger", "--db", filepath.Join(d.dir, "shop.db"), "--expect", "o-1=done", "--expect", "o-3=done", "--expect", "o-4=undone")
	return d.err
}

func (d *demo) title(text string) {
	if d.err == nil {
		fmt.Fprintf(d.out, "\n== %s\n", text)
	}
}

// engine runs a command of the engine, and prints its output.
func (d *demo) engine(want int, args ...string) { d.do(want, "engine", args...) }

// do runs a command, and prints and returns the output of the command. It is an error of the demo
// if the exit code differs from the parameter `want`.
func (d *demo) do(want int, name string, args ...string) string {
	if d.err != nil {
		return ""
	}
	fmt.Fprintf(d.out, "$ %s %s\n", name, strings.Join(d.short(args), " "))
	out, code, err := d.output(name, args...)
	fmt.Fprint(d.out, out)
	if err == nil && code != want {
		err = fmt.Errorf("%s %s ended with exit code %d, not %d", name, args[0], code, want)
	}
	d.err = err
	return out
}

// short returns the arguments without --dsn and its value, which are the same in each command.
func (d *demo) short(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--dsn" {
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return kept
}

func (d *demo) output(name string, args ...string) (out string, code int, err error) {
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, name), args...)
	data, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return string(data), exit.ExitCode(), nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return string(data), 0, err
}

// await runs a command until its output matches the pattern.
func (d *demo) await(what, pattern, name string, args ...string) {
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); d.err == nil; {
		out, _, err := d.output(name, args...)
		switch {
		case err != nil:
			d.err = err
		case want.MatchString(out):
			fmt.Fprintf(d.out, "%s: seen\n", what)
			return
		case time.Now().After(end):
			d.err = fmt.Errorf("waited for %s in vain:\n%s", what, out)
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// put sends a fault setting to the shop.
func (d *demo) put(url, body string) {
	if d.err != nil {
		return
	}
	req, err := http.NewRequestWithContext(d.ctx, http.MethodPut, url, strings.NewReader(body))
	if err == nil {
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			err = res.Body.Close()
			if err == nil && res.StatusCode != http.StatusNoContent {
				err = fmt.Errorf("the shop answered %s", res.Status)
			}
		}
	}
	if err != nil {
		d.err = fmt.Errorf("set a fault: %w", err)
	}
}
