package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// author helps people write workflows: init, validate, fmt.
type author struct{ *app }

type fmtOptions struct{ check, diff, recursive, write bool }

func fmtCommand(a *app) *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt [PATH|-]",
		Short: "Rewrite files in canonical layout",
		Long: `Rewrites *.hcl files in canonical layout and prints the names of those that
changed. PATH is a directory (default: this one) or a file; - formats standard
input to standard output.`,
		Args: wants("[PATH]"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "."
			if len(args) > 0 {
				path = args[0]
			}
			if path == "-" {
				return a.author().formatInput(o)
			}
			return a.author().formatPath(path, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.check, "check", false, "change nothing; exit 3 if files would change")
	f.BoolVar(&o.diff, "diff", false, "show what changes")
	f.BoolVar(&o.recursive, "recursive", false, "subdirectories too")
	f.BoolVar(&o.write, "write", true, "write the files")
	return cmd
}

func (a author) formatInput(o fmtOptions) error {
	src, err := io.ReadAll(a.stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	out, diags := dsl.Format(src, "<stdin>")
	if diags.HasErrors() {
		return problems(diags)
	}
	changed := !bytes.Equal(src, out)
	switch {
	case a.json:
		err = a.printJSON(map[string]any{"changed": changed, "text": string(out)})
	case o.diff:
		err = a.print("%s", render.Visible(string(diff.Diff("old/<stdin>", src, "new/<stdin>", out))))
	case !o.check:
		err = a.print("%s", a.source(out))
	}
	if err == nil && o.check && changed {
		return exitError(exitFormat)
	}
	return err
}

// source is a file for stdout: as it is where it goes to a program or a file, and
// without what could steer the terminal where it goes to one.
func (a author) source(text []byte) string {
	if _, _, ok := size(a.stdout); ok {
		return render.Visible(string(text))
	}
	return string(text)
}

// formatPath formats a file or the files of a directory. A file that cannot be
// parsed is reported and does not keep the others from being formatted.
func (a author) formatPath(given string, o fmtOptions) error {
	files, err := a.formatFiles(given, o.recursive)
	if err != nil {
		return err
	}
	var diags diag.Diagnostics
	changed := []string{}
	for _, name := range files {
		full := a.path(name)
		src, err := readRegular(full, maxFile)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		out, d := dsl.Format(src, filepath.ToSlash(name))
		diags = append(diags, d...)
		if d.HasErrors() || bytes.Equal(src, out) {
			continue
		}
		changed = append(changed, filepath.ToSlash(name))
		if !a.json {
			if err := a.print("%s\n", render.Clean(filepath.ToSlash(name))); err != nil {
				return err
			}
		}
		if o.diff && !a.json {
			if err := a.print("%s", render.Visible(string(diff.Diff("old/"+name, src, "new/"+name, out)))); err != nil {
				return err
			}
		}
		if o.write && !o.check {
			if err := replaceFile(full, out); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
	return a.formatEnd(changed, diags, o)
}

func (a author) formatEnd(changed []string, diags diag.Diagnostics, o fmtOptions) error {
	if a.json {
		fields := map[string]any{"changed": changed}
		if len(diags) > 0 {
			fields["diagnostics"] = diags
		}
		if err := a.printJSON(fields); err != nil {
			return err
		}
	} else {
		a.show(diags)
	}
	switch {
	case diags.HasErrors():
		return exitError(exitFailed)
	case o.check && len(changed) > 0:
		return exitError(exitFormat)
	}
	return nil
}

// formatFiles lists the files to format. JSON files are left alone, hidden
// directories too.
func (a author) formatFiles(given string, recursive bool) ([]string, error) {
	info, err := os.Stat(a.path(given))
	if err != nil {
		return nil, failed("No such file or directory", "%s does not exist.", given)
	}
	if !info.IsDir() {
		if !strings.HasSuffix(given, ".hcl") {
			return nil, failed("Not an HCL file", "%s does not end in .hcl.", given)
		}
		return []string{given}, nil
	}
	var out []string
	err = filepath.WalkDir(a.path(given), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(a.path(given), p)
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

// replaceFile writes a file anew beside the old one and puts it in its place,
// so that a crash leaves one or the other.
func replaceFile(name string, data []byte) error {
	info, err := os.Stat(name)
	mode := fs.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".engine-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // a leftover only; gone once renamed
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Chmod(mode)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
