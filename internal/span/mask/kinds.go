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
	for i := range len(text) {
		if text[i] != '{' {
			continue
		}
		for _, placeholder := range placeholders[number:] {
			if strings.HasPrefix(text[i:], placeholder) {
				return true
			}
		}
	}
	return false
}

// segmentKind returns the kind of identifier that text is, a segment between separators such as slashes:
// an e-mail address, a date, an IP address, or a JSON Web Token. It returns noIdentifier if text is none
// of them, or only contains one.
func segmentKind(text string) kind {
	const minLength = len("a@b.c")
	if len(text) < minLength {
		return noIdentifier
	}
	switch {
	case isEmail(text):
		return email
	case isDate(text):
		return date
	case isIPv4(text):
		return ipv4
	case isIPv6(text):
		return ipv6
	case isJWT(text):
		return token
	}
	return noIdentifier
}

// isJWT reports whether text is a JSON Web Token: three parts in base64 with dots between them. The first
// part is a JSON object, so it begins with the encoding of {".
func isJWT(text string) bool {
	const encodedStart = "eyJ"
	const minLength = 41
	return len(text) >= minLength && strings.HasPrefix(text, encodedStart) && strings.Count(text, ".") == 2
}

// isEmail reports whether text is an e-mail address. The @ may be URL-encoded as %40.
func isEmail(text string) bool {
	name, host, found := strings.Cut(text, "@")
	if !found {
		name, host, found = strings.Cut(text, "%40")
	}
	hasNameAndHost := found && name != "" && strings.IndexByte(host, '@') < 0
	if !hasNameAndHost || isImageScale(host) {
		return false
	}
	lastDot := strings.LastIndexByte(host, '.')
	if lastDot <= 0 {
		return false
	}
	topLevelDomain := host[lastDot+1:]
	return len(topLevelDomain) >= 2 && isLetter(topLevelDomain[0])
}

// isImageScale reports whether the text after an @ is the scale of an image, as in logo@2x.png.
func isImageScale(text string) bool {
	numberEnd := runLength(text, 0, isDigit)
	if numberEnd == 0 {
		return false
	}
	hasFraction := numberEnd+1 < len(text) && text[numberEnd] == '.'
	if hasFraction {
		numberEnd += len(".") + runLength(text, numberEnd+1, isDigit)
	}
	suffix := text[numberEnd:]
	if len(suffix) < 2 || suffix[0] != 'x' {
		return false
	}
	continuesWord := isLetter(suffix[1]) || isDigit(suffix[1])
	return !continuesWord
}

// isIPv4 reports whether text is an IPv4 address with or without a port.
func isIPv4(text string) bool {
	const maxLength = len("255.255.255.255:65535")
	beginsWithDigit := text != "" && isDigit(text[0])
	if !beginsWithDigit || len(text) > maxLength {
		return false
	}
	address, port, hasPort := strings.Cut(text, ":")
	if hasPort && !isDecimal(port) {
		return false
	}
	octets := 0
	for octet := range strings.SplitSeq(address, ".") {
		if !isDecimal(octet) || len(octet) > len("255") {
			return false
		}
		octets++
	}
	return octets == 4
}

// isDecimal reports whether text consists of one or more decimal digits.
func isDecimal(text string) bool { return text != "" && runLength(text, 0, isDigit) == len(text) }

// isIPv6 reports whether text is an IPv6 address: eight groups of hexadecimal digits, or fewer with one
// "::". It also returns true for a name like Db::Add, so the caller must check that text contains a
// digit.
func isIPv6(text string) bool {
	if len(text) > len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") {
		return false
	}
	const maxColons, maxGroupDigits = 7, 4
	colons := 0
	groupDigits := 0 // digits of the current group
	for i := range len(text) {
		c := text[i]
		switch {
		case isHex(c) && groupDigits < maxGroupDigits:
			groupDigits++
		case c == ':':
			colons++
			groupDigits = 0
		default:
			return false
		}
	}
	isComplete := colons == maxColons
	isAbbreviated := colons < maxColons && strings.Count(text, "::") == 1
	return isComplete || isAbbreviated
}

// isDate reports whether text is a date with or without a time: 2024-05-17, 2024-05-17T10:00Z.
func isDate(text string) bool {
	const layout = "0000-00-00"
	const maxLength = 40
	if len(text) < len(layout) || len(text) > maxLength {
		return false
	}
	date, time := text[:len(layout)], text[len(layout):]
	if !hasLayout(date, layout, isDigit) || !isTimeSuffix(time) {
		return false
	}
	month, day := date[len("0000-"):], date[len("0000-00-"):]
	return month[0] <= '1' && day[0] <= '3'
}

// isTimeSuffix reports whether text can follow a date: it is empty, or a time with or without a zone, like T10:00Z.
func isTimeSuffix(text string) bool {
	if text == "" {
		return true
	}
	if text[0] != 'T' && text[0] != 't' {
		return false
	}
	for i := 1; i < len(text); i++ {
		if !isDigit(text[i]) && strings.IndexByte(":.-+Zz%", text[i]) < 0 {
			return false
		}
	}
	return true
}

const (
	uuidLayout = "00000000-0000-0000-0000-000000000000"
	uuidLength = len(uuidLayout)
)

func isUUID(text string) bool { return hasLayout(text, uuidLayout, isHex) }

// hasLayout reports whether text has the same form as layout, for example 0000-00-00: dashes at the
// same positions, and at all others bytes that isAllowed accepts.
func hasLayout(text, layout string, isAllowed func(byte) bool) bool {
	if len(text) != len(layout) {
		return false
	}
	for i := range len(layout) {
		isDashExpected := layout[i] == '-'
		if isDashExpected && text[i] != '-' {
			return false
		}
		if !isDashExpected && !isAllowed(text[i]) {
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
