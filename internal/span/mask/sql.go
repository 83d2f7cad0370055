package mask

import "strings"

// statementWord is the word that a statement with the verb of this text must have. There is
// none where the text has no such verb: DELETE is a method of HTTP too.
func statementWord(text string) string {
	text = withoutComment(text)
	letters := run(text, 0, isLetter)
	if behind := text[letters:]; strings.HasPrefix(behind, " /") && !strings.HasPrefix(behind, " /*") {
		return "" // a request
	}
	for i := range statements {
		if s := &statements[i]; letters == len(s.verb) && strings.EqualFold(text[:letters], s.verb) {
			return s.word
		}
	}
	return ""
}

var statements = []struct{ verb, word string }{
	{"select", " from "},
	{"insert", " into "},
	{"update", " set "},
	{"delete", " from "},
	{"with", " as "},
	{"replace", " into "},
	{"merge", " into "},
}

// hasWord says whether a word stands in a text, in either case, between any white space.
// The word is given in lower case between spaces.
func hasWord(text, word string) bool {
	for at := 0; at+len(word) <= len(text); at++ {
		last := at + len(word) - 1
		isAlone := isSpace(text[at]) && isSpace(text[last])
		if isAlone && strings.EqualFold(text[at+1:last], word[1:len(word)-1]) {
			return true
		}
	}
	return false
}

// withoutComment is a statement without the comment that it begins with.
func withoutComment(text string) string {
	if strings.HasPrefix(text, "/*") {
		_, text, _ = strings.Cut(text, "*/")
	}
	return text[spaces(text, 0):]
}

// appendStatement appends a statement with a question mark for each of its literals and for the
// text of each comment. Lists of literals become one, or each length of an IN list would be a
// statement of its own. The word that makes it a statement must stand in no literal. It reports
// false where there are no literals, or no word, or where quotes stay open in a text with a
// backslash: not every database has it escape a quote, so nobody knows where its literals end.
func appendStatement(dst []byte, text, word string) (masked []byte, ok bool) {
	masked = dst
	l := lexer{text: text}
	found, isStatement := false, false
	for from, at := 0, 0; at < len(text); {
		to, isLiteral := l.next(at)
		if isLiteral {
			masked = append(append(masked, text[from:at]...), '?')
			isStatement = isStatement || hasWord(text[from:at], word)
			to += run(text, to, isDigit) // behind a question mark they are its own
			found, from = true, to
		}
		if at = to; at == len(text) {
			masked = append(masked, text[from:]...)
			isStatement = isStatement || hasWord(text[from:], word)
		}
	}
	if !found || !isStatement || l.isOpen && strings.IndexByte(text, '\\') >= 0 {
		return dst, false
	}
	return masked, true
}

// lexer cuts a statement into literals and what stands between them. A name in double quotes is
// a name, as the standard has it. What is not closed goes on to the end.
type lexer struct {
	text   string
	closes string // what ends the comment whose text begins here
	isOpen bool   // there are quotes that nothing closes
}

// next is where the token ends that begins here, and whether it is a literal, or a list of them.
func (l *lexer) next(at int) (to int, isLiteral bool) {
	if closes := l.closes; closes != "" {
		l.closes = ""
		if to = until(l.text, at, closes); to > at {
			return to, true
		}
	}
	if at > 0 && l.text[at-1] == '(' {
		if to = l.lists(at); to > at {
			return to, true
		}
	}
	if to = l.literal(at); to > at {
		return to, true
	}
	switch c := l.text[at]; {
	case isDigit(c): // no number, since a name goes on behind it
		return nameEnd(l.text, digitsEnd(l.text, at)), false
	case isNameByte(c), c == '$':
		return nameEnd(l.text, at+1), false
	case c == '"', c == '`':
		return l.quoteEnd(at), false
	}
	switch l.text[at:min(at+2, len(l.text))] {
	case "/*":
		l.closes = "*/"
	case "--":
		l.closes = "\n"
	case "*/":
	default:
		return at + 1, false
	}
	return at + 2, false
}

