package agents

import (
	"fmt"
	"log/slog"
)

// redactAttr returns a copy of a log attribute. In the copy, the function `replace` has removed the
// secrets from all texts. This is a second protection, because agents should not log secrets.
func redactAttr(a slog.Attr, replace func(string) string) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
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
