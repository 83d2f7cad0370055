package mask

import "strings"

// tokenKind is the kind of a text that is one identifier, dashes and all.
func tokenKind(text string) kind {
	if isUUID(text) {
		return uuid
	}
	if k, skip := leafKind(text); k != words && skip == 0 {
		return k
	}
	if len(text) < 20 {
		return words
	}
	l := look(text)
	if l.others == 0 && l.dashes > 0 && l.dashes*10 <= len(text) && l.digits > 0 &&
		l.uppers > 1 && l.lowers > 1 && l.changes*5 >= 2*len(text) && !isWords(text) {
		return token // base64 of URLs
	}
	return words
}

// leafKind is the kind of letters and digits, and how many letters before a long number are a
// name: R123456789.
func leafKind(text string) (k kind, skip int) {
	if !hasDigit(text) {
		return words, 0
	}
	l := look(text)
	switch {
	case l.others+l.dashes > 0:
		return words, 0
	case l.digits == len(text):
		return number, 0
	case l.isHex(len(text)):
		return hexadecimal, 0
	case l.isToken(len(text)) && !isVersion(text) && !isWords(text):
		return token, 0
	case l.digits >= 5 && l.borders == 1 && isDigit(text[len(text)-1]):
		return number, len(text) - l.digits
	}
	return words, 0
}

func hasDigit(text string) bool {
	for i := range len(text) {
		if isDigit(text[i]) {
			return true
		}
	}
	return false
}

// looks is what a text looks like.
type looks struct {
	digits, uppers, lowers, dashes, others int // bytes
	hex                                    int // letters that are hexadecimal digits
	borders                                int // between letters and digits
	changes                                int // between digits, upper and lower case
	pairs                                  int // of neighbouring capitals
}

func look(text string) (l looks) {
	for i := range len(text) {
		switch c := text[i]; {
		case isDigit(c):
			l.digits++
		case isUpper(c):
			l.uppers++
		case isLower(c):
			l.lowers++
		case c == '-' || c == '_':
			l.dashes++
		default:
			l.others++
		}
		if isHex(text[i]) && !isDigit(text[i]) {
			l.hex++
		}
		if i > 0 {
			l.neighbours(text[i-1], text[i])
		}
	}
	return l
}

func (l *looks) neighbours(a, b byte) {
	switch {
	case isDigit(a) != isDigit(b):
		l.borders++
		l.changes++
	case isUpper(a) && isUpper(b):
		l.pairs++
	case isUpper(a) != isUpper(b) || isLower(a) != isLower(b):
		l.changes++
	}
}

// isHex says whether it is a number of hexadecimal digits, as hashes are, and no word with
// a number behind it.
func (l *looks) isHex(length int) bool {
	if l.digits+l.hex < length || l.uppers > 0 && l.lowers > 0 {
		return false
	}
	return length >= 16 || length >= 6 && l.borders >= 2 && l.digits >= 2
}

// isToken says whether letters and digits alternate as they do in no word.
func (l *looks) isToken(length int) bool {
	switch {
	case length >= 20 && l.digits > 1 && l.borders > 1:
		return true
	case length >= 8 && l.uppers > 0 && l.lowers > 0 && l.changes*5 >= 2*length:
		return true
	case length >= 8 && l.lowers == 0 && l.borders > 1:
		return true
	}
	return length >= 6 && l.digits > 1 && l.borders >= 3
}

// isVersion says whether a text is one, as v2beta1 is.
func isVersion(text string) bool { return text[0]|0x20 == 'v' && isDigit(text[1]) && len(text) < 10 }

// isWords reports whether a text consists of words, some of which have a short number: GetUserV2,
// createOAuth2ClientV1, UTF8ToUTF16, i18nToL10n. Each word begins with a capital or after a dash, and
// most letters of words without a number are in words with a vowel. Random text rarely looks like that.
func isWords(text string) bool {
	voweled, odd := 0, 0                       // letters in words without a number
	isAfterNumber, isOneLetter := false, false // the previous word
	for at := 0; at < len(text); {
		capitals := run(text, at, isUpper)
		lowers := run(text, at+capitals, isLower)
		end := at + capitals + lowers
		digits := run(text, end, isDigit)
		isLast := end+digits == len(text) || text[end+digits] == '-' || text[end+digits] == '_'
		word := text[at:end]
		switch {
		case word == "", capitals > 5, digits > 4:
			return false
		case isAfterNumber && isOneLetter && len(word) == 1 && digits == 0 && (capitals == 0 || isLast):
			// the end of i18n or B2B
		case isAfterNumber && capitals == 0:
			if !continuesNumber(word) {
				return false
			}
		case len(word) == 1 && digits == 0:
			return false
		case isAfterNumber && isOneLetter && capitals == 2: // the end of B2B, then a word
		case capitals > 1 && lowers > 0 && lowers < 3 && !isAcronym(word):
			return false
		case digits == 0 && len(word) == 2 && lowers == 1 && !hasVowel(word):
			return false
		}
		switch {
		case digits > 0 || lowers == 0:
		case hasVowel(word):
			voweled += len(word)
		default:
			odd += len(word)
		}
		isAfterNumber, isOneLetter = digits > 0, len(word) == 1
		if at = end + digits; at < len(text) && isLast {
			at, isAfterNumber = at+1, false
		}
	}
	return voweled > 0 && voweled >= odd
}

// continuesNumber reports whether lower-case letters after a number belong to it: v1beta1, log4j.
func continuesNumber(word string) bool {
	return word == "alpha" || word == "beta" || word == "rc" || word == "j"
}

// isAcronym reports whether capitals with a lower-case letter are an acronym, alone or before "To": IPv,
// URLs, XMLTo.
func isAcronym(word string) bool {
	before, last := word[len(word)-2], word[len(word)-1]
	return word == "IPv" || isUpper(before) && last == 's' || before == 'T' && last == 'o'
}

func hasVowel(word string) bool { return strings.ContainsAny(word, "aeiouyAEIOUY") }

// run is how many bytes of a class there are from here on.
func run(text string, from int, is func(byte) bool) int {
	to := from
	for to < len(text) && is(text[to]) {
		to++
	}
	return to - from
}

// isScrambled says whether letters change their case as they do in few words made of several.
func isScrambled(text string) bool {
	l := look(text)
	return len(text) >= 10 && l.uppers+l.lowers == len(text) && l.pairs > 0 &&
		l.changes >= 4 && l.changes*3 >= len(text)
}

// isSuffix says whether a text is the random end that Kubernetes gives to names.
func isSuffix(text string) bool {
	if len(text) != 5 {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case !isLower(c) && !isDigit(c):
			return false
		case c == 'a', c == 'e', c == 'i', c == 'o', c == 'u', c == 'y', c == '0', c == '1', c == '3':
			return false
		}
	}
	return true
}
