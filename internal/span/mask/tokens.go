package mask

import "strings"

// identifierKind returns the kind of identifier that the whole text is, such as a number or a UUID. It
// returns noIdentifier if text is not an identifier.
func identifierKind(text string) kind {
	if isUUID(text) {
		return uuid
	}
	if isBase64URL(text) {
		return token
	}
	k, prefixLength := wordKind(text)
	if prefixLength > 0 { // only the end of text is an identifier
		return noIdentifier
	}
	return k
}

// isBase64URL reports whether text looks like random bytes in URL-safe base64. Such a text is long, contains all
// kinds of characters of this encoding, and often changes between them.
func isBase64URL(text string) bool {
	const minLength = 20
	if len(text) < minLength {
		return false
	}
	s := statsOf(text)
	hasAllClasses := s.digits >= 1 && s.uppers >= 2 && s.lowers >= 2 && s.dashes >= 1
	if !hasAllClasses || s.others > 0 {
		return false
	}
	hasManyDashes := s.dashes > s.length/10 // like words separated by dashes
	return !hasManyDashes && s.changesOften() && !isWords(text)
}

// wordKind returns which kind of identifier a word is, for example a number or a hash, or noIdentifier. If
// only the digits at its end are the identifier, as in R123456789, prefixLength is the number of letters
// before them. If the whole word is the identifier, prefixLength is 0.
func wordKind(text string) (k kind, prefixLength int) {
	if !hasDigit(text) {
		return noIdentifier, 0
	}
	s := statsOf(text)
	isAlphanumeric := s.others == 0 && s.dashes == 0
	if !isAlphanumeric {
		return noIdentifier, 0
	}
	const minDigits = 5 // of a number after letters
	endsWithDigit := isDigit(text[len(text)-1])
	isLettersThenDigits := endsWithDigit && s.digitBoundaries == 1 // the only boundary is before the number
	switch {
	case s.digits == s.length:
		return number, 0
	case s.isHex():
		return hexadecimal, 0
	case s.isToken() && !isVersion(text) && !isWords(text):
		return token, 0
	case isLettersThenDigits && s.digits >= minDigits:
		return number, s.length - s.digits
	}
	return noIdentifier, 0
}

func hasDigit(text string) bool {
	for i := range len(text) {
		if isDigit(text[i]) {
			return true
		}
	}
	return false
}

// stats counts the bytes of a text, and pairs of neighboring bytes, by character class.
type stats struct {
	length                                 int
	digits, uppers, lowers, dashes, others int // dashes include underscores
	hexLetters                             int // letters that are hexadecimal digits
	digitBoundaries                        int // neighboring pairs of a digit and another byte
	changes                                int // pairs that differ in class: digit, upper case, lower case, other
	upperPairs                             int // pairs of upper-case letters
}

func statsOf(text string) (s stats) {
	s.length = len(text)
	for i := range len(text) {
		c := text[i]
		switch {
		case isDigit(c):
			s.digits++
		case isUpper(c):
			s.uppers++
		case isLower(c):
			s.lowers++
		case c == '-' || c == '_':
			s.dashes++
		default:
			s.others++
		}
		if isHex(text[i]) && !isDigit(text[i]) {
			s.hexLetters++
		}
		if i > 0 {
			s.addPair(text[i-1], text[i])
		}
	}
	return s
}

// addPair counts a pair of neighboring bytes.
func (s *stats) addPair(first, second byte) {
	isDigitBoundary := isDigit(first) != isDigit(second)
	changesCase := isUpper(first) != isUpper(second) || isLower(first) != isLower(second)
	switch {
	case isDigitBoundary:
		s.digitBoundaries++
		s.changes++
	case changesCase:
		s.changes++
	case isUpper(first): // and so is second
		s.upperPairs++
	}
}