// literal is where one literal ends that begins here, or here where none does: a number, a
// string or a question mark.
func (l *lexer) literal(at int) int {
	if at == len(l.text) {
		return at
	}
	switch c := l.text[at]; {
	case c == '?':
		return at + 1 + run(l.text, at+1, isDigit)
	case c == '\'':
		return l.quoteEnd(at)
	case isDigit(c):
		return numberEnd(l.text, at)
	case c == '$':
		return dollarEnd(l.text, at)
	}
	return at
}

// lists is where the last of several lists in parentheses ends, of which the first begins
// here: (1, 2), (3, 4). It is here where this is no list of literals alone.
func (l *lexer) lists(from int) int {
	to := l.list(from)
	for last := to; last > from; {
		to = last
		at := spaces(l.text, last)
		for _, want := range []byte("),(") {
			if at == len(l.text) || l.text[at] != want {
				return to
			}
			at = spaces(l.text, at+1)
		}
		if last = l.list(at); last == at {
			return to
		}
	}
	return to
}

// list is where a list of literals ends that a parenthesis closes, or here if it is none.
func (l *lexer) list(from int) int {
	for at := spaces(l.text, from); ; {
		to := l.literal(at)
		if to == at {
			return from
		}
		next := spaces(l.text, to)
		switch {
		case next < len(l.text) && l.text[next] == ')':
			return to
		case next == len(l.text) || l.text[next] != ',':
			return from
		}
		at = spaces(l.text, next+1)
	}
}

// quoteEnd is where a text in quotes ends. A quote in it is written twice, or behind a
// backslash.
func (l *lexer) quoteEnd(at int) int {
	if isEscapeOfLike(l.text, at) {
		return at + len(escapeOfLike)
	}
	for quote, to := l.text[at], at+1; to < len(l.text); to++ {
		switch {
		case l.text[to] == '\\':
			to++
		case l.text[to] != quote:
		case to+1 < len(l.text) && l.text[to+1] == quote:
			to++
		default:
			return to + 1
		}
	}
	l.isOpen = true
	return len(l.text)
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

func spaces(text string, at int) int { return at + run(text, at, isSpace) }

// isNameByte says whether a byte may be in the middle of a name.
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 }

func nameEnd(text string, at int) int { return at + run(text, at, isNameByte) }

// digitsEnd is where digits and dots end.
func digitsEnd(text string, from int) int {
	return from + run(text, from, func(c byte) bool { return isDigit(c) || c == '.' })
}

// numberEnd is where a number ends: 17, 1.5e-3, 0x1f, 15ms. It is where it begins where a name
// goes on behind it, as of a table: 2024_orders.
func numberEnd(text string, from int) int {
	at := digitsEnd(text, from)
	if at == from+1 && at < len(text) && text[from] == '0' && strings.IndexByte("xXbBoO", text[at]) >= 0 {
		at++
		at += run(text, at, isHex)
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
	digits := at + 1
	if digits < len(text) && (text[digits] == '-' || text[digits] == '+') {
		digits++
	}
	if n := run(text, digits, isDigit); n > 0 {
		return digits + n
	}
	return at
}

// dollarEnd is where $$text$$ or $tag$text$tag$ ends. A parameter, $1, is no literal, nor is
// what stands within a name, as of Oracle's DR$I$K.
func dollarEnd(text string, at int) int {
	if at > 0 && (isNameByte(text[at-1]) || text[at-1] == '$' || text[at-1] == '?') {
		return at
	}
	tag := nameEnd(text, at+1)
	if tag == len(text) || text[tag] != '$' || isDigit(text[at+1]) {
		return at
	}
	quote := text[at : tag+1]
	return min(until(text, tag+1, quote)+len(quote), len(text))
}

// until is where an end begins, or the text's end.
func until(text string, at int, end string) int {
	if found := strings.Index(text[at:], end); found >= 0 {
		return at + found
	}
	return len(text)
}
