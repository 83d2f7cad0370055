// Package sanitize makes text from outside safe to show. A client chooses its labels: with control characters
// of a terminal, of bidirectional text or without any width it could make a page, a log or a response read as
// something else. Such a character is shown as its escape, \u202e. The web page does the same by itself.
//
// The package owns the set of these characters: all that Go does not call printable, except for the space. In
// JSON an escape is the same character to a program, so only what a person sees changes.
//
// All functions depend on their arguments only, are safe for concurrent use, and take memory in proportion to
// the text.
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

// Text is a text with the escapes of what can't be seen in it.
func Text(s string) string {
	if strings.IndexFunc(s, unseen) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines is as Text, but line breaks are kept.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// unseen is a control or format character, or no character at all. A space of another
// kind than ' ' is one too.
func unseen(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// JSON is the same document with the escapes of what can't be seen in its strings. The
// encoder has escaped the control characters of ASCII but one already.
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

// JSONLines passes documents of JSON on to w, each as JSON has it: one whole a Write.
func JSONLines(w io.Writer) io.Writer { return jsonLines{w} }

type jsonLines struct{ to io.Writer }

func (w jsonLines) Write(document []byte) (int, error) {
	if _, err := w.to.Write(JSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}
