package mask

import "strings"

// requiredKeyword returns the keyword that a statement with the first word of text must contain, such
// as " from " for SELECT. It returns "" if the first word is not an SQL verb, or if a path follows, as
// in DELETE /users.
func requiredKeyword(text string) string {
	text = withoutComment(text)
	letters := runLength(text, 0, isLetter)
	verb, rest := text[:letters], text[letters:]
	isComment := strings.HasPrefix(rest, " /*")
	isPath := strings.HasPrefix(rest, " /") && !isComment
	if isPath {
		return ""
	}
	for _, s := range statements {
		if strings.EqualFold(verb, s.verb) {
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

// hasKeyword reports whether text contains a keyword between white space, in upper or lower case. The
// argument keyword begins and ends with a space, like " from ".
func hasKeyword(text, keyword string) bool {
	word := strings.Trim(keyword, " ")
	for start := 0; start+len(keyword) <= len(text); start++ {
		wordStart := start + 1
		wordEnd := wordStart + len(word)
		isBetweenSpaces := isSpace(text[start]) && isSpace(text[wordEnd])
		if isBetweenSpaces && strings.EqualFold(text[wordStart:wordEnd], word) {
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

// appendMaskedStatement appends an SQL statement to dst, with a question mark instead of each literal and each
// list of literals. It appends nothing and returns false if there are no literals, if keyword occurs only
// inside literals, or if the end of a literal is ambiguous. It is ambiguous if a quote is not closed and text
// contains a backslash, which escapes a quote only in some databases.
func appendMaskedStatement(dst []byte, text, keyword string) (masked []byte, isMasked bool) {
	masked = dst
	l := lexer{text: text}
	foundKeyword := false
	copied := 0 // length of the part of text that masked already represents
	for {
		start, end := l.nextLiteral(copied)
		beforeLiteral := text[copied:start]
		masked = append(masked, beforeLiteral...)
		if hasKeyword(beforeLiteral, keyword) {
			foundKeyword = true
		}
		isLast := start == len(text)
		if isLast {
			break
		}
		masked = append(masked, '?')
		copied = end
	}
	hasLiterals := copied > 0
	isAmbiguous := l.hasOpenQuote && strings.IndexByte(text, '\\') >= 0
	if !hasLiterals || !foundKeyword || isAmbiguous {
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

// nextLiteral returns the start and the end of the next literal or list of literals in text[from:]. Digits
// directly after a literal, as in 'a'1, belong to it. If there is no literal, start and end are len(text).
func (l *lexer) nextLiteral(from int) (start, end int) {
	for start = from; start < len(l.text); start = end {
		var isLiteral bool
		end, isLiteral = l.next(start)
		if isLiteral {
			adjacentDigits := runLength(l.text, end, isDigit) // if 'a'1 became ?1, it would look like a parameter
			return start, end + adjacentDigits
		}
	}
	return len(l.text), len(l.text)
}

// next returns the end of the token that starts at text[at]. isLiteral is true if a question mark should replace the
// token: a literal, a list of literals, or the text of a comment.
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
		return at + 2, false
	case "--":
		l.commentEnd = "\n"
		return at + 2, false
	case "*/":
		return at + 2, false
	}
	return at + 1, false
}

// literalEnd returns the end of the number, string or parameter that starts at text[at]. If none starts
// there, it returns at.
func (l *lexer) literalEnd(at int) int {
	if at == len(l.text) {
		return at
	}
	switch c := l.text[at]; {
	case c == '?': // a parameter, such as ? or ?1
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

// listsEnd returns the position after the last literal of a list, such as 1, 2), that starts at text[from]. If
// more lists follow, as in 1, 2), (3, 4), it returns that of the last list. It returns from if the first list
// contains anything else than literals.
func (l *lexer) listsEnd(from int) int {
	end := l.listEnd(from)
	if end == from {
		return from
	}
	for {
		start, isFound := l.nextListStart(end)
		if !isFound {
			return end
		}
		nextEnd := l.listEnd(start)
		if nextEnd == start {
			return end
		}
		end = nextEnd
	}
}

// nextListStart skips a closing parenthesis, a comma and an opening parenthesis, and the white space
// around them. It returns the position after them. It returns false if text[end:] does not begin with
// these.
func (l *lexer) nextListStart(end int) (start int, isFound bool) {
	at := skipSpaces(l.text, end)
	for _, c := range []byte("),(") {
		if at == len(l.text) || l.text[at] != c {
			return end, false
		}
		at = skipSpaces(l.text, at+1)
	}
	return at, true
}

// listEnd returns the end of a list of literals, like 1, 'a', that starts at text[from]. A closing
// parenthesis must follow the list. If there is no such list, listEnd returns from.
func (l *lexer) listEnd(from int) int {
	at := from
	for {
		start := skipSpaces(l.text, at)
		end := l.literalEnd(start)
		if end == start {
			return from
		}
		at = skipSpaces(l.text, end)
		if at == len(l.text) {
			return from
		}
		switch l.text[at] {
		case ')':
			return end
		case ',':
			at++
		default:
			return from
		}
	}
}

// quoteEnd returns the position after a quoted text, which starts with the quote at text[at]. A quote
// within the text must be doubled or follow a backslash. If there is no closing quote, quoteEnd sets
// hasOpenQuote and returns len(text).
func (l *lexer) quoteEnd(at int) int {
	if isEscapeClause(l.text, at) {
		return at + len(backslashLiteral) // the backslash in ESCAPE '\' does not escape the quote
	}
	quote := l.text[at]
	for i := at + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++ // skip the escaped byte
		case quote:
			isDoubled := i+1 < len(l.text) && l.text[i+1] == quote
			if !isDoubled {
				return i + 1
			}
			i++ // skip the second quote
		}
	}
	l.hasOpenQuote = true
	return len(l.text)
}

// backslashLiteral is the literal of the clause LIKE 'x' ESCAPE '\', in which the backslash escapes nothing.
const backslashLiteral = `'\'`

// isEscapeClause reports whether text[at:] starts with the literal '\' and follows the keyword ESCAPE.
func isEscapeClause(text string, at int) bool {
	const keyword = "escape"
	if !strings.HasPrefix(text[at:], backslashLiteral) {
		return false
	}
	preceding := strings.TrimRight(text[:at], " \t\r\n")
	keywordStart := len(preceding) - len(keyword)
	return keywordStart >= 0 && strings.EqualFold(preceding[keywordStart:], keyword)
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

// numberEnd returns the end of the number that starts at text[from], such as 17, 1.5e-3, 0x1f or 15ms.
// If the digits belong to a name, like the table name 2024_orders, it returns from.
func numberEnd(text string, from int) int {
	end := digitsEnd(text, from)
	isZero := text[from:end] == "0"
	hasBasePrefix := isZero && end < len(text) && strings.IndexByte("xXbBoO", text[end]) >= 0
	if hasBasePrefix {
		end++
		end += runLength(text, end, isHex)
	}
	end = exponentEnd(text, end)
	const maxUnitLength = 2 // of a unit like ms
	end += min(maxUnitLength, runLength(text, end, isLetter))
	isName := end < len(text) && isNameByte(text[end])
	if isName {
		return from
	}
	return end
}

// exponentEnd returns the end of the exponent of a number, like e-3, if one starts at text[at].
// Otherwise it returns at.
func exponentEnd(text string, at int) int {
	hasExponent := at < len(text) && (text[at] == 'e' || text[at] == 'E')
	if !hasExponent {
		return at
	}
	digitsStart := at + 1
	hasSign := digitsStart < len(text) && (text[digitsStart] == '-' || text[digitsStart] == '+')
	if hasSign {
		digitsStart++
	}
	digits := runLength(text, digitsStart, isDigit)
	if digits == 0 {
		return at
	}
	return digitsStart + digits
}

// continuesName reports whether a dollar sign after c is a part of a name or parameter.
func continuesName(c byte) bool { return isNameByte(c) || c == '$' || c == '?' }

// dollarQuoteEnd returns the end of a literal like $$text$$ or $tag$text$tag$ that starts at text[at]. If there is
// none, it returns at. A parameter like $1 is not a literal, nor is a part of a name like Oracle's DR$I$K.
func dollarQuoteEnd(text string, at int) int {
	if at > 0 && continuesName(text[at-1]) {
		return at
	}
	tagEnd := nameEnd(text, at+1)
	hasSecondDollar := tagEnd < len(text) && text[tagEnd] == '$'
	if !hasSecondDollar || isDigit(text[at+1]) {
		return at
	}
	quote := text[at : tagEnd+1]
	textStart := tagEnd + 1
	closingQuote := strings.Index(text[textStart:], quote)
	if closingQuote < 0 {
		return len(text) // an unclosed literal extends to the end
	}
	return textStart + closingQuote + len(quote)
}

// indexFrom returns the index of the first occurrence of substr in text[from:], relative to text, or len(text).
func indexFrom(text string, from int, substr string) int {
	if found := strings.Index(text[from:], substr); found >= 0 {
		return from + found
	}
	return len(text)
}
