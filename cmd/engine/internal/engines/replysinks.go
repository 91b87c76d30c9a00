package engines

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/webhook"
)

// A sinkFile is the content of the file of reply sinks.
type sinkFile struct {
	Sinks   map[string]sinkEntry `json:"sinks"`
	Hosts   map[string]sinkEntry `json:"hosts"`
	Private bool                 `json:"private"`
}

// A sinkEntry is a named sink, or a host that submitters may name in a URL.
type sinkEntry struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // env:NAME or file:PATH
}

// ReplySinks reads the file of reply sinks. The result is nil if no file is given.
func ReplySinks(a *cli.App, file string) (engine.ReplySender, error) {
	if file == "" {
		return nil, nil
	}
	fail := func(err error) error {
		return cli.Failed("Invalid reply sinks", "%s: %s. docs/language.md#replies shows such a file.", file, err)
	}
	f, err := regular.Open(a.Path(file))
	if err != nil {
		return nil, fail(err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fail(err)
	}
	var in sinkFile
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fail(fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(int(dec.InputOffset()), len(text))], []byte("\n")), err))
	}
	cfg := webhook.Config{Sinks: map[string]webhook.Sink{}, Hosts: map[string]webhook.Sink{}, Private: in.Private}
	for name, e := range in.Sinks {
		key, err := signingKey(a, e.Secret)
		if err != nil {
			return nil, fail(fmt.Errorf("sink %q: %w", name, err))
		}
		cfg.Sinks[name] = webhook.Sink{URL: e.URL, Secret: key}
	}
	for host, e := range in.Hosts {
		key, err := signingKey(a, e.Secret)
		if err == nil && e.URL != "" {
			err = errors.New("a host has no url")
		}
		if err != nil {
			return nil, fail(fmt.Errorf("host %q: %w", host, err))
		}
		cfg.Hosts[strings.ToLower(host)] = webhook.Sink{Secret: key}
	}
	s, err := webhook.New(cfg)
	if err != nil {
		return nil, fail(err)
	}
	return s, nil
}

// signingKey returns the key that the reference `ref` names. After the prefix whsec_, which the
// Standard Webhooks specification uses, the key is in base64. Any other text is the key itself.
func signingKey(a *cli.App, ref string) ([]byte, error) {
	text, err := resolve(a, ref)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	coded, is := strings.CutPrefix(text, "whsec_")
	if !is {
		return []byte(text), nil
	}
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return nil, errors.New("secret: what follows whsec_ is not base64")
	}
	return key, nil
}
