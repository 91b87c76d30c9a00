package agents

import (
	"errors"
	"fmt"
	"strings"
)

// A NotFoundError says that there is no binary for an agent.
type NotFoundError struct {
	Name      string
	Version   string      // version that was needed; "" = any version
	Searched  []string    // directories that were searched, in order
	Misplaced []Misplaced // binaries of this agent that are in a wrong directory
	Similar   string      // installed agent with the most similar name; "" = none
	Err       error       // says which directories could not be searched; nil = all were searched
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

// Unwrap returns the error about directories that could not be searched, or nil.
func (e *NotFoundError) Unwrap() error { return e.Err }

// Hint says how a person can make the binary available.
func (e *NotFoundError) Hint() string {
	switch {
	case len(e.Misplaced) > 0:
		return "move the file to " + e.Misplaced[0].Want
	case e.Similar != "":
		return fmt.Sprintf("did you mean %q?", e.Similar)
	}
	return "install the agent, or say where it is with --plugin-dir"
}

// A VersionError says that an agent is installed, but no installed version meets the constraint.
type VersionError struct {
	Name       string
	Constraint string   // versions that are needed, such as "~> 1.2"
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

// Hint says how a person can get a version that fits.
func (e *VersionError) Hint() string {
	return "install a version that fits, or change the version argument of the agent block"
}

// A ChecksumError says that a binary has another checksum than the lock file or the definition.
type ChecksumError struct {
	Name    string
	Version string
	Path    string
	Want    string // SHA-256 in the lock file or the definition, in hex
	Have    string // SHA-256 of the file, in hex
}

// Error names the binary and both checksums.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("agent %q: %s is not the binary of version %s that was recorded: its SHA-256 is %s, not %s",
		e.Name, e.Path, e.Version, e.Have, e.Want)
}

// Hint says how a person can accept or repair the binary.
func (e *ChecksumError) Hint() string {
	return "if the change is meant, run `engine init --upgrade` to record it; otherwise reinstall the agent"
}

// A ConfigError says that an agent refuses its configuration, that the call with the configuration
// failed, or that the checksum of the agent in the definition is not hexadecimal.
type ConfigError struct {
	Name string // name of the agent block
	Err  error
}

// Error names the agent and contains the text of the cause.
func (e *ConfigError) Error() string { return fmt.Sprintf("agent %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// A SecretError says that this engine cannot resolve a secret in an agent's configuration.
type SecretError struct {
	Name string // name of the agent block
	Err  error
}

// Error names the agent and the reference to the secret, never the secret's value.
func (e *SecretError) Error() string { return fmt.Sprintf("agent %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *SecretError) Unwrap() error { return e.Err }

// An UnlockedError says that files for an agent are in the module's own directory, that no lock
// file names them, and that no other file can be used. They were not run.
type UnlockedError struct {
	Name string
	Path string // path of the first file that is not run
}

// Error names the first file.
func (e *UnlockedError) Error() string {
	return fmt.Sprintf("agent %q: %s came with the module, and no lock file names it, so it is not run", e.Name, e.Path)
}

// Hint says what a person can do.
func (e *UnlockedError) Hint() string {
	return "if you trust the file, run `engine init`: it locks it"
}

// A SourceError says that the source in an agent block does not give the binary that is needed.
type SourceError struct {
	Name string
	Path string // absolute path of the source
	Err  error
}

// Error names the agent and the path, and contains the text of the cause.
func (e *SourceError) Error() string {
	var missing *NotFoundError
	if errors.As(e.Err, &missing) && len(missing.Misplaced) == 0 && missing.Err == nil {
		return fmt.Sprintf("agent %q: its source is %s, and no %s is there", e.Name, e.Path, binaryName(e.Name))
	}
	return fmt.Sprintf("agent %q: its source is %s, and there: %v", e.Name, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *SourceError) Unwrap() error { return e.Err }

// Hint says how a person can make the source right.
func (e *SourceError) Hint() string {
	var changed *ChecksumError
	var missing *NotFoundError
	if errors.As(e.Err, &missing) && len(missing.Misplaced) > 0 {
		return missing.Hint()
	}
	if errors.As(e.Err, &changed) {
		return "if the change is meant, run `engine init --upgrade` to lock it; otherwise put the locked binary there"
	}
	return fmt.Sprintf("put %s there, or correct the argument source of the agent block", binaryName(e.Name))
}

// An OccupiedError says that a binary cannot be installed, because another build of the same
// version is already at its path.
type OccupiedError struct {
	Name, Version string
	Path          string // path where the binary should be, and where the other build is
}

// Error names the file that is in the way.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("agent %q: %s is another build of version %s, and open runs may need it", e.Name, e.Path, e.Version)
}

// Hint says how a person can install the new build.
func (e *OccupiedError) Hint() string {
	return "give the new build another version; or, if `engine list` shows no open run that needs the old one, delete that file, and run `engine init --upgrade` again"
}
