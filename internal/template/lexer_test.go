package template

import (
	"math/rand/v2"
	"testing"
)

// TestWhereAQuoteEnds holds quoteEnd against one that goes byte by byte.
func TestWhereAQuoteEnds(t *testing.T) {
	naive := func(text string) int {
		for at := 1; at < len(text); at++ {
			switch {
			case text[at] == '\\':
				at++
			case text[at] != text[0]:
			case at+1 < len(text) && text[at+1] == text[0]:
				at++
			default:
				return at + 1
			}
		}
		return len(text)
	}
	rnd := rand.New(rand.NewPCG(1, 20))
	for range 100_000 {
		text := []byte("'")
		for range rnd.IntN(12) {
			text = append(text, `'\a`[rnd.IntN(3)])
		}
		l := newLexer("x" + string(text))
		if got, want := l.quoteEnd(1), 1+naive(string(text)); got != want {
			t.Fatalf("%s ends at %d, want %d", text, got, want)
		}
	}
}

// TestARequestIsNoStatement: DELETE is a method too, whatever stands in its path.
func TestARequestIsNoStatement(t *testing.T) {
	for text, isSQL := range map[string]bool{
		"DELETE /users/1234567 from here":           false,
		"DELETE /* all */ FROM users WHERE id = 17": true,
	} {
		var v value
		if !v.parse(text) || v.isSQL != isSQL {
			t.Errorf("%q is a statement: %t", text, v.isSQL)
		}
	}
}

// TestAWordInAFirstCommentMakesNoStatement, and what has none is taken apart as any text.
func TestAWordInAFirstCommentMakesNoStatement(t *testing.T) {
	var v value
	if !v.parse("/* from here */select/1234567") || v.isSQL {
		t.Errorf("%q is a statement: %t", v.text, v.isSQL)
	}
}

// TestWhatIsPlainIsSkippedAsByteByByte holds the lexer against one that asks at each place
// whether a literal begins there.
func TestWhatIsPlainIsSkippedAsByteByByte(t *testing.T) {
	next := func(l *lexer) bool {
		l.from = l.to
		if l.from == len(l.text) {
			return false
		}
		if l.isLiteral = l.find(l.from); l.isLiteral {
			l.to = l.end
			return true
		}
		for l.to = l.skip(l.to); l.to < len(l.text) && !l.find(l.to); {
			l.to = l.skip(l.to)
		}
		return true
	}
	rnd := rand.New(rand.NewPCG(2, 20))
	parts := []string{"a", "b1", " ", "  ", "\n", "é", "_", "1", "2.5e-3", "'", "''", `"`, "`", "\\", "?", "$", "$a$", "/*", "*/", "--", "(", ")", ",", "=", "-", "/", "*", "x", "(1, 2)", "'c'"}
	for range 100_000 {
		text := ""
		for range rnd.IntN(14) {
			text += parts[rnd.IntN(len(parts))]
		}
		fast, slow := newLexer(text), newLexer(text)
		for next(&slow) {
			if fast.next(); fast.from != slow.from || fast.to != slow.to || fast.isLiteral != slow.isLiteral {
				t.Fatalf("of %q %q is one, want %q", text, fast.token(), slow.token())
			}
		}
		if fast.next() {
			t.Fatalf("of %q there is more: %q", text, fast.token())
		}
	}
}

// TestABackslashMayBeTheLastByteInQuotes: what stands behind is no part of a literal, or two
// statements would become one.
func TestABackslashMayBeTheLastByteInQuotes(t *testing.T) {
	for text, want := range map[string]string{
		`SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '\' AND c = 'y'`:       `SELECT a FROM t WHERE b LIKE ? ESCAPE ? AND c = ?`,
		`SELECT a FROM t WHERE b LIKE 'x%' escape  '\' ORDER BY d`:       `SELECT a FROM t WHERE b LIKE ? escape  ? ORDER BY d`,
		`SELECT a FROM t WHERE b = 'x%' AND c LIKE 'y' ESCAPE '\\' OR d`: `SELECT a FROM t WHERE b = ? AND c LIKE ? ESCAPE ? OR d`,
		`SELECT a FROM t WHERE b = 'C:\' AND c = 'x' AND d = 'D:\'`:      "",
		`SELECT a FROM t WHERE b = 'it\'s' AND c = 'cut he`:              "",
	} {
		var v value
		if got := v.parse(text); got != (want != "") || got && string(v.statement) != want {
			t.Errorf("%s became %s, %t; want %s", text, v.statement, got, want)
		}
	}
}

// TestWhatIsPartOfANameIsNoLiteral, or statements about two tables would become one.
func TestWhatIsPartOfANameIsNoLiteral(t *testing.T) {
	for text, want := range map[string]string{
		"select a from 2024_orders where b = 1":                 "select a from 2024_orders where b = ?",
		"select a from db.2024_orders, 4users where b=1":        "select a from db.2024_orders, 4users where b=?",
		"select a from t where b=1and c=2":                      "select a from t where b=1and c=?",
		"select a from t where b in (1, 0x1F, 0b101, 2.5e+3)":   "select a from t where b in (?)",
		"select a from t where b = 1e5 and c > now() - 15ms":    "select a from t where b = ? and c > now() - ?",
		"select a from dr$idx$i where b = 1 order by c":         "select a from dr$idx$i where b = ? order by c",
		"select a from b$$c where d = $1$2 and e = '1'":         "select a from b$$c where d = $1$2 and e = ?",
		"select a from t where b = $$it's$$ and c=$x1$it's$x1$": "select a from t where b = ? and c=?",
	} {
		var v value
		if !v.parse(text) || string(v.statement) != want {
			t.Errorf("%s became %s, want %s", text, v.statement, want)
		}
	}
}
