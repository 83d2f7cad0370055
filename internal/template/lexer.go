package template

import "strings"

// lexer cuts a statement into literals and what stands between them. A name in double
// quotes is a name, as the standard has it. What is not closed goes on to the end.
type lexer struct {
	text      string
	from, to  int // of the token
	isLiteral bool
	end       int    // of the last literal that was found, which may be the next token
	comment   int    // where the last comment's text begins
	closing   string // and what ends it
	escapes   bool   // there is a backslash
	isOpen    bool   // there are quotes that nothing closes
}

func newLexer(text string) lexer {
	return lexer{text: text, escapes: strings.IndexByte(text, '\\') >= 0}
}

func (l *lexer) token() string { return l.text[l.from:l.to] }

// next finds the next token: a literal or a list of them, or all that stands before it.
func (l *lexer) next() bool {
	l.from = l.to
	if l.from == len(l.text) {
		return false
	}
	if l.isLiteral = l.end > l.from || l.find(l.from); l.isLiteral {
		l.to = l.end
		return true
	}
	for isFound := false; l.to < len(l.text) && !isFound; isFound = l.find(l.to) {
		if l.to = l.skip(l.to); l.to != l.comment && l.text[l.to-1] != '(' {
			l.to = plainEnd(l.text, l.to)
		}
	}
	return true
}

// find says whether a literal begins here, and notes where it ends.
func (l *lexer) find(at int) bool {
	l.end = l.literal(at)
	return l.end > at
}

// literal is where the literal ends that begins here, or here where none does.
func (l *lexer) literal(at int) int {
	if l.closing != "" && at == l.comment {
		return until(l.text, at, l.closing)
	}
	if at > 0 && l.text[at-1] == '(' {
		if end := l.groups(at); end > at {
			return end
		}
	}
	return l.single(at)
}

// skip is where what is no literal ends.
func (l *lexer) skip(at int) int {
	c := l.text[at]
	if isNameByte(c) || c == '$' {
		return nameEnd(l.text, at+1)
	}
	if c == '"' || c == '`' {
		return l.quoteEnd(at)
	}
	switch l.text[at:min(at+2, len(l.text))] {
	case "/*":
		l.comment, l.closing = at+2, "*/"
		return at + 2
	case "--":
		l.comment, l.closing = at+2, "\n"
		return at + 2
	case "*/":
		return at + 2
	}
	return at + 1
}

// plainEnd is where names end, and what stands between them and can begin nothing else.
func plainEnd(text string, at int) int {
	for at < len(text) && !beginsMore[text[at]] {
		if at++; isNameByte(text[at-1]) {
			at = nameEnd(text, at)
		}
	}
	return at
}

// beginsMore says whether a byte may begin what is neither a name nor the byte alone, or may
// stand before it.
var beginsMore = func() (is [256]bool) {
	for c := range is {
		is[c] = isDigit(byte(c)) || strings.IndexByte("'?$\"`/-*(", byte(c)) >= 0
	}
	return is
}()

// single is where one literal ends: a number, a string or a question mark.
func (l *lexer) single(at int) int {
	text := l.text
	if at == len(text) {
		return at
	}
	switch c := text[at]; {
	case c == '?':
		for at++; at < len(text) && isDigit(text[at]); at++ {
		}
		return at
	case c == '\'':
		return l.quoteEnd(at)
	case isDigit(c):
		return numberEnd(text, at)
	case c == '$':
		return dollarEnd(text, at)
	}
	return at
}

// groups is where the last of several lists in parentheses ends, of which the first begins
// here: (1, 2), (3, 4). It is here where this is no list of literals alone.
func (l *lexer) groups(from int) int {
	text, end := l.text, l.list(from)
	for last := end; last > from; {
		end = last
		at := spaces(text, last)
		for _, want := range []byte("),(") {
			if at == len(text) || text[at] != want {
				return end
			}
			at = spaces(text, at+1)
		}
		if last = l.list(at); last == at {
			return end
		}
	}
	return end
}

