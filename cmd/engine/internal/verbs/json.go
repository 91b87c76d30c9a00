package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl"
)

// maxJSONFlag is the largest size, in bytes, of the JSON value of a flag.
const maxJSONFlag = 1 << 20

// jsonFlag parses the value of a flag as JSON; @FILE means the content of a file. It parses "" as
// an empty object, because an action without outputs returns an empty object.
func jsonFlag(a *cli.App, flag, text string) (dsl.Value, error) {
	data := []byte(text)
	if len(text) > 1 && text[0] == '@' {
		f, err := regular.Open(a.Path(text[1:]))
		if err != nil {
			return dsl.Value{}, err
		}
		defer f.Close()
		if data, err = io.ReadAll(io.LimitReader(f, maxJSONFlag+1)); err != nil {
			return dsl.Value{}, err
		}
	}
	if len(data) > maxJSONFlag {
		return dsl.Value{}, cli.Failed("Invalid flag", "%s is larger than 1 MiB.", flag)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	var doc json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return dsl.Value{}, cli.Failed("Invalid flag", "%s is not JSON: at byte %d: %s.", flag, syntax.Offset, syntax)
		}
		return dsl.Value{}, cli.Failed("Invalid flag", "%s is not JSON: %s.", flag, err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		return dsl.Value{}, cli.Failed("Invalid flag", "%s is not JSON: %s.", flag, err)
	}
	return dsl.NewValue(out.Bytes(), nil, nil), nil
}
