package template

import (
	"hash/maphash"
	"strings"
)

// Of a statement, the literals are one fill together: with all of them replaced it is still
// one statement. Lists of literals become one, or each length of an IN list would be a
// statement of its own.

// statementWord is the word that a statement with the verb of this text must have. There is
// none where the text is no SQL: DELETE is a method of HTTP too.
func statementWord(text string) string {
	text = withoutComment(text)
	letters := 0
	for letters < len(text) && isLetter(text[letters]) {
		letters++
	}
	for _, s := range statements {
		if strings.EqualFold(text[:letters], s.verb) && hasWord(text, s.word) {
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
		if isSpace(text[at]) && isSpace(text[at+len(word)-1]) && strings.EqualFold(text[at+1:at+len(word)-1], word[1:len(word)-1]) {
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
	return strings.TrimLeft(text, " \t\r\n")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// parseSQL finds the literals of the text. The word that makes it a statement must stand in
// none of them.
func (v *value) parseSQL(word string) bool {
	around, inside, found, isStatement := uint64(2), uint64(0), false, false
	for l := (lexer{text: v.text}); l.next(); {
		hash := maphash.String(seed, l.token())
		if l.isLiteral {
			around, inside, found = mix(around, uint64(literals)), mix(inside, hash), true
		} else {
			around, isStatement = mix(around, hash), isStatement || hasWord(l.token(), word)
		}
	}
	if !found || !isStatement {
		return false
	}
	v.skeleton, v.count, v.isSQL = around, 1, true
	v.fills[0] = fill{kind: literals, worth: strong, hash: inside}
	return true
}

// appendStatement appends the statement with a question mark for each of its literals.
func (v *value) appendStatement(dst []byte) []byte {
	for l := (lexer{text: v.text}); l.next(); {
		if l.isLiteral {
			dst = append(dst, '?')
		} else {
			dst = append(dst, l.token()...)
		}
	}
	return dst
}
