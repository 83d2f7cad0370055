package span

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The agent rewrites the names of services and operations in everything that it
// receives. It is done here first, so that two spellings which it would write
// alike meet in one aggregate: what it merges afterwards is less exact.

const unnamedOperation = "unnamed_operation"

// unnamedService is the service of a span that names none.
func unnamedService(lang string) string {
	if lang == "" {
		return "unnamed-service"
	}
	return "unnamed-" + lang + "-service"
}

// operationName is the name of an operation as the statistics show it: it begins with a
// letter and has only letters, digits, '_' and '.'.
func operationName(name, _ string) string {
	trim(&name, MaxOperation)
	first := strings.IndexFunc(name, isASCIILetter)
	if first < 0 {
		return unnamedOperation
	}
	name = name[first:]
	if !hasOperationBytes(name) {
		name = rewriteOperation(name)
	}
	return strings.TrimSuffix(name, "_")
}

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && classes[r]&letter != 0 }

// classes says of each byte what it may be in a name, because most of normalising a
// key is finding that its names can stay.
var classes = func() (classes [256]uint8) {
	for c := range classes {
		switch c := byte(c); {
		case c >= 'a' && c <= 'z':
			classes[c] = letter | ofOperation | ofService
		case c >= 'A' && c <= 'Z':
			classes[c] = letter | ofOperation
		case c >= '0' && c <= '9':
			classes[c] = ofOperation | ofService
		case c == '.':
			classes[c] = separator | ofService
		case c == '_':
			classes[c] = separator
		case c == '-' || c == '/' || c == ':':
			classes[c] = ofService
		}
	}
	return classes
}()

const (
	letter      = 1 << iota // of ASCII
	ofOperation             // stays in an operation, wherever it stands
	separator               // stays in an operation unless it follows '_'
	ofService               // stays in a service
)

// isOperationName says whether a name can stay.
func isOperationName(name string) bool {
	return name != "" && len(name) <= MaxOperation && classes[name[0]]&letter != 0 &&
		name[len(name)-1] != '_' && hasOperationBytes(name)
}

// hasOperationBytes says whether what follows a letter can stay. It can with '_' behind
// '.', which rewriting would not leave.
func hasOperationBytes(name string) bool {
	for i := 1; i < len(name); i++ {
		class := classes[name[i]]
		if class&ofOperation == 0 && (class&separator == 0 || name[i-1] == '_') {
			return false
		}
	}
	return true
}

// rewriteOperation makes one '_' of each run of other characters, none before
// or behind a '.'.
func rewriteOperation(name string) string {
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		c := name[i]
		last := byte(0)
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		switch {
		case classes[c]&ofOperation != 0:
			out = append(out, c)
		case c == '.' && last == '_':
			out[len(out)-1] = '.'
		case c == '.':
			out = append(out, '.')
		case last != '.' && last != '_':
			out = append(out, '_')
		}
	}
	return string(out)
}

// ServiceName is the name of a service as the statistics show it: in lower case, of
// letters, digits and ':', '.', '/', '-', with one '_' for each run of anything else, and
// none at its end. lang names the service of a tracer that gives it no name.
func ServiceName(name, lang string) string {
	if IsServiceName(name) {
		return name
	}
	trim(&name, MaxService)
	if IsServiceName(name) {
		return name
	}
	var out strings.Builder
	pending := false // a '_' that stands only if something follows
	for _, r := range name {
		r = lower(r)
		if !isTagRune(r) {
			pending = true
			continue
		}
		if pending {
			out.WriteByte('_')
			pending = false
		}
		out.WriteRune(r)
	}
	if out.Len() == 0 {
		return unnamedService(lang)
	}
	return out.String()
}

// isTagRune says whether a rune stays, and is no run's '_'.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(":./-", r)
}

// lower is the lower case of a rune where that is as long, as the agent does it.
func lower(r rune) rune {
	if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
		return low
	}
	return r
}

// IsServiceName reports whether a name can stay as it is. A name that is not ASCII is
// looked at by ServiceName, which may leave it as well.
func IsServiceName(name string) bool {
	for i := range len(name) {
		if classes[name[i]]&ofService == 0 {
			return false
		}
	}
	return name != "" && len(name) <= MaxService
}

// PeerName is the name of another service as the agent writes it in a tag: like
// that of a service, but nothing where nothing is left of it.
func PeerName(name string) string {
	name = Text(name, MaxService)
	if strings.IndexFunc(name, isTagRune) < 0 {
		return ""
	}
	return ServiceName(name, "")
}
