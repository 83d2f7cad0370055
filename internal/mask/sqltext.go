package mask

import "strings"

func spaces(text string, at int) int { return at + run(text, at, isSpace) }

// isNameByte says whether a byte may be in the middle of a name.
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 }

func nameEnd(text string, at int) int { return at + run(text, at, isNameByte) }

// digitsEnd is where digits and dots end.
func digitsEnd(text string, from int) int {
	return from + run(text, from, func(c byte) bool { return isDigit(c) || c == '.' })
}

// numberEnd is where a number ends: 17, 1.5e-3, 0x1f, 15ms. It is where it begins where a name
// goes on behind it, as of a table: 2024_orders.
func numberEnd(text string, from int) int {
	at := digitsEnd(text, from)
	if at == from+1 && at < len(text) && text[from] == '0' && strings.IndexByte("xXbBoO", text[at]) >= 0 {
		at++
		at += run(text, at, isHex)
	}
	at = exponentEnd(text, at)
	for most := at + 2; at < most && at < len(text) && isLetter(text[at]); at++ { // of a unit
	}
	if at < len(text) && isNameByte(text[at]) {
		return from
	}
	return at
}

// exponentEnd is where the exponent of a number ends that may begin here.
func exponentEnd(text string, at int) int {
	if at == len(text) || text[at]|0x20 != 'e' {
		return at
	}
	digits := at + 1
	if digits < len(text) && (text[digits] == '-' || text[digits] == '+') {
		digits++
	}
	if n := run(text, digits, isDigit); n > 0 {
		return digits + n
	}
	return at
}

// dollarEnd is where $$text$$ or $tag$text$tag$ ends. A parameter, $1, is no literal, nor is
// what stands within a name, as of Oracle's DR$I$K.
func dollarEnd(text string, at int) int {
	if at > 0 && (isNameByte(text[at-1]) || text[at-1] == '$' || text[at-1] == '?') {
		return at
	}
	tag := nameEnd(text, at+1)
	if tag == len(text) || text[tag] != '$' || isDigit(text[at+1]) {
		return at
	}
	quote := text[at : tag+1]
	return min(until(text, tag+1, quote)+len(quote), len(text))
}

// until is where an end begins, or the text's end.
func until(text string, at int, end string) int {
	if found := strings.Index(text[at:], end); found >= 0 {
		return at + found
	}
	return len(text)
}