// isHex reports whether the text looks like a hexadecimal number, for example a hash.
func (s *stats) isHex() bool {
	hasOtherBytes := s.digits+s.hexLetters < s.length
	hasMixedCase := s.uppers > 0 && s.lowers > 0
	if hasOtherBytes || hasMixedCase {
		return false
	}
	isLong := s.length >= 16
	// A shorter text must not be a word before a number, like cafe2024, in which digits begin only once.
	isMixed := s.length >= 6 && s.digits >= 2 && s.digitBoundaries >= 2
	return isLong || isMixed
}

// isToken reports whether the text mixes letters and digits as random text does.
func (s *stats) isToken() bool {
	isLongMix := s.length >= 20 && s.digits > 1 && s.digitBoundaries > 1
	isMixOfCases := s.length >= 8 && s.uppers > 0 && s.lowers > 0 && s.changesOften()
	isMixOfCapitals := s.length >= 8 && s.lowers == 0 && s.digitBoundaries > 1
	isShortMix := s.length >= 6 && s.digits > 1 && s.digitBoundaries >= 3
	return isLongMix || isMixOfCases || isMixOfCapitals || isShortMix
}

// changesOften reports whether at least 40 % of the bytes of the text differ in class from their predecessor, as in
// random text.
func (s *stats) changesOften() bool { return s.changes*5 >= 2*s.length }

// isVersion reports whether text is a version like v2beta1.
func isVersion(text string) bool { return text[0]|0x20 == 'v' && isDigit(text[1]) && len(text) < 10 }

// isWords reports whether text consists of words and short numbers, like the names
// createOAuth2ClientV1, UTF8ToUTF16 and i18nToL10n. Each word must be plausible after the word before it. At
// least half of the letters must be in words with a vowel, unlike in random text. This comparison ignores acronyms
// and words with a number, because they often have no vowel.
func isWords(text string) bool {
	lettersWithVowel := 0 // letters of words that contain a vowel
	lettersWithoutVowel := 0
	var previous word // empty at the start of the text and after a separator
	position := 0
	for position < len(text) {
		w := wordAt(text, position)
		if !w.isPlausibleAfter(previous) {
			return false
		}
		isAcronym := w.lowers == 0 // it consists of capital letters
		switch {
		case isAcronym || w.digits > 0: // ignored
		case hasVowel(w.letters):
			lettersWithVowel += len(w.letters)
		default:
			lettersWithoutVowel += len(w.letters)
		}
		previous = w
		position += len(w.letters) + w.digits
		if w.isBeforeSeparator {
			previous = word{}
			position++ // skip the separator
		}
	}
	return lettersWithVowel > 0 && lettersWithVowel >= lettersWithoutVowel
}

// word is a run of capital letters, then lower-case letters, then digits. Each run may be empty.
type word struct {
	letters          string
	capitals, lowers int // letters of each case
	digits           int

	// a dash, an underscore or the end of the text follows
	isBeforeSeparator bool
}

func wordAt(text string, from int) word {
	capitals := runLength(text, from, isUpper)
	lowers := runLength(text, from+capitals, isLower)
	lettersEnd := from + capitals + lowers
	digits := runLength(text, lettersEnd, isDigit)
	end := lettersEnd + digits
	isBeforeSeparator := end == len(text) || text[end] == '-' || text[end] == '_'
	return word{text[from:lettersEnd], capitals, lowers, digits, isBeforeSeparator}
}

// isPlausibleAfter reports whether a name can contain w directly after the word previous, such as To after UTF8 in
// UTF8ToUTF16. If w is the first word, or follows a separator, previous is the zero value.
func (w *word) isPlausibleAfter(previous word) bool {
	const (
		maxCapitals = 5 // as in HTTPS
		maxDigits   = 4 // as in a year
	)
	if w.letters == "" || w.capitals > maxCapitals || w.digits > maxDigits {
		return false
	}
	if previous.digits > 0 {
		return w.isPlausibleAfterNumber(previous.letters)
	}
	return w.isPlausible()
}

