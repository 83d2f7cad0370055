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

// byteClasses contains, for each byte, the positions in a name where it is allowed.
var byteClasses = func() (classes [256]uint8) {
	for c := range classes {
		switch c := byte(c); {
		case c >= 'a' && c <= 'z':
			classes[c] = letter | inOperation | inService
		case c >= 'A' && c <= 'Z':
			classes[c] = letter | inOperation
		case c >= '0' && c <= '9':
			classes[c] = inOperation | inService
		case c == '.':
			classes[c] = separator | inService
		case c == '_':
			classes[c] = separator
		case c == '-' || c == '/' || c == ':':
			classes[c] = inService
		}
	}
	return classes
}()

const (
	inService   = 1 << iota // allowed anywhere in the name of a service
	letter                  // ASCII letter
	inOperation             // allowed in the name of an operation, except that the first byte must be a letter
	separator               // allowed in the name of an operation, but not after '_'
)

// isOperationName reports whether name is a valid name of an operation, which operationName would not change.
func isOperationName(name string) bool {
	return name != "" && len(name) <= MaxOperation && byteClasses[name[0]]&letter != 0 && name[len(name)-1] != '_' &&
		hasOperationBytes(name)
}

// hasOperationBytes reports whether all bytes of name after the first are allowed in the name of an operation. It
// accepts "._" because the agent rewrites this sequence only together with other invalid bytes.
func hasOperationBytes(name string) bool {
	for i := 1; i < len(name); i++ {
		class := byteClasses[name[i]]
		if class&inOperation == 0 && (class&separator == 0 || name[i-1] == '_') {
			return false
		}
	}
	return true
}

// operationName normalizes the name of an operation: it begins with a letter and contains only ASCII letters,
// digits, '_' and '.'. The second parameter is unused; it makes operationName a labelRules.normalize.
func operationName(name, _ string) string {
	name = Text(name, MaxOperation)
	for name != "" && byteClasses[name[0]]&letter == 0 {
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

// rewriteOperation replaces each run of bytes that are not allowed by one '_', or removes it next to a '.'.
func rewriteOperation(name string) string {
	result := make([]byte, 0, len(name))
	last := byte('.') // last byte of result
	for i := range len(name) {
		c := name[i]
		switch {
		case byteClasses[c]&inOperation != 0, c == '.' && last != '_':
			result = append(result, c)
		case c == '.':
			result[len(result)-1] = '.'
		case last != '.' && last != '_':
			result = append(result, '_')
		}
		last = result[len(result)-1]
	}
	return string(result)
}

// ServiceName normalizes the name of a service like the Datadog agent: it is in lower case and contains only letters,
// digits, ':', '.', '/' and '-'. Each run of other characters is replaced by one '_', or removed at the end. If nothing
// is left, the result is a default name that contains lang, the language of the tracer.
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
			result, needsSeparator = append(result, '_'), false
		}
		result = utf8.AppendRune(result, r)
	}
	if len(result) == 0 {
		return unnamedService(lang)
	}
	return string(result)
}

// IsServiceName reports whether name is a valid ASCII name of a service, which ServiceName would not change. It
// returns false for all names with other characters, including valid ones.
func IsServiceName(name string) bool {
	if name == "" || len(name) > MaxService {
		return false
	}
	for i := range len(name) {
		if byteClasses[name[i]]&inService == 0 {
			return false
		}
	}
	return true
}

// PeerName normalizes the name of a called service for a peer tag. It is like ServiceName, but returns ""
// if name contains no valid character.
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
