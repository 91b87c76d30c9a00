package agents

import (
	"fmt"
	"log/slog"
)

// redactAttr returns an attribute of a log record whose texts were replaced. It is a
// second net: agents should not log secrets.
func redactAttr(a slog.Attr, replace func(string) string) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, replace(v.String()))
	case slog.KindAny:
		// Whatever it is, it is shown as text that can be searched.
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
