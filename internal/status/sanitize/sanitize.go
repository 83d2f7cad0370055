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
)

// Text returns s with control characters and other invisible characters replaced by escapes such as
// \n and \u202e.
func Text(s string) string {
	if !strings.ContainsFunc(s, isInvisible) {
		return s
	}
	var escaped strings.Builder
	for _, char := range s {
		if isInvisible(char) {
			quoted := strconv.QuoteRuneToASCII(char)
			escaped.WriteString(strings.Trim(quoted, "'"))
		} else {
			escaped.WriteRune(char)
		}
	}
	return escaped.String()
}

// Lines escapes invisible characters like Text, but keeps line breaks.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// isInvisible reports whether a character is a control or format character, a space other than ' ',
// or the replacement of invalid UTF-8.
func isInvisible(char rune) bool { return char == unicode.ReplacementChar || !unicode.IsPrint(char) }

// JSON returns a JSON document in which invisible characters in strings are replaced by escapes such
// as \u202e. The document must be from encoding/json, which has escaped control characters such as
// line breaks.
func JSON(document []byte) []byte {
	if !bytes.ContainsFunc(document, needsEscape) {
		return document
	}
	var escaped bytes.Buffer
	for _, char := range string(document) {
		if needsEscape(char) {
			writeJSONEscape(&escaped, char)
		} else {
			escaped.WriteRune(char)
		}
	}
	return escaped.Bytes()
}

// needsEscape reports whether a character is invisible, but encoding/json does not escape it. It returns
// false for ASCII characters up to '~', because encoding/json escapes the invisible ones.
func needsEscape(char rune) bool { return char > '~' && !unicode.IsPrint(char) }

// writeJSONEscape writes the JSON escape of a character, for example \u202e. An escape has four
// hexadecimal digits, so a character above U+FFFF becomes two escapes, a surrogate pair.
func writeJSONEscape(b *bytes.Buffer, char rune) {
	if char <= 0xffff {
		fmt.Fprintf(b, `\u%04x`, char)
		return
	}
	high, low := utf16.EncodeRune(char)
	fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
}

// NewJSONWriter returns a writer of JSON documents. It replaces the invisible characters in a document as
// function JSON does, and writes the result to target. Each call of Write must contain a complete document.
func NewJSONWriter(target io.Writer) io.Writer { return jsonWriter{target} }

type jsonWriter struct{ target io.Writer }

func (w jsonWriter) Write(document []byte) (int, error) {
	if _, err := w.target.Write(JSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}
