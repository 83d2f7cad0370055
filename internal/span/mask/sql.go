package mask

import "strings"

// requiredKeyword returns the keyword that text must contain if it is an SQL statement, or "" if its first word is
// not an SQL verb. It returns "" for HTTP requests as well, because DELETE is also an HTTP method.
func requiredKeyword(text string) string {
	text = withoutComment(text)
	letters := runLength(text, 0, isLetter)
	verb, rest := text[:letters], text[letters:]
	if isPath := strings.HasPrefix(rest, " /") && !strings.HasPrefix(rest, " /*"); isPath {
		return ""
	}
	for i := range statements {
		if s := &statements[i]; strings.EqualFold(verb, s.verb) {
			return s.keyword
		}
	}
	return ""
}

var statements = []struct{ verb, keyword string }{
	{"select", " from "},
	{"insert", " into "},
	{"update", " set "},
	{"delete", " from "},
	{"with", " as "},
	{"replace", " into "},
	{"merge", " into "},
}

// hasKeyword reports whether text contains a keyword, in any case, between white space. The keyword is given in lower
// case, with a space before and after it.
func hasKeyword(text, keyword string) bool {
	word := keyword[1 : len(keyword)-1]
	for from := 0; from+len(keyword) <= len(text); from++ {
		last := from + len(keyword) - 1
		isBetweenSpaces := isSpace(text[from]) && isSpace(text[last])
		if isBetweenSpaces && strings.EqualFold(text[from+1:last], word) {
			return true
		}
	}
	return false
}

// withoutComment removes a comment and white space at the start of a statement.
func withoutComment(text string) string {
	if strings.HasPrefix(text, "/*") {
		_, text, _ = strings.Cut(text, "*/")
	}
	return text[skipSpaces(text, 0):]
}

// appendStatement appends a statement in which a question mark replaces each literal and the text of each comment.
// One question mark replaces a list of literals, because otherwise IN lists of different lengths would make different
// statements. It appends nothing and returns false if there are no literals, if the keyword occurs only in literals,
// or if quotes are unbalanced in a text with a backslash: some databases treat \' as an escaped quote and others do
// not, so the end of the literal is unknown.
func appendStatement(dst []byte, text, keyword string) (masked []byte, ok bool) {
	masked = dst
	l := lexer{text: text}
	hasLiteral, isStatement := false, false
	copied := 0 // length of the part of text that masked already represents
	for at := 0; at < len(text); {
		end, isLiteral := l.next(at)
		if isLiteral {
			masked = append(append(masked, text[copied:at]...), '?')
			isStatement = isStatement || hasKeyword(text[copied:at], keyword)
			end += runLength(text, end, isDigit) // after a question mark, digits would look like its number
			hasLiteral, copied = true, end
		}
		at = end
	}
	masked = append(masked, text[copied:]...)
	isStatement = isStatement || hasKeyword(text[copied:], keyword)
	isAmbiguous := l.hasOpenQuote && strings.IndexByte(text, '\\') >= 0
	if !hasLiteral || !isStatement || isAmbiguous {
		return dst, false
	}
	return masked, true
}

// lexer splits an SQL statement into tokens. Text in double quotes is a name, as in standard SQL. A quote or comment
// that is not closed ends at the end of the text.
type lexer struct {
	text         string
	commentEnd   string // terminator of the comment whose start is the previous token; "" otherwise
	hasOpenQuote bool   // a quote is not closed
}

// next returns the end of the token that starts at text[at]. isLiteral reports whether the token is a literal, a list
// of literals, or the text of a comment.
func (l *lexer) next(at int) (end int, isLiteral bool) {
	if l.commentEnd != "" {
		end = indexFrom(l.text, at, l.commentEnd)
		l.commentEnd = ""
		if end > at {
			return end, true
		}
	}
	if at > 0 && l.text[at-1] == '(' {
		if end = l.listsEnd(at); end > at {
			return end, true
		}
	}
	if end = l.literalEnd(at); end > at {
		return end, true
	}
	switch c := l.text[at]; {
	case isDigit(c): // not a number, because literalEnd has rejected it
		return nameEnd(l.text, digitsEnd(l.text, at)), false
	case isNameByte(c), c == '$':
		return nameEnd(l.text, at+1), false
	case c == '"', c == '`':
		return l.quoteEnd(at), false
	}
	switch l.text[at:min(at+2, len(l.text))] {
	case "/*":
		l.commentEnd = "*/"
	case "--":
		l.commentEnd = "\n"
	case "*/":
	default:
		return at + 1, false
	}
	return at + 2, false
}

// literalEnd returns the end of the literal that starts at text[at]: a number, a string or a question mark. If there
// is none, it returns at.
func (l *lexer) literalEnd(at int) int {
	if at == len(l.text) {
		return at
	}
	switch c := l.text[at]; {
	case c == '?':
		return at + 1 + runLength(l.text, at+1, isDigit)
	case c == '\'':
		return l.quoteEnd(at)
	case isDigit(c):
		return numberEnd(l.text, at)
	case c == '$':
		return dollarQuoteEnd(l.text, at)
	}
	return at
}

