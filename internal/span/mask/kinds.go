package mask

import "strings"

// kind is what a piece of text looks like.
type kind uint8

const (
	words kind = iota // no identifier
	number
	uuid
	hexadecimal
	token
	date
	email
	address4
	address6
	queryValue
	kinds
)

// placeholders are what stands for an identifier in a mask.
var placeholders = [kinds]string{
	number: "{id}", uuid: "{uuid}", hexadecimal: "{hex}", token: "{token}", date: "{date}",
	email: "{email}", address4: "{ip}", address6: "{ipv6}", queryValue: "{value}",
}

// hasPlaceholder says whether a placeholder stands in a text.
func hasPlaceholder(text string) bool {
	for {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return false
		}
		text = text[at:]
		for _, p := range placeholders[number:] {
			if strings.HasPrefix(text, p) {
				return true
			}
		}
		text = text[1:]
	}
}

// whole is the kind of a piece that is cut no further: an address, a time, a signed token.
func whole(text string) kind {
	switch {
	case len(text) < len("a@b.c"):
		return words
	case isEmail(text):
		return email
	case isDate(text):
		return date
	case isAddress4(text):
		return address4
	case isAddress6(text):
		return address6
	case strings.HasPrefix(text, "eyJ") && len(text) > 40 && strings.Count(text, ".") == 2:
		return token // of JSON, signed
	}
	return words
}

// isEmail says whether a piece is an address with its @ as it is, or as it is in a URL.
func isEmail(text string) bool {
	name, host, is := strings.Cut(text, "@")
	if !is {
		name, host, is = strings.Cut(text, "%40")
	}
	if !is || name == "" || strings.IndexByte(host, '@') >= 0 || isScale(host) {
		return false
	}
	dot := strings.LastIndexByte(host, '.')
	return dot > 0 && len(host)-dot > 2 && isLetter(host[dot+1])
}

// isScale reports whether a text after an @ is the scale of an image, as in logo@2x.png.
func isScale(text string) bool {
	digits := run(text, 0, isDigit)
	if digits > 0 && digits+1 < len(text) && text[digits] == '.' {
		digits += 1 + run(text, digits+1, isDigit)
	}
	rest := text[digits:]
	return digits > 0 && len(rest) > 1 && rest[0] == 'x' && !isLetter(rest[1]) && !isDigit(rest[1])
}

// isAddress4 says whether a piece is an IPv4 address, with a port or without.
func isAddress4(text string) bool {
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

// isAddress6 says whether a piece is an IPv6 address: groups of hexadecimal digits, all eight
// or with two colons for those left out. A class such as Db::Add has none of marks, and does not come
// here.
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
	if len(text) < len(day) || len(text) > 40 || len(text) > len(day) && text[len(day)]|0x20 != 't' {
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
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (text[i] == '-') || !isDash && !isHex(text[i]) {
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
func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
