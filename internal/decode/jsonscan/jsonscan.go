// Package jsonscan reads JSON in place, for decoders that know which fields they need.
//
// It accepts exactly the grammar of RFC 8259. It does not allocate and does not recurse: strings and
// numbers are slices of the input, and SkipValue keeps its stack, one byte per nesting level, in a
// buffer of the caller. A Scanner is used by one goroutine at a time.
//
// No method returns an error. The first error ends the input, so that all loops over elements end, and
// Err returns it:
//
//	s.Enter() // if s.Peek() is '['
//	for s.NextElement(']') {
//		text := s.ReadString()
//	}
//	return s.Err()
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is the error for input that is not valid JSON.
var ErrSyntax = errors.New("invalid or truncated JSON")

// Scanner reads the JSON in Body, from position Pos. Strings and numbers that it returns are slices of
// Body.
type Scanner struct {
	Body []byte
	Pos  int

	err     error
	isFirst bool // whether an opening bracket was read last
}

// Err returns the first error, or nil.
func (s *Scanner) Err() error { return s.err }

// Fail records err, unless there is an earlier error, and discards the unread input.
func (s *Scanner) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.Body = s.Body[:s.Pos]
}

// Peek skips white space and returns the next byte, without reading it. It returns 0 at the end.
func (s *Scanner) Peek() byte {
	for ; s.Pos < len(s.Body); s.Pos++ {
		c := s.Body[s.Pos]
		isSpace := c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		if !isSpace {
			return c
		}
	}
	return 0
}

// Enter reads the opening bracket of an array or object, which must be the next byte. The caller then
// reads each element after a call of NextElement.
func (s *Scanner) Enter() {
	s.Pos++
	s.isFirst = true
}

// NextElement moves to the next element of an array or object, and reads the comma before it. After the last
// element, it reads the closing bracket, closer, and returns false. It also returns false after an error.
func (s *Scanner) NextElement(closer byte) bool {
	isFirst := s.isFirst
	s.isFirst = false
	next := s.Peek()
	isEndOfInput := next == 0
	switch {
	case next == closer:
		s.Pos++
		return false
	case isFirst && !isEndOfInput: // no comma precedes the first element
		return true
	case next == ',':
		s.Pos++
		return true // after a trailing comma, reading the element fails
	}
	s.Fail(ErrSyntax)
	return false
}

// Accept reads the given text if it comes next. It returns false if it has read nothing.
func (s *Scanner) Accept(text string) bool {
	isNext := bytes.HasPrefix(s.Body[s.Pos:], []byte(text))
	if isNext {
		s.Pos += len(text)
	}
	return isNext
}

// ReadLiteral reads the given literal: true, false or null.
func (s *Scanner) ReadLiteral(literal string) {
	if !s.Accept(literal) {
		s.Fail(ErrSyntax)
	}
}

// ReadNumber reads a number and returns its text.
func (s *Scanner) ReadNumber() []byte {
	begin := s.Pos
	s.Accept("-")
	isNumber := s.Accept("0") || s.acceptDigits()
	if isNumber && s.Accept(".") {
		isNumber = s.acceptDigits()
	}
	if isNumber && (s.Accept("e") || s.Accept("E")) {
		_ = s.Accept("+") || s.Accept("-")
		isNumber = s.acceptDigits()
	}
	if !isNumber {
		s.Fail(ErrSyntax)
		return nil
	}
	return s.Body[begin:s.Pos]
}

// acceptDigits reads consecutive decimal digits. It returns false if the next byte is not a digit.
func (s *Scanner) acceptDigits() bool {
	begin := s.Pos
	for s.Pos < len(s.Body) && isDigit(s.Body[s.Pos]) {
		s.Pos++
	}
	return s.Pos > begin
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// ParseInteger parses a signed or unsigned 64-bit integer. It returns the two's complement of a negative
// integer. It also accepts an integer with a fraction or an exponent, such as 1.0 or 1e3, if its absolute
// value is less than 1<<63. ok is false for any other text.
func ParseInteger(text []byte) (n uint64, ok bool) {
	if signed, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return uint64(signed), true
	}
	if unsigned, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return unsigned, true
	}
	float, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, false
	}
	isInteger := float == math.Trunc(float)
	isInRange := math.Abs(float) < 1<<63
	if !isInteger || !isInRange {
		return 0, false
	}
	return uint64(int64(float)), true
}

// SkipValue skips a value of any nesting depth. It needs a stack, which it stores in the unused capacity of buf. It
// returns buf with the same content, but with a larger capacity if the stack needed it.
func (s *Scanner) SkipValue(buf []byte) []byte {
	emptyLen := len(buf)
	stack := buf // stack[emptyLen:] has the closing brackets of the arrays and objects around the next value
	for {
		switch firstByte := s.Peek(); firstByte {
		case '{':
			s.Enter()
			stack = append(stack, '}')
		case '[':
			s.Enter()
			stack = append(stack, ']')
		default:
			s.skipScalar(firstByte)
		}
		stack = s.moveToNextValue(stack, emptyLen)
		isSkipped := len(stack) == emptyLen
		if isSkipped {
			return stack
		}
	}
}

