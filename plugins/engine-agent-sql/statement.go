package main

import (
	"encoding/json"
	"regexp"
	"strings"
)

// statement holds the text and the arguments of one SQL statement.
type statement struct {
	SQL  string
	Args []any // arguments in the form that the driver accepts
}

// one returns the statement with the given SQL text and arguments. It returns an error if the text
// is not allowed, or if the parameter `args` is not a list.
func one(text string, args any) (statement, error) {
	if err := checkSQL(text); err != nil {
		return statement{}, err
	}
	list, ok := args.([]any)
	if args != nil && !ok {
		return statement{}, invalid("args: must be a list")
	}
	values, err := arguments(list)
	return statement{SQL: text, Args: values}, err
}

// arguments converts JSON values to arguments for the driver. It converts numbers to text, and
// the database converts this text to the type of the parameter. It converts lists and objects
// to a text with JSON.
func arguments(list []any) ([]any, error) {
	values := make([]any, 0, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case nil, bool, string:
			values = append(values, v)
		case json.Number:
			values = append(values, v.String())
		default:
			data, err := json.Marshal(v)
			if err != nil {
				return nil, invalid("args[%d]: %v", i, err)
			}
			values = append(values, string(data))
		}
	}
	return values, nil
}

var (
	writes  = regexp.MustCompile(`(?i)\b(insert|update|delete|merge)\b`)
	returns = regexp.MustCompile(`(?i)\breturning\b`)
)

// returnsRows guesses from the text whether a statement returns rows. If the result is false,
// the agent reads only the number of changed rows.
func returnsRows(text string) bool {
	switch firstWord(text) {
	case "select", "values", "table", "show", "explain", "fetch", "call":
		return true
	case "with":
		return returns.MatchString(text) || !writes.MatchString(text)
	}
	return returns.MatchString(text)
}

// checkSQL returns an error for a statement that would begin or end a transaction or a savepoint,
// such as COMMIT. It also returns an error for PREPARE, for COPY, for an empty text, and for a text
// with a zero byte.
func checkSQL(text string) error {
	switch word := firstWord(text); word {
	case "":
		return invalid("sql: is empty")
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare":
		return invalid("sql: %s is not allowed: the statements of a call are one transaction", strings.ToUpper(word))
	case "copy":
		return invalid("sql: COPY is not supported")
	}
	if strings.ContainsRune(text, 0) {
		return invalid("sql: contains a zero byte")
	}
	return nil
}

// firstWord returns the first word of a statement in lower case, and ignores comments before the
// word. It also ignores semicolons before the word. It returns "select" if the text begins with an
// opening bracket, and "" if the text is empty. If the text begins with another character that is
// no letter and no "_", firstWord returns the first byte of the text.
func firstWord(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\v;")
		switch {
		case strings.HasPrefix(text, "--"):
			_, text, _ = strings.Cut(text, "\n")
			continue
		case strings.HasPrefix(text, "/*"):
			text = afterComment(text)
			continue
		case strings.HasPrefix(text, "("):
			return "select"
		}
		end := strings.IndexFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
		})
		if end < 0 {
			end = len(text)
		}
		if end == 0 && text != "" {
			end = 1
		}
		return strings.ToLower(text[:end])
	}
}

// afterComment returns the rest of a text that begins with a comment. Comments may be nested. If
// the comment has no end, afterComment returns "".
func afterComment(text string) string {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return text[i+1:]
			}
		}
	}
	return ""
}
