package template

import (
	"hash/maphash"
	"strings"
)

// Of a statement, the literals are one fill together: with all of them replaced it is still
// one statement. Lists of literals become one, or each length of an IN list would be a
// statement of its own.

// statementWord is the word that a statement with the verb of this text must have. There is
// none where the text has no such verb: DELETE is a method of HTTP too.
func statementWord(text string) string {
	text = withoutComment(text)
	letters := 0
	for letters < len(text) && isLetter(text[letters]) {
		letters++
	}
	if isRequest(text[letters:]) {
		return ""
	}
	for i := range statements {
		if s := &statements[i]; letters == len(s.verb) && strings.EqualFold(text[:letters], s.verb) {
			return s.word
		}
	}
	return ""
}

// isRequest says whether what follows a word makes it a method of HTTP. A comment does not.
func isRequest(text string) bool {
	return strings.HasPrefix(text, " /") && !strings.HasPrefix(text, " /*")
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
		if text[at+1]|0x20 == word[1] && isSpace(text[at]) && isSpace(text[at+len(word)-1]) && strings.EqualFold(text[at+1:at+len(word)-1], word[1:len(word)-1]) {
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

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r') }

// parseSQL writes the statement with a question mark for each of its literals, which is its
// skeleton. The word that makes it a statement must stand in none of them. It reports false
// where there are no literals, or no word, or where quotes stay open in a text with a
// backslash: not every database has it escape a quote, so nobody knows where its literals end.
func (v *value) parseSQL(word string) bool {
	v.statement = v.statement[:0]
	found, isStatement := false, false
	l := newLexer(v.text) // here, because what a loop declares is copied each time
	for l.next() {
		if l.isLiteral {
			v.statement, found = append(v.statement, '?'), true
		} else {
			v.statement, isStatement = append(v.statement, l.token()...), isStatement || hasWord(l.token(), word)
		}
	}
	if !found || !isStatement {
		return false
	}
	if l.isOpen && l.escapes {
		return false
	}
	v.skeleton, v.count, v.isSQL = mix(maphash.Bytes(seed, v.statement), uint64(literals)), 1, true
	// Of two texts with one skeleton, it is the literals that differ.
	v.fills[0] = fill{from: 0, to: len(v.text), kind: literals, worth: strong}
	return true
}
