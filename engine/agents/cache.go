package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/saga-engine/engine/sdk/plugin"
)

// cacheVersion is the version of the format of cached descriptions. A file with another version
// is not used.
const cacheVersion = 1

// maxCached is the largest size of a file of the cache that can be used, in bytes.
const maxCached = 4 << 20

// A cache keeps the description of each binary in a file. The name of the file is the checksum of
// the binary with .json. So the engine runs each binary only once to get its description. If the
// cache cannot be used, the engine runs the binary again.
type cache struct {
	dir    string // directory of the cache; "" = there is no cache
	logger *slog.Logger
}

// cached is the content of one file of the cache.
type cached struct {
	Version     int                `json:"version"`
	Checksum    string             `json:"checksum"`
	Description plugin.Description `json:"description"`
}

func (c cache) path(sum string) string { return filepath.Join(c.dir, sum+".json") }

func (c cache) get(sum string) (plugin.Description, bool) {
	if c.dir == "" || sum == "" {
		return plugin.Description{}, false
	}
	entry, err := c.read(sum)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.logger.Debug("cached description is not usable", "error", err)
		}
		return plugin.Description{}, false
	}
	return entry.Description, true
}

func (c cache) read(sum string) (cached, error) {
	if err := c.private(); err != nil {
		return cached{}, err
	}
	f, err := os.Open(c.path(sum))
	if err != nil {
		return cached{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxCached))
	if err != nil {
		return cached{}, err
	}
	var entry cached
	if err := json.Unmarshal(data, &entry); err != nil {
		return cached{}, fmt.Errorf("%s: %w", c.path(sum), err)
	}
	if entry.Version != cacheVersion || entry.Checksum != sum || entry.Description.Name == "" || len(entry.Description.Actions) == 0 {
		return cached{}, fmt.Errorf("%s: not a description of that binary", c.path(sum))
	}
	return entry, nil
}

// private returns an error if other users can write to the cache's directory, or if there is no
// such directory. A description that another user has written cannot be trusted.
func (c cache) private() error {
	info, err := os.Stat(c.dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users can write to %s", c.dir)
	}
	return nil
}

func (c cache) put(sum string, d plugin.Description) {
	if c.dir == "" || sum == "" {
		return
	}
	if err := c.write(sum, d); err != nil {
		c.logger.Debug("description could not be cached", "error", err)
	}
}

// write writes the file for a description. If the file exists, write replaces it atomically: a
// reader sees the whole old file or the whole new file.
func (c cache) write(sum string, d plugin.Description) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := c.private(); err != nil {
		return err
	}
	data, err := json.Marshal(cached{Version: cacheVersion, Checksum: sum, Description: d})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), c.path(sum))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return err
}