// listsEnd returns the end of the last of several consecutive lists of literals in parentheses, as in
// (1, 2), (3, 4). from is after the first opening parenthesis, and the end is before the last closing one. If the
// first list does not consist of literals only, listsEnd returns from.
func (l *lexer) listsEnd(from int) int {
	end := l.listEnd(from)
	for last := end; last > from; {
		end = last
		at := skipSpaces(l.text, last)
		for _, c := range []byte("),(") {
			if at == len(l.text) || l.text[at] != c {
				return end
			}
			at = skipSpaces(l.text, at+1)
		}
		if last = l.listEnd(at); last == at {
			return end
		}
	}
	return end
}

// listEnd returns the end of a list of literals that is followed by a closing parenthesis. If there is none, it
// returns from.
func (l *lexer) listEnd(from int) int {
	for at := skipSpaces(l.text, from); ; {
		end := l.literalEnd(at)
		if end == at {
			return from
		}
		next := skipSpaces(l.text, end)
		switch {
		case next < len(l.text) && l.text[next] == ')':
			return end
		case next == len(l.text) || l.text[next] != ',':
			return from
		}
		at = skipSpaces(l.text, next+1)
	}
}

// quoteEnd returns the end of the quoted text that starts at text[at]. A quote within it is doubled, or escaped by a
// backslash.
func (l *lexer) quoteEnd(at int) int {
	if isEscapeClause(l.text, at) {
		return at + len(backslashLiteral)
	}
	quote := l.text[at]
	for i := at + 1; i < len(l.text); i++ {
		switch {
		case l.text[i] == '\\':
			i++
		case l.text[i] != quote:
		case i+1 < len(l.text) && l.text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	l.hasOpenQuote = true
	return len(l.text)
}

// backslashLiteral is the literal of the clause LIKE 'x' ESCAPE '\', in which the backslash escapes nothing.
const backslashLiteral = `'\'`

// isEscapeClause reports whether text[at:] starts with the literal of an ESCAPE clause that consists of a backslash.
func isEscapeClause(text string, at int) bool {
	const keyword = "escape"
	if !strings.HasPrefix(text[at:], backslashLiteral) {
		return false
	}
	before := strings.TrimRight(text[:at], " \t\r\n")
	return len(before) >= len(keyword) && strings.EqualFold(before[len(before)-len(keyword):], keyword)
}

// skipSpaces returns the index of the first byte that is not white space, starting at text[at].
func skipSpaces(text string, at int) int { return at + runLength(text, at, isSpace) }

// isNameByte reports whether a name can contain the byte after its first one.
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 }

// nameEnd returns the end of a name that continues at text[at].
func nameEnd(text string, at int) int { return at + runLength(text, at, isNameByte) }

// digitsEnd returns the end of the digits and dots that start at text[from].
func digitsEnd(text string, from int) int {
	return from + runLength(text, from, func(c byte) bool { return isDigit(c) || c == '.' })
}

// numberEnd returns the end of the number that starts at text[from]: 17, 1.5e-3, 0x1f, 15ms. If the digits are the
// start of a name, like the table name 2024_orders, it returns from.
func numberEnd(text string, from int) int {
	end := digitsEnd(text, from)
	hasBasePrefix := end == from+1 && end < len(text) && text[from] == '0' && strings.IndexByte("xXbBoO", text[end]) >= 0
	if hasBasePrefix {
		end++
		end += runLength(text, end, isHex)
	}
	end = exponentEnd(text, end)
	end += min(2, runLength(text, end, isLetter)) // a unit of up to two letters
	if end < len(text) && isNameByte(text[end]) {
		return from
	}
	return end
}

// exponentEnd returns the end of the exponent of a number that starts at text[at]. If there is none, it returns at.
func exponentEnd(text string, at int) int {
	if at == len(text) || text[at]|0x20 != 'e' {
		return at
	}
	digits := at + 1
	if digits < len(text) && (text[digits] == '-' || text[digits] == '+') {
		digits++
	}
	if n := runLength(text, digits, isDigit); n > 0 {
		return digits + n
	}
	return at
}

// dollarQuoteEnd returns the end of $$text$$ or $tag$text$tag$ at text[at]. If there is none, it returns at. A
// parameter like $1 is not a literal, and a dollar sign within a name, like Oracle's DR$I$K, is not a quote.
func dollarQuoteEnd(text string, at int) int {
	if at > 0 && (isNameByte(text[at-1]) || text[at-1] == '$' || text[at-1] == '?') {
		return at
	}
	tagEnd := nameEnd(text, at+1)
	if tagEnd == len(text) || text[tagEnd] != '$' || isDigit(text[at+1]) {
		return at
	}
	quote := text[at : tagEnd+1]
	return min(indexFrom(text, tagEnd+1, quote)+len(quote), len(text))
}

// indexFrom returns the index of the first occurrence of substr in text[from:], relative to text, or len(text).
func indexFrom(text string, from int, substr string) int {
	if found := strings.Index(text[from:], substr); found >= 0 {
		return from + found
	}
	return len(text)
}
