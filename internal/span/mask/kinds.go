package mask

import "strings"

// kind is the kind of an identifier.
type kind uint8

const (
	noIdentifier kind = iota
	number
	uuid
	hexadecimal
	token
	date
	email
	ipv4
	ipv6
	queryValue
	kinds
)

// placeholders contains, for each kind, the text that replaces identifiers in a mask.
var placeholders = [kinds]string{
	number: "{id}", uuid: "{uuid}", hexadecimal: "{hex}", token: "{token}", date: "{date}",
	email: "{email}", ipv4: "{ip}", ipv6: "{ipv6}", queryValue: "{value}",
}

// hasPlaceholder reports whether text contains a placeholder.
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

// segmentKind returns the kind of a segment that is an identifier as a whole: an address, a time, or a signed token.
func segmentKind(text string) kind {
	isJWT := strings.HasPrefix(text, "eyJ") && len(text) > 40 && strings.Count(text, ".") == 2
	switch {
	case len(text) < len("a@b.c"):
		return noIdentifier
	case isEmail(text):
		return email
	case isDate(text):
		return date
	case isIPv4(text):
		return ipv4
	case isIPv6(text):
		return ipv6
	case isJWT:
		return token
	}
	return noIdentifier
}

// isEmail reports whether text is an e-mail address, with the @ as it is or URL-encoded.
func isEmail(text string) bool {
	name, host, found := strings.Cut(text, "@")
	if !found {
		name, host, found = strings.Cut(text, "%40")
	}
	if !found || name == "" || strings.IndexByte(host, '@') >= 0 || isImageScale(host) {
		return false
	}
	dot := strings.LastIndexByte(host, '.')
	return dot > 0 && len(host)-dot > 2 && isLetter(host[dot+1])
}

// isImageScale reports whether the text after an @ is the scale of an image, as in logo@2x.png.
func isImageScale(text string) bool {
	digits := runLength(text, 0, isDigit)
	if digits > 0 && digits+1 < len(text) && text[digits] == '.' {
		digits += 1 + runLength(text, digits+1, isDigit)
	}
	rest := text[digits:]
	return digits > 0 && len(rest) > 1 && rest[0] == 'x' && !isLetter(rest[1]) && !isDigit(rest[1])
}

// isIPv4 reports whether text, which is not empty, is an IPv4 address with or without a port.
func isIPv4(text string) bool {
	if !isDigit(text[0]) || len(text) > len("255.255.255.255:65535") {
		return false
	}
	numbers, digits := 1, 0 // numbers, and digits of the current number; the fifth number is the port
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

// isIPv6 reports whether text is an IPv6 address: eight groups of hexadecimal digits, or fewer with one "::". Names
// like Db::Add have no identifierBytes and are never passed to it.
func isIPv6(text string) bool {
	if len(text) > len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") {
		return false
	}
	colons, digits := 0, 0 // colons, and digits of the current group
	for i := range len(text) {
		switch c := text[i]; {
		case isHex(c) && digits < 4:
			digits++
		case c == ':':
			colons++
			digits = 0
		default:
			return false
		}
	}
	return colons == 7 || colons >= 2 && colons < 7 && strings.Count(text, "::") == 1
}

// isDate reports whether text is a date with or without a time: 2024-05-17, 2024-05-17T10:00Z.
func isDate(text string) bool {
	const layout = "0000-00-00"
	day, clock := text, ""
	if len(text) > len(layout) {
		day, clock = text[:len(layout)], text[len(layout):]
	}
	if len(day) < len(layout) || len(text) > 40 || clock != "" && clock[0]|0x20 != 't' {
		return false
	}
	for i := range len(day) {
		isDash := layout[i] == '-'
		if isDash != (day[i] == '-') || !isDash && !isDigit(day[i]) {
			return false
		}
	}
	for i := 1; i < len(clock); i++ {
		if !isDigit(clock[i]) && strings.IndexByte(":.-+Zz%", clock[i]) < 0 {
			return false
		}
	}
	isPlausible := day[5] <= '1' && day[8] <= '3' // first digits of month and day
	return isPlausible
}

const uuidLength = len("00000000-0000-0000-0000-000000000000")

func isUUID(text string) bool {
	if len(text) != uuidLength {
		return false
	}
	for i := range uuidLength {
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