// isPlausibleAfterNumber reports whether a name can contain w directly after a number, like Client in OAuth2Client.
// lettersBefore are the letters before the number, here OAuth.
func (w *word) isPlausibleAfterNumber(lettersBefore string) bool {
	isAfterSingleLetter := len(lettersBefore) == 1
	if isAfterSingleLetter && w.endsAbbreviation() { // like n in i18n
		return true
	}
	isLowerCase := w.capitals == 0
	if isLowerCase {
		return isVersionSuffix(w.letters) // like beta in v1beta1
	}
	return w.isPlausible()
}

// endsAbbreviation reports whether w can begin with the last letter of an abbreviation like i18n or B2B. It assumes
// that a single letter and a number precede w.
func (w *word) endsAbbreviation() bool {
	isLowerCase := w.capitals == 0
	switch {
	case w.isSingleLetter() && isLowerCase: // like n in i18n
		return true
	case w.isSingleLetter(): // like the last letter of B2B
		return w.isBeforeSeparator
	}
	isBeforeWord := w.capitals == 2 // like the first letter of BClient in B2BClient
	return isBeforeWord
}

func (w *word) isSingleLetter() bool { return len(w.letters) == 1 && w.digits == 0 }

// isPlausible reports whether w looks like a word or acronym, such as Open, UTF8 or URLs. It returns false for random
// text like X, Xz and XYz.
func (w *word) isPlausible() bool {
	isCapitalizedPair := w.capitals == 1 && w.lowers == 1 && w.digits == 0
	endsWithFewLowers := w.lowers == 1 || w.lowers == 2
	switch {
	case w.isSingleLetter():
		return false
	case isCapitalizedPair:
		return hasVowel(w.letters) // true for To, false for Xz
	case w.capitals > 1 && endsWithFewLowers:
		return isAcronym(w.letters) // true for URLs, false for XYz
	}
	return true
}

// isVersionSuffix reports whether letters can follow the number of a version, as in v1beta1 and log4j.
func isVersionSuffix(letters string) bool {
	return letters == "alpha" || letters == "beta" || letters == "rc" || letters == "j"
}

// isAcronym reports whether capital letters with one or two lower-case letters are the acronym IPv, the plural of an
// acronym like URLs, or an acronym before "To", like XMLTo.
func isAcronym(letters string) bool {
	secondToLast, last := letters[len(letters)-2], letters[len(letters)-1]
	isPlural := isUpper(secondToLast) && last == 's'
	endsInTo := secondToLast == 'T' && last == 'o'
	return letters == "IPv" || isPlural || endsInTo
}

func hasVowel(text string) bool { return strings.ContainsAny(text, "aeiouyAEIOUY") }

// runLength returns the number of consecutive bytes of a class that start at text[from].
func runLength(text string, from int, isInClass func(byte) bool) int {
	to := from
	for to < len(text) && isInClass(text[to]) {
		to++
	}
	return to - from
}

// isScrambled reports whether text consists of at least ten letters that change between upper and lower case more
// often than in a name like getUserAccount.
func isScrambled(text string) bool {
	s := statsOf(text)
	isOnlyLetters := s.uppers+s.lowers == len(text)
	changesCaseOften := s.changes >= 4 && s.changes*3 >= len(text)
	return len(text) >= 10 && isOnlyLetters && s.upperPairs > 0 && changesCaseOften
}

// isPodSuffix reports whether text can be the random suffix that Kubernetes appends to the names of pods, like x7k2p.
func isPodSuffix(text string) bool {
	const length = 5
	const alphabet = "bcdfghjklmnpqrstvwxz2456789" // as in k8s.io/apimachinery/pkg/util/rand
	if len(text) != length {
		return false
	}
	for i := range length {
		if strings.IndexByte(alphabet, text[i]) < 0 {
			return false
		}
	}
	return true
}
