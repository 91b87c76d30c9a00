package selection

import (
	"slices"
	"strings"
	"testing"
)

// Names become numbers, but only outside of quotes and comments.
func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		text   string
		params []string
	}{
		"SELECT id FROM shop.orders":                      {"SELECT id FROM shop.orders", nil},
		"select $a, $b, $a":                               {"select $1, $2, $1", []string{"a", "b"}},
		"SELECT '$a' || \"$b\" || $c":                     {"SELECT '$a' || \"$b\" || $1", []string{"c"}},
		"SELECT 'it''s $a' -- $b\n, $c":                   {"SELECT 'it''s $a' -- $b\n, $1", []string{"c"}},
		`SELECT E'\'$a' || $b, 'a\' || $c`:                {`SELECT E'\'$a' || $1, 'a\' || $2`, []string{"b", "c"}},
		"SELECT /* $a /* $b */ ' */ $c":                   {"SELECT /* $a /* $b */ ' */ $1", []string{"c"}},
		"SELECT $$ $a ; $$ || $tag$ $b $$ $tag$ || $c":    {"SELECT $$ $a ; $$ || $tag$ $b $$ $tag$ || $1", []string{"c"}},
		"WITH x AS (SELECT 1) SELECT * FROM x":            {"WITH x AS (SELECT 1) SELECT * FROM x", nil},
		"\n SELECT a$b, $from::timestamptz, état FROM t ": {"\n SELECT a$b, $1::timestamptz, état FROM t ", []string{"from"}},
		"(SELECT 1) UNION (SELECT $n)":                    {"(SELECT 1) UNION (SELECT $1)", []string{"n"}},
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if q.Text != want.text || !slices.Equal(q.Params, want.params) {
			t.Errorf("%s: %q %v, want %q %v", text, q.Text, q.Params, want.text, want.params)
		}
	}
}

// What cannot be one SELECT in parentheses is refused.
func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                                 "is empty",
		" -- SELECT 1":                     "is empty",
		"DELETE FROM shop.orders":          "begins with DELETE",
		"SELECT 1; DELETE FROM t":          "semicolon",
		"SELECT 1;":                        "semicolon",
		"SELECT 1) AS r, (SELECT 2":        "has not opened",
		"SELECT (1":                        "not closed",
		"SELECT 'a":                        "quote ' that is not closed",
		"SELECT \"a":                       "quote \" that is not closed",
		"SELECT $x$ a":                     "quote $x$ that is not closed",
		"SELECT /* a /* b */":              "comment that is not closed",
		"SELECT $1":                        "$ without a name",
		"SELECT a FROM t WHERE b = \x00 1": "NUL",
		"1":                                "begins with '1'",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}
