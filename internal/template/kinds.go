package template

import (
	"slices"
	"strings"
)

// kind is what a fill looks like. Fills of two kinds are never one template's.
type kind uint8

const (
	fixed kind = iota // no fill
	number
	uuidFill
	hexFill
	tokenFill
	dateFill
	emailFill
	addressFill
	address6Fill
	queryValue
	literals // of a statement, all together
	kinds
)

// placeholders are what stands for a fill in a name.
var placeholders = [kinds]string{
	number: "{id}", uuidFill: "{uuid}", hexFill: "{hex}", tokenFill: "{token}", dateFill: "{date}",
	emailFill: "{email}", addressFill: "{ip}", address6Fill: "{ipv6}", queryValue: "{value}",
}

// isPlaceholder says whether a text is one of them.
func isPlaceholder(text string) bool {
	return text[0] == '{' && slices.Contains(placeholders[number:literals], text)
}

// worth is how much one fill tells about its blank.
type worth uint8

const (
	weak   worth = iota + 1 // routes are named so: 404, 2024
	fair                    // a few may be
	strong                  // nobody names routes so
)

// whole is the kind of a piece that is cut no further: an address, a time, a signed token.
func whole(text string, has marks) (kind, worth) {
	switch {
	case len(text) < len("a@b.c"):
		return fixed, 0
	case has&hasAt != 0 && isEmail(text):
		return emailFill, strong
	case isDate(text):
		return dateFill, fair
	case isAddress(text):
		return addressFill, strong
	case has&hasDigit != 0 && isAddress6(text): // or it is a class: Db::Add
		return address6Fill, strong
	case strings.HasPrefix(text, "eyJ") && len(text) > 40 && strings.Count(text, ".") == 2:
		return tokenFill, strong
	}
	return fixed, 0
}

// isEmail says whether a piece is one, with its @ as it is or as in a URL.
func isEmail(text string) bool {
	name, host, is := strings.Cut(text, "@")
	if !is {
		name, host, is = strings.Cut(text, "%40")
	}
	if !is || name == "" || strings.IndexByte(host, '@') >= 0 {
		return false
	}
	dot := strings.LastIndexByte(host, '.')
	return dot > 0 && len(host)-dot > 2 && isLetter(host[dot+1])
}

// isAddress says whether a piece is an IPv4 address, with a port or without.
func isAddress(text string) bool {
	if !isDigit(text[0]) || len(text) > len("255.255.255.255:65535") {
		return false
	}
	numbers, digits := 1, 0
	for i := range len(text) {
		switch c := text[i]; {
		case isDigit(c) && digits < 3 || isDigit(c) && numbers == 5:
			digits++
		case digits > 0 && (c == '.' && numbers < 4 || c == ':' && numbers == 4):
			numbers++
			digits = 0
		default:
			return false
		}
	}
	return numbers >= 4 && digits > 0
}

// isAddress6 says whether a piece is an IPv6 address: groups of hexadecimal digits, all
// eight or with two colons for those left out.
func isAddress6(text string) bool {
	if len(text) > len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") {
		return false
	}
	colons, group := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case isHex(c) && group < 4:
			group++
		case c == ':':
			colons++
			group = 0
		default:
			return false
		}
	}
	return colons == 7 || colons >= 2 && colons < 7 && strings.Count(text, "::") == 1
}

// isDate says whether a piece is a day, or a moment of one: 2024-05-17, 2024-05-17T10:00Z.
func isDate(text string) bool {
	const day = "0000-00-00"
	if len(text) < len(day) || len(text) > 40 || len(text) > len(day) && text[len(day)] != 'T' && text[len(day)] != 't' {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case i < len(day) && (day[i] == '-') != (c == '-'), i < len(day) && c != '-' && !isDigit(c):
			return false
		case i > len(day) && !isDigit(c) && strings.IndexByte(":.-+Zz%", c) < 0:
			return false
		}
	}
	return text[5] <= '1' && text[8] <= '3'
}

const uuidBytes = len("00000000-0000-0000-0000-000000000000")

func isUUID(text string) bool {
	if len(text) != uuidBytes {
		return false
	}
	for i := range uuidBytes {
		if isDash := i == 8 || i == 13 || i == 18 || i == 23; isDash != (text[i] == '-') || !isDash && !isHex(text[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
