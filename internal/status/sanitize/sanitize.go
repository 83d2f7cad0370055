// Package sanitize makes text from clients safe to show. Labels can contain control characters of a terminal,
// of bidirectional text, or of zero width, which could make a page, a log or a response appear as something
// else. Such characters are replaced by escapes such as \u202e. The web page does the same itself.
//
// The set of these characters is everything that Go does not call printable, except for the space. In JSON an
// escape is equivalent to the character, so only the appearance changes.
//
// All functions are pure, safe for concurrent use, and take memory in proportion to the text.
package sanitize

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with invisible characters escaped.
func Text(s string) string {
	if strings.IndexFunc(s, isInvisible) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isInvisible(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines is like Text, but keeps line breaks.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// isInvisible reports whether r is a control or format character, a space other than ' ', or
// invalid.
func isInvisible(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// JSON returns a JSON document with invisible characters in strings escaped. The encoder has
// escaped ASCII control characters except for one already.
func JSON(document []byte) []byte {
	hidden := func(r rune) bool { return r > '~' && !unicode.IsPrint(r) }
	if bytes.IndexFunc(document, hidden) < 0 {
		return document
	}
	var b bytes.Buffer
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		switch {
		case !hidden(r):
			b.Write(document[:size])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		document = document[size:]
	}
	return b.Bytes()
}

// JSONLines returns a writer that writes JSON documents to w, escaped by JSON. Each Write must
// contain a complete document.
func JSONLines(w io.Writer) io.Writer { return jsonLines{w} }

type jsonLines struct{ to io.Writer }

func (w jsonLines) Write(document []byte) (int, error) {
	if _, err := w.to.Write(JSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}
