package agents

import (
	"fmt"
	"log/slog"
)

// redactAttr returns a copy of a log attribute. The function `replace` removes secrets. It has
// changed all texts in the copy. This is a second protection, because agents should not log
// secrets.
func redactAttr(a slog.Attr, replace func(string) string) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, replace(v.String()))
	case slog.KindAny:
		// The value may be of any type. As a text, its secrets can be replaced.
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
