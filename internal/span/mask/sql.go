package mask

import "strings"

// statementKeyword reports whether text is an SQL statement: it begins with a verb like SELECT and contains a
// keyword that belongs to the verb, like FROM, which statementKeyword returns. A verb before a path, as in
// DELETE /users, is an HTTP method.
func statementKeyword(text string) (keyword string, isStatement bool) {
	text = withoutComment(text)
	letters := runLength(text, 0, isLetter)
	verb, rest := text[:letters], text[letters:]
	isComment := strings.HasPrefix(rest, " /*")
	isPath := strings.HasPrefix(rest, " /") && !isComment
	if isPath {
		return "", false
	}
	for _, s := range statements {
		if strings.EqualFold(verb, s.verb) {
			return s.keyword, hasKeyword(rest, s.keyword)
		}
	}
	return "", false
}

var statements = []struct{ verb, keyword string }{
	{"select", "from"},
	{"insert", "into"},
	{"update", "set"},
	{"delete", "from"},
	{"with", "as"},
	{"replace", "into"},
	{"merge", "into"},
}

// hasKeyword reports whether text contains a keyword between white space, in upper or lower case.
func hasKeyword(text, keyword string) bool {
	for start := 1; start+len(keyword) < len(text); start++ {
		end := start + len(keyword)
		isBetweenSpaces := isSpace(text[start-1]) && isSpace(text[end])
		if isBetweenSpaces && strings.EqualFold(text[start:end], keyword) {
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
// list of literals. It appends nothing and returns false if there are no literals, if the end of a literal is
// ambiguous, or if text is not a statement because keyword, such as FROM, occurs only inside literals.
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
	hasBackslash := strings.IndexByte(text, '\\') >= 0
	isAmbiguous := l.hasOpenQuote && hasBackslash // a backslash before a quote escapes it only in some databases
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

// nextLiteral returns the start and the end of the next literal or list of literals in text[position:]. Digits
// directly after a literal, as in 'a'1, belong to it. If there is no literal, start and end are len(text).
func (l *lexer) nextLiteral(position int) (start, end int) {
	for position < len(l.text) {
		tokenEnd, isLiteral := l.next(position)
		if isLiteral {
			adjacentDigits := runLength(l.text, tokenEnd, isDigit) // 'a'1 must become ?, because ?1 is a parameter
			return position, tokenEnd + adjacentDigits
		}
		position = tokenEnd
	}
	return len(l.text), len(l.text)
}

// next returns the end of the token that starts at text[start]. isLiteral is true if a question mark should replace
// the token: a literal, a list of literals, or the text of a comment.
func (l *lexer) next(start int) (end int, isLiteral bool) {
	if l.commentEnd != "" {
		end = indexOrEnd(l.text, start, l.commentEnd)
		l.commentEnd = ""
		if end > start {
			return end, true
		}
	}
	if start > 0 && l.text[start-1] == '(' {
		if end = l.rowsEnd(start); end > start {
			return end, true
		}
	}
	if end = l.literalEnd(start); end > start {
		return end, true
	}
	c := l.text[start]
	switch {
	case isDigit(c): // not a number, because literalEnd has rejected it
		return nameEnd(l.text, decimalEnd(l.text, start)), false
	case isNameByte(c), c == '$':
		return nameEnd(l.text, start+1), false
	case c == '"', c == '`':
		return l.quoteEnd(start), false
	}
	switch l.text[start:min(start+2, len(l.text))] {
	case "/*":
		l.commentEnd = "*/"
		return start + 2, false
	case "--":
		l.commentEnd = "\n"
		return start + 2, false
	case "*/":
		return start + 2, false
	}
	return start + 1, false
}

// literalEnd returns the end of the number, string or parameter that starts at text[start]. If none starts
// there, it returns start.
func (l *lexer) literalEnd(start int) int {
	if start == len(l.text) {
		return start
	}
	c := l.text[start]
	switch {
	case c == '?': // a parameter, such as ? or ?1
		digits := runLength(l.text, start+1, isDigit)
		return start + 1 + digits
	case c == '\'':
		return l.quoteEnd(start)
	case isDigit(c):
		return numberEnd(l.text, start)
	case c == '$':
		return dollarQuoteEnd(l.text, start)
	}
	return start
}

// rowsEnd returns the end of the last literal in rows of literals, as in VALUES (1, 2), (3, 4). The first row starts
// at text[start], after its parenthesis. If it contains anything other than literals, rowsEnd returns start.
func (l *lexer) rowsEnd(start int) int {
	end := l.rowEnd(start)
	if end == start { // not a row of literals
		return start
	}
	for {
		nextStart, isFound := l.nextRowStart(end)
		if !isFound {
			return end
		}
		nextEnd := l.rowEnd(nextStart)
		if nextEnd == nextStart { // not a row of literals
			return end
		}
		end = nextEnd
	}
}

// nextRowStart returns the start of the next row, after its parenthesis, given the end of the last element of a row.
// Between the two are "),(" and white space. nextRowStart returns false if no row follows.
func (l *lexer) nextRowStart(end int) (start int, isFound bool) {
	position := skipSpaces(l.text, end)
	for _, expected := range []byte("),(") {
		if position == len(l.text) || l.text[position] != expected {
			return end, false
		}
		position = skipSpaces(l.text, position+1)
	}
	return position, true
}

// rowEnd returns the end of the last literal between text[start] and the next closing parenthesis. For
// "1, 'a')" it returns the position after 'a'. If anything other than literals precedes the parenthesis, or there
// is no parenthesis, rowEnd returns start.
func (l *lexer) rowEnd(start int) int {
	position := start
	for {
		literalStart := skipSpaces(l.text, position)
		literalEnd := l.literalEnd(literalStart)
		if literalEnd == literalStart { // not a literal
			return start
		}
		position = skipSpaces(l.text, literalEnd)
		if position == len(l.text) {
			return start
		}
		switch l.text[position] {
		case ')':
			return literalEnd
		case ',':
			position++
		default:
			return start
		}
	}
}

// quoteEnd returns the position after a quoted text, which starts with the quote at text[start]. A quote
// within the text must be doubled or follow a backslash. If there is no closing quote, quoteEnd sets
// hasOpenQuote and returns len(text).
func (l *lexer) quoteEnd(start int) int {
	if isEscapeClause(l.text, start) {
		return start + len(backslashLiteral) // the backslash in ESCAPE '\' does not escape the quote
	}
	quote := l.text[start]
	for i := start + 1; i < len(l.text); i++ {
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

// decimalEnd returns the end of a decimal number like 17 or 1.5 that starts at text[from].
func decimalEnd(text string, from int) int {
	return from + runLength(text, from, func(c byte) bool { return isDigit(c) || c == '.' })
}

// numberEnd returns the end of the number that starts at text[start], such as 17, 1.5e-3, 0x1f or 15ms.
// If the digits belong to a name, like the table name 2024_orders, it returns start.
func numberEnd(text string, start int) int {
	end := decimalEnd(text, start)
	isZero := text[start:end] == "0"
	hasBasePrefix := isZero && hasByteAt(text, end, "xXbBoO") // as in 0x1f
	if hasBasePrefix {
		end++
		end += runLength(text, end, isHex)
	} else {
		end = exponentEnd(text, end)
	}
	const maxUnitLength = 2 // of a unit like ms
	end += min(maxUnitLength, runLength(text, end, isLetter))
	isName := end < len(text) && isNameByte(text[end])
	if isName {
		return start
	}
	return end
}

// exponentEnd returns the end of the exponent of a number, like e-3, if one starts at text[start].
// Otherwise it returns start.
func exponentEnd(text string, start int) int {
	if !hasByteAt(text, start, "eE") {
		return start
	}
	digitsStart := start + 1
	if hasByteAt(text, digitsStart, "+-") {
		digitsStart++
	}
	digits := runLength(text, digitsStart, isDigit)
	if digits == 0 {
		return start
	}
	return digitsStart + digits
}

// hasByteAt reports whether text has one of the given bytes at an index. The index can be len(text).
func hasByteAt(text string, index int, bytes string) bool {
	return index < len(text) && strings.IndexByte(bytes, text[index]) >= 0
}

// continuesName reports whether a dollar sign after c is a part of a name or parameter.
func continuesName(c byte) bool { return isNameByte(c) || c == '$' || c == '?' }

// dollarQuoteEnd returns the end of a literal like $$text$$ or $tag$text$tag$ that starts at text[start]. It
// returns start if no such literal starts there. A parameter like $1 is not a literal, nor is a part of a name like
// Oracle's DR$I$K.
func dollarQuoteEnd(text string, start int) int {
	if start > 0 && continuesName(text[start-1]) {
		return start
	}
	tagStart := start + 1
	isParameter := tagStart < len(text) && isDigit(text[tagStart])
	if isParameter {
		return start
	}
	tagEnd := nameEnd(text, tagStart)
	if !hasByteAt(text, tagEnd, "$") {
		return start
	}
	textStart := tagEnd + 1
	quote := text[start:textStart] // such as $$ or $tag$
	textLength := strings.Index(text[textStart:], quote)
	isClosed := textLength >= 0
	if !isClosed {
		return len(text)
	}
	return textStart + textLength + len(quote)
}

// indexOrEnd returns the index in text of the first occurrence of substr in text[from:]. If there is none, it returns
// len(text).
func indexOrEnd(text string, from int, substr string) int {
	if found := strings.Index(text[from:], substr); found >= 0 {
		return from + found
	}
	return len(text)
}