// moveToNextValue moves to the next value in the innermost array or object that has one. stack[emptyLen:] has the
// closing brackets of the arrays and objects around the current value, the innermost last. The result is stack without
// the arrays and objects that have ended.
func (s *Scanner) moveToNextValue(stack []byte, emptyLen int) []byte {
	for len(stack) > emptyLen {
		innermost := len(stack) - 1
		if s.nextElementOrMember(stack[innermost]) {
			break
		}
		stack = stack[:innermost]
	}
	return stack
}

// nextElementOrMember moves to the next value in an array or object, like NextElement. In an object, it also reads
// the name of the member.
func (s *Scanner) nextElementOrMember(closer byte) bool {
	hasNext := s.NextElement(closer)
	if hasNext && closer == '}' {
		s.ReadName()
	}
	return hasNext
}

// skipScalar skips a string, number or literal that begins with c.
func (s *Scanner) skipScalar(c byte) {
	switch c {
	case '"':
		s.ReadString()
	case 't':
		s.ReadLiteral("true")
	case 'f':
		s.ReadLiteral("false")
	case 'n':
		s.ReadLiteral("null")
	default:
		s.ReadNumber()
	}
}

// String is a JSON string.
type String struct {
	Raw     []byte // bytes between the quotes
	Start   int    // position of Raw in the input
	IsPlain bool   // Raw is ASCII without escapes, and therefore the value
}

// ReadString reads a string with its quotes. It checks escape sequences, but does not replace them.
func (s *Scanner) ReadString() String {
	s.Peek() // skips white space
	start := s.Pos + 1
	if value, ok := s.AcceptPlainString(); ok {
		return String{Raw: value, Start: start, IsPlain: true}
	}
	return s.readSpecialString()
}

// readSpecialString reads a string that has escape sequences, or characters that are not ASCII.
func (s *Scanner) readSpecialString() String {
	if s.Peek() != '"' {
		s.Fail(ErrSyntax)
		return String{}
	}
	start := s.Pos + 1
	charLen := 1
	for end := start; end < len(s.Body) && charLen > 0; end += charLen {
		charLen = 1
		switch c := s.Body[end]; {
		case c == '"':
			s.Pos = end + 1
			return String{Raw: s.Body[start:end], Start: start}
		case c == '\\':
			charLen = escapeLen(s.Body[end:])
		case c < ' ':
			charLen = 0
		}
	}
	s.Fail(ErrSyntax)
	return String{}
}

// ReadName reads the name of an object member, and the colon after it.
func (s *Scanner) ReadName() String {
	name := s.ReadString()
	if s.Peek() != ':' {
		s.Fail(ErrSyntax)
		return String{}
	}
	s.Pos++
	return name
}

// The following methods are faster than those that begin with Read, but they read the most common
// notation only. They return false, and read nothing, if there is anything else at Pos.

// AcceptName reads the name of an object member, and the colon after it, if the name is the given one.
func (s *Scanner) AcceptName(name string) bool {
	const openingQuote, quoteAndColon = 1, 2
	b := s.Body[s.Pos:]
	end := openingQuote + len(name)
	isLongEnough := len(b) >= end+quoteAndColon
	if !isLongEnough || b[end] != '"' || b[end+1] != ':' || b[0] != '"' {
		return false
	}
	isEqual := string(b[openingQuote:end]) == name
	if isEqual {
		s.Pos += end + quoteAndColon
	}
	return isEqual
}

// AcceptPlainString reads a string of ASCII characters without escape sequences, and returns its value.
func (s *Scanner) AcceptPlainString() (value []byte, ok bool) {
	start := s.Pos + 1
	isString := start < len(s.Body) && s.Body[s.Pos] == '"'
	if !isString {
		return nil, false
	}
	end := start + plainLen(s.Body[start:])
	isComplete := end < len(s.Body) && s.Body[end] == '"'
	if !isComplete {
		return nil, false
	}
	s.Pos = end + 1
	return s.Body[start:end], true
}

// plainLen returns the number of bytes at the start of b, a part of a string, that represent themselves:
// ASCII characters except for quotes, backslashes and control characters. Most of a request consists of
// them, so plainLen compares eight bytes at a time.
func plainLen(b []byte) int {
	const wordLen = 8 // bytes of a uint64
	length := 0
	for ; len(b)-length >= wordLen; length += wordLen {
		word := binary.LittleEndian.Uint64(b[length:])
		marks := markSpecial(word)
		if marks != 0 {
			firstSpecial := bits.TrailingZeros64(marks) / 8 // the lowest mark is in the first special byte
			return length + firstSpecial
		}
	}
	for length < len(b) && isPlainByte(b[length]) {
		length++
	}
	return length
}

// eachByte is a factor that repeats a byte eight times.
const eachByte = 0x0101010101010101

