package agents

import (
	"fmt"
	"strings"
)

// A NotFoundError says that there is no binary for an agent.
type NotFoundError struct {
	Name      string
	Version   string      // version that was searched; "" = any version
	Searched  []string    // the directories that were searched, in order
	Misplaced []Misplaced // binaries of that name that are in a wrong directory
	Similar   string      // installed agent with the most similar name; "" = none
	Err       error       // error of directories that could not be searched, or nil
}

// Error names the missing binary and the directories that were searched.
func (e *NotFoundError) Error() string {
	what := binaryName(e.Name)
	if e.Version != "" {
		what += " " + e.Version
	}
	text := fmt.Sprintf("agent %q is not installed: no %s", e.Name, what)
	if len(e.Searched) > 0 {
		text += " in " + strings.Join(e.Searched, ", ")
	}
	for _, m := range e.Misplaced {
		text += fmt.Sprintf("; %s is not where it is looked for, NAME/VERSION/OS_ARCH/%sNAME", m.Path, binaryPrefix)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of directories that could not be searched.
func (e *NotFoundError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *NotFoundError) Hint() string {
	switch {
	case len(e.Misplaced) > 0:
		return "move the file to " + e.Misplaced[0].Want
	case e.Similar != "":
		return fmt.Sprintf("did you mean %q?", e.Similar)
	}
	return "install the agent, or say where it is with --plugin-dir"
}

// A VersionError says that an agent is installed, but no version of it fits.
type VersionError struct {
	Name       string
	Constraint string
	Have       []Binary // installed versions
}

// Error names the constraint and the installed versions.
func (e *VersionError) Error() string {
	var have []string
	for _, b := range e.Have {
		have = append(have, fmt.Sprintf("%s (%s)", b.Version, b.Path))
	}
	return fmt.Sprintf("agent %q: no version fits %q; there is %s", e.Name, e.Constraint, strings.Join(have, ", "))
}

// Hint says what to do.
func (e *VersionError) Hint() string {
	return "install a version that fits, or change the version argument of the agent block"
}

// A ChecksumError says that a binary is not the one that was recorded.
type ChecksumError struct {
	Name    string
	Version string
	Path    string
	Want    string // hex SHA-256 as recorded
	Have    string // hex SHA-256 of the file
}

// Error names the binary and both checksums.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("agent %q: %s is not the binary of version %s that was recorded: its SHA-256 is %s, not %s",
		e.Name, e.Path, e.Version, e.Have, e.Want)
}

// Hint says what to do.
func (e *ChecksumError) Hint() string {
	return "if the change is meant, run `engine init --upgrade` to record it; otherwise reinstall the agent"
}

// A ConfigError says that an agent refuses its configuration, or that the configuration
// could not be evaluated.
type ConfigError struct {
	Name string // name of the agent block
	Err  error
}

// Error returns the agent's own text.
func (e *ConfigError) Error() string { return fmt.Sprintf("agent %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// A SecretError says that a secret in an agent's configuration cannot be resolved here.
type SecretError struct {
	Name string // name of the agent block
	Err  error
}

// Error names the secret, never its value.
func (e *SecretError) Error() string { return fmt.Sprintf("agent %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *SecretError) Unwrap() error { return e.Err }

// An UnlockedError says that the only file for an agent is in the module's own directory
// and no lock file names it. The file was not run.
type UnlockedError struct {
	Name string
	Path string
}

// Error names the file.
func (e *UnlockedError) Error() string {
	return fmt.Sprintf("agent %q: %s came with the module, and no lock file names it, so it is not run", e.Name, e.Path)
}

// Hint says what a person can do.
func (e *UnlockedError) Hint() string {
	return "if you trust the file, run `engine init`: it locks it"
}
