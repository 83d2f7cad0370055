package template

// token is the kind of a stretch that is one identifier, dashes and all.
func token(text string) (kind, worth) {
	if text == "" {
		return fixed, 0
	}
	if isUUID(text) {
		return uuidFill, strong
	}
	l := look(text)
	if k, w, skip := l.leaf(text); k != fixed && skip == 0 {
		return k, w
	}
	if len(text) >= 20 && l.others == 0 && l.dashes > 0 && l.dashes*10 <= len(text) &&
		l.digits > 0 && l.uppers > 1 && l.lowers > 1 && l.changes*5 >= 2*len(text) && !isWords(text) {
		return tokenFill, strong // base64 of URLs
	}
	return fixed, 0
}

// leaf is the kind of a stretch of letters and digits, and how many letters before a long
// number are its name.
func leaf(text string) (k kind, w worth, skip int) {
	if text == "" {
		return fixed, 0, 0
	}
	l := look(text)
	return l.leaf(text)
}

// leaf is the same of a stretch that looks like this.
func (l *looks) leaf(text string) (k kind, w worth, skip int) {
	switch {
	case l.others+l.dashes > 0:
		return fixed, 0, 0
	case l.digits == len(text):
		return number, worthOfNumber(text), 0
	case l.isHex(len(text)):
		return hexFill, strong, 0
	case l.isToken(len(text)) && !isVersion(text) && !isWords(text):
		return tokenFill, l.worthOfToken(len(text)), 0
	case l.digits >= 5 && l.borders == 1 && isDigit(text[len(text)-1]):
		skip = len(text) - l.digits
		return number, worthOfNumber(text[skip:]), skip
	}
	return fixed, 0, 0
}

// worthOfNumber: status codes, years, plans and pages are names of routes too.
func worthOfNumber(digits string) worth {
	switch {
	case len(digits) >= 6:
		return strong
	case len(digits) == 4 && (digits[:2] == "19" || digits[:2] == "20"), len(digits) < 4:
		return weak
	}
	return fair
}

// isHex says whether it is a number of hexadecimal digits, as hashes are, and no word with
// a number behind it.
func (l *looks) isHex(length int) bool {
	if l.digits == 0 || l.digits+l.hex < length || l.uppers > 0 && l.lowers > 0 {
		return false
	}
	return length >= 16 || length >= 6 && l.borders >= 2 && l.digits >= 2
}

// isToken says whether letters and digits alternate as they do in no word.
func (l *looks) isToken(length int) bool {
	switch {
	case l.digits == 0:
		return false
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

// isWords says whether a text is words of which one has a short number behind it, each with a
// capital or behind a dash: GetUserV2, Users_createB2BOrder. A random one rarely looks so.
func isWords(text string) bool {
	hasNumber, isBehind := false, false // whether a number was there, and was the last
	for at := 0; at < len(text); {
		capitals := run(text, at, isUpper)
		letters := capitals + run(text, at+capitals, isLower)
		digits := run(text, at+letters, isDigit)
		switch {
		case letters == 0, capitals == 0 && (letters == 1 || isBehind):
			return false
		case capitals > 2, !isBehind && (capitals == 2 || letters == 1 && digits == 0):
			return false
		case digits > 3, digits > 0 && hasNumber:
			return false
		}
		at += letters + digits
		hasNumber, isBehind = hasNumber || digits > 0, digits > 0
		if at < len(text) && (text[at] == '-' || text[at] == '_') {
			at, isBehind = at+1, false
		}
	}
	return hasNumber
}

// run is how many bytes of a class there are from here on.
func run(text string, from int, is func(byte) bool) int {
	to := from
	for to < len(text) && is(text[to]) {
		to++
	}
	return to - from
}

// worthOfToken: log4j2 is a word.
func (l *looks) worthOfToken(length int) worth {
	if length < 10 && l.uppers == 0 {
		return fair
	}
	return strong
}

// isScrambled says whether letters change their case as they do in few words made of
// several.
func isScrambled(text string) bool {
	l := look(text)
	return len(text) >= 10 && l.uppers+l.lowers == len(text) && l.pairs > 0 && l.changes >= 4 && l.changes*3 >= len(text)
}

// prefix is how many bytes of an identifier say what it is of: cus_NffrFeUfNV2Hib. A random
// one that begins like this is none the less one.
func prefix(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '_' && i > 0:
			return i + 1
		case c < 'a' || c > 'z' || i == 8:
			return 0
		}
	}
	return 0
}

// isSuffix says whether a text is the random end that Kubernetes gives to names.
func isSuffix(text string) bool {
	if len(text) != 5 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && !isDigit(c) || isUpper(c) {
			return false
		}
		switch text[i] {
		case 'a', 'e', 'i', 'o', 'u', 'y', '0', '1', '3':
			return false
		}
	}
	return true
}
