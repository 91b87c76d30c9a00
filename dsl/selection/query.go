package selection

import (
	"fmt"
	"slices"
	"strings"
)

// A Query is one SELECT statement of PostgreSQL with named parameters.
type Query struct {
	Text   string   // the statement, with $1, $2 and so on in place of the names
	Params []string // names of the parameters; Params[0] is the name of $1
}

// Parse reads a query. It finds the named parameters outside of quotes and comments. It returns an
// error if the text cannot be one SELECT statement inside of parentheses. Only a database can check
// the rest of the statement.
func Parse(text string) (*Query, error) {
	p := parser{text: text, q: &Query{}}
	if err := p.run(); err != nil {
		return nil, err
	}
	p.q.Text = p.out.String()
	return p.q, nil
}

// A parser reads the text of a query from left to right.
type parser struct {
	text  string
	pos   int // index of the next byte in the field `text`
	depth int // number of open parentheses
	begun bool
	out   strings.Builder
	q     *Query
}

func (p *parser) run() error {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		var err error
		switch c := rest[0]; {
		case c == 0:
			return fmt.Errorf("the query has a NUL character")
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.copy(end)
		case strings.HasPrefix(rest, "/*"):
			err = p.comment()
		case c == '\'':
			err = p.quoted('\'', p.escapes())
		case c == '"':
			err = p.quoted('"', false)
		case c == '$':
			err = p.dollar()
		case c == ';':
			return fmt.Errorf("the query has a semicolon; write one statement, and no semicolon at its end")
		default:
			err = p.plain(c)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !p.begun:
		return fmt.Errorf("the query is empty")
	case p.depth > 0:
		return fmt.Errorf("the query has a parenthesis that is not closed")
	}
	return nil
}

// copy copies the next n bytes to the output.
func (p *parser) copy(n int) {
	p.out.WriteString(p.text[p.pos : p.pos+n])
	p.pos += n
}

// plain reads a word, or one character that is not the beginning of a quote, comment or parameter.
func (p *parser) plain(c byte) error {
	n := 1
	for alphabetic(c) && p.pos+n < len(p.text) && (alphabetic(p.text[p.pos+n]) || digit(p.text[p.pos+n]) || p.text[p.pos+n] == '$') {
		n++
	}
	word := strings.ToUpper(p.text[p.pos : p.pos+n])
	switch {
	case c == '(':
		p.depth++
	case c == ')':
		p.depth--
		if p.depth < 0 {
			return fmt.Errorf("the query closes a parenthesis that it has not opened")
		}
	case !p.begun && alphabetic(c) && word != "SELECT" && word != "WITH":
		return fmt.Errorf("the query begins with %s; it must be a SELECT", word)
	case !p.begun && !alphabetic(c) && !strings.ContainsRune(" \t\r\n", rune(c)):
		return fmt.Errorf("the query begins with %q; it must be a SELECT", c)
	}
	p.begun = p.begun || alphabetic(c)
	p.copy(n)
	return nil
}

// escapes reports whether a backslash escapes the next character in the quoted text that begins at
// p.pos. A backslash does so only if the letter E is directly before the quote, and is not the end
// of a longer word.
func (p *parser) escapes() bool {
	if p.pos == 0 || p.text[p.pos-1] != 'e' && p.text[p.pos-1] != 'E' {
		return false
	}
	return p.pos == 1 || !alphabetic(p.text[p.pos-2]) && !digit(p.text[p.pos-2])
}

// quoted copies a text in quotes. Two quotes one after the other are a quote inside of the text.
func (p *parser) quoted(quote byte, escapes bool) error {
	rest := p.text[p.pos:]
	for i := 1; i < len(rest); i++ {
		switch {
		case escapes && rest[i] == '\\':
			i++
		case rest[i] == quote && i+1 < len(rest) && rest[i+1] == quote:
			i++
		case rest[i] == quote:
			p.copy(i + 1)
			return nil
		}
	}
	return fmt.Errorf("the query has a quote %c that is not closed", quote)
}

// comment copies a comment. Comments of PostgreSQL can contain comments.
func (p *parser) comment() error {
	rest, depth := p.text[p.pos:], 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				p.copy(i + 1)
				return nil
			}
		}
	}
	return fmt.Errorf("the query has a comment that is not closed")
}

// dollar reads a parameter, or a text in dollar quotes such as $$text$$ or $tag$text$tag$.
func (p *parser) dollar() error {
	rest := p.text[p.pos:]
	n := 1
	for n < len(rest) && (alphabetic(rest[n]) || n > 1 && digit(rest[n])) {
		n++
	}
	if n < len(rest) && rest[n] == '$' {
		tag := rest[:n+1]
		end := strings.Index(rest[n+1:], tag)
		if end < 0 {
			return fmt.Errorf("the query has a quote %s that is not closed", tag)
		}
		p.copy(2*len(tag) + end)
		return nil
	}
	name := rest[1:n]
	if name == "" {
		return fmt.Errorf("the query has a $ without a name; write parameters with their names, such as $status")
	}
	i := slices.Index(p.q.Params, name)
	if i < 0 {
		i = len(p.q.Params)
		p.q.Params = append(p.q.Params, name)
	}
	fmt.Fprintf(&p.out, "$%d", i+1)
	p.pos += n
	return nil
}

// alphabetic reports whether c can begin a word of SQL. All bytes above 127 are parts of letters.
func alphabetic(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
