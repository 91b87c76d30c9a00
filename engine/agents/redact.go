package agents

import (
	"fmt"
	"log/slog"
	"strconv"
)

// redactAttr returns a copy of a log attribute. In the copy, the function `replace` has removed the
// secrets from all texts: from the key and from the value. A number that contains a secret becomes a
// text, because a sensitive value may be a number. This is a second protection, because agents
// should not log secrets.
func redactAttr(a slog.Attr, replace func(string) string) slog.Attr {
	a.Key = replace(a.Key)
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		text := v.String()
		if v.Kind() == slog.KindFloat64 {
			text = strconv.FormatFloat(v.Float64(), 'f', -1, 64) // without an exponent, as in the input
		}
		if shown := replace(text); shown != text {
			return slog.String(a.Key, shown)
		}
	case slog.KindString:
		return slog.String(a.Key, replace(v.String()))
	case slog.KindAny:
		// The value may be of any type. Make it a text, because `replace` accepts only texts.
		return slog.String(a.Key, replace(fmt.Sprint(v.Any())))
	case slog.KindGroup:
		var in []any
		for _, g := range v.Group() {
			in = append(in, redactAttr(g, replace))
		}
		return slog.Group(a.Key, in...)
	}
	return a
}
