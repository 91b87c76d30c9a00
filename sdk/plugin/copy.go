package plugin

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	goplugin "github.com/hashicorp/go-plugin"
)

// checkedCopy copies a binary to dir, which must be private, checks the SHA-256 of the
// copy, and returns the path of the copy. The caller runs the copy and not the original,
// because the original may change between the check and the start. If `sum` is empty,
// checkedCopy does not check the copy.
func checkedCopy(dir, original string, sum []byte) (string, error) {
	in, err := os.Open(original)
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // the file is only read
	path := filepath.Join(dir, filepath.Base(original))
	if err := copyTo(path, in); err != nil {
		return "", fmt.Errorf("copy to %s: %w", dir, err)
	}
	if len(sum) == 0 {
		return path, nil
	}
	secure := goplugin.SecureConfig{Checksum: sum, Hash: sha256.New()}
	ok, err := secure.Check(path)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", goplugin.ErrChecksumsDoNotMatch
	}
	return path, nil
}

// openChecked opens a binary and checks the SHA-256 of the open file. If `sum` is empty, it does
// not check.
func openChecked(path string, sum []byte) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil || len(sum) == 0 {
		return file, err
	}
	h := sha256.New()
	if _, err = io.Copy(h, file); err == nil && !bytes.Equal(h.Sum(nil), sum) {
		err = goplugin.ErrChecksumsDoNotMatch
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// copyTo copies the bytes that it reads from `in` to a new executable file. The file must not
// exist yet.
func copyTo(path string, in io.Reader) error {
	// The system refuses to run a file that a process has open for writing. This lock prevents
	// other goroutines from starting a process while the copy is open for writing. Without the
	// lock, such a process would inherit the open copy, and the system would refuse to run the
	// copy.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// changedError returns the error for a binary that does not have the expected checksum.
func changedError(path string) *StartError {
	return &StartError{
		Path: path, Reason: ReasonChecksum, Err: errors.New("the file has changed: its SHA-256 is not the expected one"),
		Hint: "if the change is meant, run `engine init --upgrade` to record it; otherwise reinstall the agent",
	}
}
