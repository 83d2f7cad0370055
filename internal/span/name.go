package span

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The agent rewrites the names of services and operations in everything that it receives. This package does the
// same before aggregation, so that two spellings that the agent would merge share one aggregate: what the agent
// merges afterwards is less exact.

const unnamedOperation = "unnamed_operation"

// unnamedService returns the service of a span that has none. lang is the language of its tracer.
func unnamedService(lang string) string {
	if lang == "" {
		return "unnamed-service"
	}
	return "unnamed-" + lang + "-service"
}

// classes tell of each byte where a name may have it.
var classes = func() (classes [256]uint8) {
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
	inService   = 1 << iota // anywhere in the name of a service
	letter                  // an ASCII letter
	inOperation             // anywhere in the name of an operation, except that it begins with a letter
	separator               // in the name of an operation, unless it follows '_'
)

// isOperationName reports whether a name can stay as it is.
func isOperationName(name string) bool {
	return name != "" && len(name) <= MaxOperation && classes[name[0]]&letter != 0 && name[len(name)-1] != '_' &&
		hasOperationBytes(name)
}

// hasOperationBytes reports whether a name that begins with a letter can stay, except for '_' at its end. The agent
// leaves "._" alone if nothing else has to be rewritten.
func hasOperationBytes(name string) bool {
	for i := 1; i < len(name); i++ {
		class := classes[name[i]]
		if class&inOperation == 0 && (class&separator == 0 || name[i-1] == '_') {
			return false
		}
	}
	return true
}

// operationName returns the name of an operation as the statistics show it: it begins with a letter and has only
// letters, digits, '_' and '.'.
func operationName(name, _ string) string {
	name = Text(name, MaxOperation)
	for name != "" && classes[name[0]]&letter == 0 {
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

// rewriteOperation replaces each run of other characters by one '_', or by nothing next to a '.'.
func rewriteOperation(name string) string {
	to := make([]byte, 0, len(name))
	last := byte('.') // of to
	for i := range len(name) {
		c := name[i]
		switch {
		case classes[c]&inOperation != 0, c == '.' && last != '_':
			to = append(to, c)
		case c == '.':
			to[len(to)-1] = '.'
		case last != '.' && last != '_':
			to = append(to, '_')
		}
		last = to[len(to)-1]
	}
	return string(to)
}

// ServiceName returns the name of a service as the statistics show it: in lower case, of letters, digits and ':',
// '.', '/', '-', with one '_' for each run of other characters, and none at its end. lang is the language of a
// tracer that gives its service no name.
func ServiceName(name, lang string) string {
	if IsServiceName(name) {
		return name
	}
	name = Text(name, MaxService)
	to := make([]byte, 0, len(name))
	isRun := false
	for _, r := range name {
		r = lower(r)
		if !isTagRune(r) {
			isRun = true
			continue
		}
		if isRun {
			to, isRun = append(to, '_'), false
		}
		to = utf8.AppendRune(to, r)
	}
	if len(to) == 0 {
		return unnamedService(lang)
	}
	return string(to)
}

// IsServiceName reports whether a name can stay as it is. It returns false for a name that is not ASCII, which
// ServiceName may leave unchanged as well.
func IsServiceName(name string) bool {
	if name == "" || len(name) > MaxService {
		return false
	}
	for i := range len(name) {
		if classes[name[i]]&inService == 0 {
			return false
		}
	}
	return true
}

// PeerName returns the name of another service as the agent writes it in a tag: like the name of a service, but
// empty if no character of it can stay.
func PeerName(name string) string {
	name = Text(name, MaxService)
	if strings.IndexFunc(name, isTagRune) < 0 {
		return ""
	}
	return ServiceName(name, "")
}

// isTagRune reports whether the agent keeps a rune in the name of a service.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(":./-", r)
}

// lower returns the lower case of a rune if it has as many bytes, as the agent does.
func lower(r rune) rune {
	if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
		return low
	}
	return r
}
