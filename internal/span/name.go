package span

import (
	"strings"
	"unicode/utf8"
)

// The agent rewrites the names of services and operations in everything that it
// receives. It is done here first, so that two spellings which it would write
// alike meet in one aggregate: what it merges afterwards is less exact.

const unnamedOperation = "unnamed_operation"

// appendUnnamed appends the service of a span that names none.
func appendUnnamed(dst []byte, lang string) []byte {
	dst = append(dst, "unnamed-"...)
	if lang != "" {
		dst = append(append(dst, lang...), '-')
	}
	return append(dst, "service"...)
}

// classes says of each byte what it may be in a name, because most of normalising a
// key is finding that its names can stay.
var classes = func() (classes [256]uint8) {
	for c := range classes {
		switch c := byte(c); {
		case c >= 'a' && c <= 'z':
			classes[c] = letter | ofOperation | ofService
		case c >= 'A' && c <= 'Z':
			classes[c] = letter | ofOperation | capital
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
	capital                 // of ASCII, and stays in a service in lower case
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

// appendOperation appends the name of an operation as the statistics show it: it begins with
// a letter and has only letters, digits, '_' and '.'.
func appendOperation(dst []byte, name, _ string) []byte {
	dst, name = trimmed(dst, name, MaxOperation)
	for name != "" && classes[name[0]]&letter == 0 {
		name = name[1:]
	}
	switch {
	case name == "":
		return append(dst, unnamedOperation...)
	case hasOperationBytes(name):
		dst = append(dst, name...)
	default:
		dst = rewriteOperation(dst, name)
	}
	if dst[len(dst)-1] == '_' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// rewriteOperation makes one '_' of each run of other characters, none before or behind a
// '.'. What it appends is no longer than the name, which may lie where it appends to.
func rewriteOperation(dst []byte, name string) []byte {
	last := byte('.') // of what was appended
	for i := range len(name) {
		c := name[i]
		switch class := classes[c]; {
		case class&ofOperation != 0 || c == '.' && last != '_':
			dst, last = append(dst, c), c
		case c == '.':
			dst[len(dst)-1], last = '.', '.'
		case last != '.' && last != '_':
			dst, last = append(dst, '_'), '_'
		}
	}
	return dst
}

// ServiceName is the name of a service as the statistics show it. lang names the service
// of a tracer that gives it no name.
func ServiceName(name, lang string) string {
	if IsServiceName(name) {
		return name
	}
	return stringOf(appendService(nil, name, lang))
}

// appendService appends the name of a service as the statistics show it: in lower case, of
// letters, digits and ':', '.', '/', '-', with one '_' for each run of anything else, and
// none at its end. lang names the service of a tracer that gives it no name.
func appendService(dst []byte, name, lang string) []byte {
	dst, name = trimmed(dst, name, MaxService)
	begin, pending := len(dst), false // a '_' that stands only if something follows
	for name != "" {
		r, size := rune(name[0]), 1
		switch class := classes[name[0]]; {
		case class&ofService != 0:
		case class&capital != 0:
			r += 'a' - 'A'
		case r < utf8.RuneSelf:
			r = 0
		default:
			r, size = utf8.DecodeRuneInString(name)
			r = inService(r)
		}
		name = name[size:]
		if r == 0 {
			pending = true
			continue
		}
		if pending {
			dst, pending = append(dst, '_'), false
		}
		dst = utf8.AppendRune(dst, r)
	}
	if len(dst) == begin {
		return appendUnnamed(dst, lang)
	}
	return dst
}

// trimmed is a name as Text makes it. Where that is not the name itself, it lies behind dst,
// where a rewritten name may be written that is no longer at any byte.
func trimmed(dst []byte, name string, limit int) ([]byte, string) {
	if isText(name, limit) {
		return dst, name
	}
	begin := len(dst)
	dst = appendText(dst, name, limit)
	return dst[:begin], stringOf(dst[begin:])
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
