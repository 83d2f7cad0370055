package span

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The Datadog agent normalizes the names of services and operations in all data that it receives. This file does
// the same before aggregation, so that spellings that the agent would merge share one aggregate. If the agent
// merged them later, their quantiles would be less exact.

const unnamedOperation = "unnamed_operation"

// unnamedService returns the name of a service that has none. lang is the language of its tracer, or "".
func unnamedService(lang string) string {
	if lang == "" {
		return "unnamed-service"
	}
	return "unnamed-" + lang + "-service"
}

// byteClasses contains, for each byte, the classes of characters to which it belongs.
var byteClasses = func() (classes [256]uint8) {
	for c := range classes {
		switch c := byte(c); {
		case c >= 'a' && c <= 'z':
			classes[c] = letter | alphanumeric | inService
		case c >= 'A' && c <= 'Z':
			classes[c] = letter | alphanumeric
		case c >= '0' && c <= '9':
			classes[c] = alphanumeric | inService
		case c == '.':
			classes[c] = inService
		case c == '-' || c == '/' || c == ':':
			classes[c] = inService
		}
	}
	return classes
}()

const (
	inService    = 1 << iota // allowed anywhere in the name of a service
	letter                   // ASCII letter
	alphanumeric             // ASCII letter or digit
)

func isIn(c byte, class uint8) bool { return byteClasses[c]&class != 0 }

// isOperationName reports whether name is a valid operation name, which operationName would not change.
func isOperationName(name string) bool {
	if name == "" || len(name) > MaxOperation {
		return false
	}
	beginsWithLetter := isIn(name[0], letter)
	endsWithUnderscore := name[len(name)-1] == '_'
	return beginsWithLetter && !endsWithUnderscore && hasOperationBytes(name)
}

// hasOperationBytes reports whether all bytes of name after the first are valid in an operation name:
// ASCII letters, digits, dots and underscores. As in the Datadog agent, neither a dot nor an underscore may
// follow an underscore.
func hasOperationBytes(name string) bool {
	for i := 1; i < len(name); i++ {
		isSeparator := name[i] == '.' || name[i] == '_'
		if !isSeparator && !isIn(name[i], alphanumeric) {
			return false
		}
		if isSeparator && name[i-1] == '_' {
			return false
		}
	}
	return true
}

// operationName normalizes an operation name like the Datadog agent: the result begins with a letter,
// contains only ASCII letters, digits, '_' and '.', and does not end with '_'. If name contains no
// letter, the result is "unnamed_operation".
func operationName(name string) string {
	name = Text(name, MaxOperation)
	for name != "" && !isIn(name[0], letter) {
		name = name[1:]
	}
	if name == "" {
		return unnamedOperation
	}
	if !hasOperationBytes(name) {
		name = rewriteOperation(name)
	}
	return strings.TrimSuffix(name, "_")
}

// rewriteOperation replaces each run of bytes that are not ASCII letters, digits or dots by one underscore, or
// removes it if it is next to a dot: "a--b" becomes "a_b", and "a-.b" becomes "a.b". The first byte of name
// must be a letter.
func rewriteOperation(name string) string {
	result := make([]byte, 0, len(name))
	for i := range len(name) {
		c := name[i]
		if isIn(c, alphanumeric) {
			result = append(result, c)
			continue
		}
		last := len(result) - 1 // not negative, because the first byte is a letter
		previous := result[last]
		switch {
		case c == '.' && previous == '_':
			result[last] = '.' // the dot replaces the underscore
		case c == '.':
			result = append(result, '.')
		case previous != '.' && previous != '_':
			result = append(result, '_')
		}
	}
	return string(result)
}

// ServiceName normalizes a service name like the Datadog agent. It converts letters to lower case, and
// replaces each run of characters other than letters, digits and ":./-" by one underscore, except at
// the end. If name has no valid character, the result is a default name that contains lang, the
// language of the client.
func ServiceName(name, lang string) string {
	if IsServiceName(name) {
		return name
	}
	name = Text(name, MaxService)
	result := make([]byte, 0, len(name))
	needsSeparator := false
	for _, r := range name {
		r = lower(r)
		if !isTagRune(r) {
			needsSeparator = true
			continue
		}
		if needsSeparator {
			result = append(result, '_')
			needsSeparator = false
		}
		result = utf8.AppendRune(result, r)
	}
	if len(result) == 0 {
		return unnamedService(lang)
	}
	return string(result)
}

// IsServiceName reports whether name is a normalized service name in ASCII, which ServiceName would not change. It
// returns false for every name with a non-ASCII character.
func IsServiceName(name string) bool {
	if name == "" || len(name) > MaxService {
		return false
	}
	for i := range len(name) {
		if !isIn(name[i], inService) {
			return false
		}
	}
	return true
}

// PeerName normalizes the name of a called service for a peer tag. It returns "" if name has no character that is
// valid in the name of a service.
func PeerName(name string) string {
	name = Text(name, MaxService)
	if strings.IndexFunc(name, isTagRune) < 0 {
		return ""
	}
	return ServiceName(name, "")
}

// isTagRune reports whether r is allowed in the name of a service.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(":./-", r)
}

// lower returns the lower-case form of r if its UTF-8 encoding has the same length, and otherwise r. The
// agent has the same restriction.
func lower(r rune) rune {
	if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
		return low
	}
	return r
}
