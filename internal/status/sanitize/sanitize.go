// Package sanitize makes text from clients safe to show. Labels can contain terminal control characters, bidirectional
// control characters and zero-width characters. They could make a page, a log or a response look like another one. The
// package replaces such characters by escapes such as \u202e. The web page has its own implementation in JavaScript.
//
// It escapes all characters that are not printable according to unicode.IsPrint. In JSON an escape is equivalent to the
// character, so only the appearance changes.
//
// Concurrency: all functions are safe for concurrent use. They need memory in proportion to the text.
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

// Lines returns s with invisible characters escaped, except for line breaks.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// isInvisible reports whether r is a control or format character, a space other than ' ', or the replacement of invalid
// UTF-8.
func isInvisible(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// JSON returns a document of encoding/json with all invisible characters in strings escaped. The encoder has already
// escaped the ASCII control characters below the space, but not DEL (U+007F) and most characters beyond ASCII. Line
// breaks and spaces between values are kept.
func JSON(document []byte) []byte {
	const lastVisibleASCII = '~'
	needsEscape := func(r rune) bool { return r > lastVisibleASCII && !unicode.IsPrint(r) }
	if bytes.IndexFunc(document, needsEscape) < 0 {
		return document
	}
	var b bytes.Buffer
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		switch {
		case !needsEscape(r):
			b.Write(document[:size])
		case r > 0xffff: // JSON escapes have four digits: write a surrogate pair
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		document = document[size:]
	}
	return b.Bytes()
}

// JSONLines returns a writer that escapes documents with JSON and writes them to w. Each call of Write must have a
// complete document.
func JSONLines(w io.Writer) io.Writer { return jsonLines{w} }

type jsonLines struct{ target io.Writer }

func (w jsonLines) Write(document []byte) (int, error) {
	if _, err := w.target.Write(JSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}
