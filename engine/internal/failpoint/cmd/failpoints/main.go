// Command failpoints lists the points at which a test can inject a fault. It reads them from the
// source code.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/engine/internal/failpoint/source"
)

func main() {
	write := flag.Bool("write", false, "write points.txt next to the package instead of printing")
	root := flag.String("root", "../../..", "directory of the module")
	flag.Parse()
	if err := run(*root, *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, write bool) error {
	names, err := source.List(root)
	if err != nil {
		return err
	}
	text := strings.Join(names, "\n") + "\n"
	if !write {
		_, err := fmt.Print(text)
		return err
	}
	return os.WriteFile(filepath.Join(root, "engine", "internal", "failpoint", "points.txt"), []byte(text), 0o644)
}