// list is where a list of literals ends that a parenthesis closes, or here if it is none.
func (l *lexer) list(from int) int {
	text := l.text
	for at := spaces(text, from); ; {
		end := l.single(at)
		if end == at {
			return from
		}
		next := spaces(text, end)
		switch {
		case next < len(text) && text[next] == ')':
			return end
		case next == len(text) || text[next] != ',':
			return from
		}
		at = spaces(text, next+1)
	}
}

func spaces(text string, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

// isNameByte says whether a byte may be in the middle of a name.
func isNameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = isLetter(byte(c)) || isDigit(byte(c)) || c == '_' || c >= 0x80
	}
	return is
}()

func nameEnd(text string, at int) int {
	for at < len(text) && isNameByte(text[at]) {
		at++
	}
	return at
}

// quoteEnd is where a text in quotes ends. A quote in it is written twice, or behind a
// backslash.
func (l *lexer) quoteEnd(at int) int {
	text, quote, end := l.text, l.text[at], at
	if l.escapes && isEscapeOfLike(text, at) {
		return at + len(escapeOfLike)
	}
	for at++; at < len(text); {
		if end < at {
			next := strings.IndexByte(text[at:], quote)
			if next < 0 {
				break
			}
			end = at + next
		}
		escape := -1
		if l.escapes {
			escape = strings.IndexByte(text[at:end], '\\')
		}
		switch {
		case escape >= 0:
			at += escape + 2
		case end+1 < len(text) && text[end+1] == quote:
			at = end + 2
		default:
			return end + 1
		}
	}
	l.isOpen = true
	return len(text)
}

// escapeOfLike is what LIKE 'x' ESCAPE '\' ends with: there a backslash stands for itself.
const escapeOfLike = `'\'`

func isEscapeOfLike(text string, at int) bool {
	const word = "escape"
	if !strings.HasPrefix(text[at:], escapeOfLike) {
		return false
	}
	before := strings.TrimRight(text[:at], " \t\r\n")
	return len(before) >= len(word) && strings.EqualFold(before[len(before)-len(word):], word)
}

// numberEnd is where a number ends: 17, 1.5e-3, 0x1f, 15ms. It is where it begins where a name
// goes on behind it, as of a table: 2024_orders.
func numberEnd(text string, from int) int {
	at := from
	for at < len(text) && (isDigit(text[at]) || text[at] == '.') {
		at++
	}
	if at == len(text) || !isNameByte(text[at]) {
		return at
	}
	if at == from+1 && text[from] == '0' && strings.IndexByte("xXbBoO", text[at]) >= 0 {
		for at++; at < len(text) && isHex(text[at]); at++ {
		}
	}
	at = exponentEnd(text, at)
	for most := at + 2; at < most && at < len(text) && isLetter(text[at]); at++ { // of a unit
	}
	if at < len(text) && isNameByte(text[at]) {
		return from
	}
	return at
}

// exponentEnd is where the exponent of a number ends that may begin here.
func exponentEnd(text string, at int) int {
	if at == len(text) || text[at]|0x20 != 'e' {
		return at
	}
	end := at + 1
	if end < len(text) && (text[end] == '-' || text[end] == '+') {
		end++
	}
	if end == len(text) || !isDigit(text[end]) {
		return at
	}
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	return end
}

// dollarEnd is where $$text$$ or $tag$text$tag$ ends. A parameter, $1, is no literal, nor is
// what stands within a name, as of Oracle's DR$I$K.
func dollarEnd(text string, at int) int {
	tag := nameEnd(text, at+1)
	if tag == len(text) || text[tag] != '$' || isDigit(text[at+1]) || at > 0 && beforeNoQuote[text[at-1]] {
		return at
	}
	return until(text, tag+1, text[at:tag+1])
}

// beforeNoQuote says whether what stands behind a byte is a part of a name, or of the name of a
// statement that had one there.
var beforeNoQuote = func() (is [256]bool) {
	for c := range is {
		is[c] = isNameByte(byte(c)) || c == '$' || c == '?'
	}
	return is
}()

// until is where an end begins, or behind it where that is a dollar, or the text's end.
func until(text string, at int, end string) int {
	found := strings.Index(text[at:], end)
	if found < 0 {
		return len(text)
	}
	if end[0] == '$' {
		found += len(end)
	}
	return at + found
}
