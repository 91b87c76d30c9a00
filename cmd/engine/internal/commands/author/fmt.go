package author

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

type fmtOptions struct{ check, diff, recursive, write bool }

// Fmt returns the command `engine fmt`, which rewrites workflow files in the standard layout.
func Fmt(a *cli.App) *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt [PATH…|-]",
		Short: "Rewrite files in canonical layout",
		Long: `Rewrites *.hcl files in canonical layout and prints the names of those that
changed. PATH is a directory (default: this one) or a file; - formats standard
input to standard output. A library is a module of its own: name its directory,
too, or a directory that holds both with --recursive.`,
		Args: cli.Wants("[PATH…]"),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				args = []string{"."}
			case len(args) == 1 && args[0] == "-":
				return formatInput(a, o)
			case slices.Contains(args, "-"):
				return cli.Failed("Too many arguments", "- is standard input, and cannot be combined with a PATH.")
			}
			return formatPaths(a, args, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.check, "check", false, "change nothing; exit 3 if files would change")
	f.BoolVar(&o.diff, "diff", false, "show what changes")
	f.BoolVar(&o.recursive, "recursive", false, "also the files in subdirectories")
	f.BoolVar(&o.write, "write", true, "write the files")
	return cmd
}

func formatInput(a *cli.App, o fmtOptions) error {
	src, err := io.ReadAll(a.Stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	out, diags := dsl.Format(src, "<stdin>")
	if diags.HasErrors() {
		return cli.Problems(diags)
	}
	changed := !bytes.Equal(src, out)
	switch {
	case a.JSON:
		err = a.PrintJSON(map[string]any{"changed": changed, "text": string(out)})
	case o.diff:
		err = a.Print("%s", render.Visible(string(diff.Diff("old/<stdin>", src, "new/<stdin>", out))))
	case !o.check:
		err = a.Print("%s", screenText(a, out))
	}
	if err == nil && o.check && changed {
		return exit.Code(exit.Format)
	}
	return err
}

// screenText returns the text of a file for stdout. On a terminal it replaces control
// characters, because they could change what the terminal shows.
func screenText(a *cli.App, text []byte) string {
	if _, _, ok := cli.Size(a.Stdout); ok {
		return render.Visible(string(text))
	}
	return string(text)
}

// formatPaths formats files, and the files of directories. It reports files that it cannot
// parse, and formats the others.
func formatPaths(a *cli.App, given []string, o fmtOptions) error {
	var files []string
	for _, path := range given {
		more, err := formatFiles(a, path, o.recursive)
		if err != nil {
			return err
		}
		// If a given directory is inside of another given directory, the list has its files only
		// once.
		for _, name := range more {
			if !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	var diags diag.Diagnostics
	changed := []string{}
	for _, name := range files {
		full := a.Path(name)
		src, err := regular.Read(full, regular.MaxSource)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		out, d := dsl.Format(src, filepath.ToSlash(name))
		diags = append(diags, d...)
		if d.HasErrors() || bytes.Equal(src, out) {
			continue
		}
		changed = append(changed, filepath.ToSlash(name))
		if !a.JSON {
			if err := a.Print("%s\n", render.Clean(filepath.ToSlash(name))); err != nil {
				return err
			}
		}
		if o.diff && !a.JSON {
			if err := a.Print("%s", render.Visible(string(diff.Diff("old/"+name, src, "new/"+name, out)))); err != nil {
				return err
			}
		}
		if o.write && !o.check {
			if err := regular.Replace(full, out); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
	return formatEnd(a, changed, diags, o)
}

func formatEnd(a *cli.App, changed []string, diags diag.Diagnostics, o fmtOptions) error {
	if a.JSON {
		fields := map[string]any{"changed": changed}
		if len(diags) > 0 {
			fields["diagnostics"] = diags
		}
		if err := a.PrintJSON(fields); err != nil {
			return err
		}
	} else {
		a.Show(diags)
	}
	switch {
	case diags.HasErrors():
		return exit.Code(exit.Failed)
	case o.check && len(changed) > 0:
		return exit.Code(exit.Format)
	}
	return nil
}

// formatFiles lists the files to format. In a directory, these are the files whose names end in
// .hcl, without hidden files and without the files in hidden directories.
func formatFiles(a *cli.App, given string, recursive bool) ([]string, error) {
	info, err := os.Stat(a.Path(given))
	if err != nil {
		return nil, cli.Failed("No such file or directory", "%s does not exist.", given)
	}
	if !info.IsDir() {
		if !strings.HasSuffix(given, ".hcl") {
			return nil, cli.Failed("Not an HCL file", "%s does not end in .hcl.", given)
		}
		return []string{filepath.Clean(given)}, nil
	}
	var out []string
	err = filepath.WalkDir(a.Path(given), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(a.Path(given), p)
		switch {
		case err != nil:
			return err
		case relErr != nil:
			return relErr
		case d.IsDir() && rel != "." && (!recursive || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(d.Name(), ".hcl") && !strings.HasPrefix(d.Name(), "."):
			out = append(out, filepath.Join(given, rel))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for files: %w", err)
	}
	return out, nil
}
