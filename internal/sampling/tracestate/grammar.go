package tracestate

import "bytes"

// The limits of a tracestate, those of W3C and of OpenTelemetry's entry in it.
const (
	maxBytes   = 1024
	maxMembers = 32
	maxValue   = 256
)

// isKey says whether a key is one of W3C's: a name, or a name at a system's.
func isKey(key []byte) bool {
	tenant, system, hasSystem := bytes.Cut(key, []byte{'@'})
	if !hasSystem {
		return isName(key, 256)
	}
	isTenant := len(tenant) > 0 && len(tenant) <= 241 && !isMark(tenant[0]) && areAll(tenant, isOfKey)
	return isTenant && isName(system, 14)
}

func isName(name []byte, most int) bool {
	return len(name) > 0 && len(name) <= most && isLower(name[0]) && areAll(name, isOfKey)
}

func isValue(value []byte) bool {
	return len(value) > 0 && len(value) <= maxValue &&
		areAll(value, func(c byte) bool { return ' ' <= c && c <= '~' && c != ',' && c != '=' })
}

// isSubkey says whether a key is one of OpenTelemetry's entry.
func isSubkey(key []byte) bool {
	return len(key) > 0 && isLower(key[0]) &&
		areAll(key, func(c byte) bool { return isLower(c) || isDigit(c) })
}

// isSaid says whether a value is one of OpenTelemetry's entry.
func isSaid(said []byte) bool {
	return areAll(said, func(c byte) bool {
		return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isMark(c byte) bool  { return c == '_' || c == '-' || c == '*' || c == '/' }

func isOfKey(c byte) bool { return isLower(c) || isDigit(c) || isMark(c) }

func areAll(text []byte, is func(byte) bool) bool {
	for _, c := range text {
		if !is(c) {
			return false
		}
	}
	return true
}