// markSpecial sets the high bit of the first byte of word that does not represent itself in a string. It clears the
// bits before it. The result is 0 if all eight bytes represent themselves. High bits after the first are meaningless.
func markSpecial(word uint64) uint64 {
	const highBits = 0x80 * eachByte
	notASCII := word // bytes with a high bit
	return (notASCII | markBytes(word, '"') | markBytes(word, '\\') | markBytesBelow(word, ' ')) & highBits
}

// markBytes sets the high bit of the first byte of word that equals c, if all bytes before it are ASCII characters.
func markBytes(word uint64, c byte) uint64 {
	differences := word ^ uint64(c)*eachByte // 0 in each byte that equals c
	return markBytesBelow(differences, 1)
}

// markBytesBelow sets the high bit of the first byte of word that is less than limit, if all bytes before it are ASCII
// characters. It subtracts limit from each byte: the first negative difference sets the high bit, and borrows from the
// next byte.
func markBytesBelow(word uint64, limit byte) uint64 { return word - uint64(limit)*eachByte }

// isPlainByte reports whether a byte of a string is an ASCII character that represents itself.
func isPlainByte(c byte) bool {
	return ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\'
}

// AcceptInteger reads an integer without a sign and with at most 19 digits, and returns its value. The
// integer must be in quotes, or a comma or a closing brace must follow. Otherwise, AcceptInteger reads
// nothing and returns false.
func (s *Scanner) AcceptInteger() (n uint64, ok bool) {
	b := s.Body[s.Pos:]
	start := 0
	isQuoted := len(b) > 0 && b[0] == '"'
	if isQuoted {
		start = 1
	}
	n, digits := parseDigits(b[start:])
	end := start + digits
	if digits == 0 || end == len(b) {
		return 0, false
	}
	next := b[end]
	endsElement := next == ',' || next == '}'
	switch {
	case isQuoted && next == '"':
		s.Pos += end + len(`"`)
	case !isQuoted && endsElement:
		s.Pos += end
	default:
		return 0, false
	}
	return n, true
}

// parseDigits parses the decimal number at the start of b, and returns it and the number of its digits. It returns 0
// as the number of digits if b starts with no digit, with a leading zero, or with more than 19 digits.
func parseDigits(b []byte) (n uint64, digits int) {
	const maxDigits = 19 // n could overflow with 20 digits
	for digits < len(b) && isDigit(b[digits]) {
		n = 10*n + uint64(b[digits]-'0')
		digits++
	}
	hasLeadingZero := digits > 1 && b[0] == '0'
	if hasLeadingZero || digits > maxDigits {
		return 0, 0
	}
	return n, digits
}

// unicodeEscapeLen is the length of the escape sequence \uXXXX.
const unicodeEscapeLen = 6

// escapeLen returns the length of the escape sequence at the start of b, or 0 if it is invalid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if parseUnicodeEscape(b) >= 0 {
			return unicodeEscapeLen
		}
	}
	return 0
}

// parseUnicodeEscape returns the UTF-16 code unit for the escape sequence \uXXXX at the start of b. It
// returns -1 if b does not start with such a sequence.
func parseUnicodeEscape(b []byte) rune {
	const prefix = `\u`
	if len(b) < unicodeEscapeLen || string(b[:len(prefix)]) != prefix {
		return -1
	}
	hexDigits := string(b[len(prefix):unicodeEscapeLen])
	unit, err := strconv.ParseUint(hexDigits, 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// AppendTo appends the value of a JSON string to dst, with escape sequences decoded. It replaces each
// unpaired surrogate and each byte that is not valid UTF-8 by U+FFFD.
func (t String) AppendTo(dst []byte) []byte {
	if t.IsPlain {
		return append(dst, t.Raw...)
	}
	unread := t.Raw
	for len(unread) > 0 {
		var char rune
		var length int
		if unread[0] == '\\' {
			char, length = decodeEscape(unread)
		} else {
			char, length = utf8.DecodeRune(unread)
		}
		dst = utf8.AppendRune(dst, char)
		unread = unread[length:]
	}
	return dst
}

// decodeEscape decodes the escape sequence at the start of b, which must be valid. It returns the
// character and the length of the sequence.
func decodeEscape(b []byte) (r rune, length int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return decodeUnicodeEscape(b)
	}
	return rune(b[1]), 2 // a quote, slash or backslash
}

// decodeUnicodeEscape decodes the sequence \uXXXX at the start of b, or two such sequences that form a
// surrogate pair. It returns the character and the length. An unpaired surrogate becomes U+FFFD.
func decodeUnicodeEscape(b []byte) (r rune, length int) {
	unit := parseUnicodeEscape(b)
	if !utf16.IsSurrogate(unit) {
		return unit, unicodeEscapeLen
	}
	nextUnit := parseUnicodeEscape(b[unicodeEscapeLen:])
	r = utf16.DecodeRune(unit, nextUnit)
	isPair := r != utf8.RuneError
	if isPair {
		return r, 2 * unicodeEscapeLen
	}
	return utf8.RuneError, unicodeEscapeLen
}
