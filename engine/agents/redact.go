package agents

import (
	"fmt"
	"log/slog"
)

// redactAttr returns a copy of a log attribute in which the function replace has changed all
// texts. It is a second protection: agents should not log secrets.
func redactAttr(a slog.Attr, replace func(string) string) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, replace(v.String()))
	case slog.KindAny:
		// A value of any other type becomes a text, so that its secrets can be replaced.
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
