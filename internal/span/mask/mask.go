// Package mask replaces the identifiers in a resource or an endpoint by placeholders: GET /users/17 becomes
// GET /users/{id}. If a name exceeds its cardinality budget, its spans are counted under the mask, which keeps
// most of the name.
//
// # Identifiers
//
// Only the form of a piece of text decides whether it is an identifier: numbers, UUIDs, hexadecimal digits, random
// tokens, dates, e-mail and network addresses, values of a URL query, and literals of an SQL statement are. Each
// kind has its own placeholder, so /items/{id} and /items/{uuid} remain different. A word is not an identifier,
// because the user name in /users/alice cannot be distinguished from the route /users/export. Names that programmers
// write are words, even if they contain several numbers: createOAuth2ClientV1, UTF8ToUTF16, logo@2x.png.
//
// The text between identifiers is kept byte by byte, so two texts have the same mask only if they differ in nothing
// but identifiers of the same kinds.
//
// # Properties
//
// A mask depends on the text only, and is idempotent: a text that contains a placeholder is not masked again, nor is
// a statement without literals. Text and mask are valid UTF-8. The functions are safe for concurrent use, take time
// linear in the length of the text, and allocate only if the caller's buffer must grow.
//
// # SQL
//
// The package has its own lexer, because DataDog/go-sqllexer does not have these properties. It allocates a lexer
// for each statement. Without knowing the database, it treats a backslash as an escape character in every literal,
// so that the literal 'C:\' includes the text after it, and later literals are not masked. And it splits the table
// name 2024_orders into a literal and a name, which gives different tables the same mask.
package mask

import "strings"

// maxText is the maximum length of a resource in the statistics. Longer texts are not masked.
const maxText = 5000

// Append appends text to dst with placeholders instead of identifiers, such as GET /users/{id} for GET
// /users/17. It appends nothing and returns false if text contains no identifier, or contains a placeholder
// already.
func Append(dst []byte, text string) (masked []byte, isMasked bool) {
	const minText = 2 // bytes
	if len(text) < minText || len(text) > maxText {
		return dst, false
	}
	if keyword, isStatement := statementKeyword(text); isStatement {
		return appendMaskedStatement(dst, text, keyword)
	}
	if hasPlaceholder(text) {
		return dst, false
	}
	m := masker{text: text, dst: dst, isPath: strings.IndexByte(text, '/') >= 0}
	m.maskText()
	endOfLastIdentifier := m.copied
	if endOfLastIdentifier == 0 { // there is none
		return dst, false
	}
	return append(m.dst, text[endOfLastIdentifier:]...), true
}

// A text that is not an SQL statement is split at three levels, because identifiers of one kind contain the
// separators of another: into segments, which can be an address or a time, then into parts, which can be a UUID,
// then into words. An identifier is not split further.
var (
	segmentSeparators = byteSet(" /?&=,;()[]{}\"'|#<>\\\t\n\r")
	partSeparators    = byteSet(":@+~!$*^`")
	wordSeparators    = byteSet(".-_")
)

// identifierBytes contains at least one byte of every identifier, except for UUIDs without digits and signed tokens.
// Those are long and contain dashes or dots.
var identifierBytes = byteSet("0123456789@%_")

func byteSet(bytes string) (set [256]bool) {
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	return set
}

// indexAnyOrEnd returns the index in text of the first byte of text[from:] that is in set. If there is none, it
// returns len(text).
func indexAnyOrEnd(text string, from int, set *[256]bool) int {
	for from < len(text) && !set[text[from]] {
		from++
	}
	return from
}

// masker masks a text that is not an SQL statement.
type masker struct {
	text   string
	dst    []byte
	copied int  // length of the part of text that dst already represents
	isPath bool // text contains a slash
}

// replace replaces text[from:to] by the placeholder of k. It first appends the text between the previous placeholder
// and from.
func (m *masker) replace(from, to int, k kind) {
	m.dst = append(m.dst, m.text[m.copied:from]...)
	m.dst = append(m.dst, placeholders[k]...)
	m.copied = to
}

// maskText masks the identifiers in all segments of the text, and the values of the URL query.
func (m *masker) maskText() {
	for from := 0; from < len(m.text); {
		isQuery := m.isPath && from > 0 && m.text[from-1] == '?'
		if isQuery {
			m.maskQuery(from)
			return
		}
		to := indexAnyOrEnd(m.text, from, &segmentSeparators)
		if to > from {
			m.maskSegment(from, to)
		}
		from = to + 1
	}
}

var querySeparators = byteSet("&# ")

// maskQuery masks all values of the URL query that starts at text[from].
func (m *masker) maskQuery(from int) {
	for from < len(m.text) {
		to := indexAnyOrEnd(m.text, from, &querySeparators)
		name, value, _ := strings.Cut(m.text[from:to], "=")
		if value != "" {
			m.replace(from+len(name)+len("="), to, queryValue)
		}
		endsQuery := to < len(m.text) && m.text[to] != '&'
		if endsQuery {
			return
		}
		from = to + 1
	}
}

// maskSegment masks the identifiers in text[from:to], which contains no segment separator.
func (m *masker) maskSegment(from, to int) {
	segment := m.text[from:to]
	isLong := len(segment) >= uuidLength
	mayLackIdentifierBytes := isLong && indexAnyOrEnd(segment, 0, &wordSeparators) < len(segment)
	hasIdentifierBytes := indexAnyOrEnd(segment, 0, &identifierBytes) < len(segment)
	if !hasIdentifierBytes && !mayLackIdentifierBytes {
		return // most segments end here
	}
	if k := segmentKind(segment); k != noIdentifier {
		m.replace(from, to, k)
		return
	}
	if strings.IndexByte(segment, '%') >= 0 {
		return // URL-encoded text
	}
	for ; from < to; from++ {
		partEnd := indexAnyOrEnd(m.text[:to], from, &partSeparators)
		m.maskPart(from, partEnd)
		from = partEnd
	}
}

// maskPart masks the identifiers in text[from:to], which contains no part separator.
func (m *masker) maskPart(from, to int) {
	part := m.text[from:to]
	switch {
	case part == "":
		return
	case runLength(part, 0, isDigit) == len(part):
		m.replace(from, to, number)
		return
	case isIPv4(part):
		m.replace(from, to, ipv4)
		return
	}
	isFileName := m.isPath && strings.IndexByte(part, '.') >= 0
	if isFileName {
		to = from + maskableLength(part) // keep the file extension
	}
	from += typePrefixLength(m.text[from:to]) // keep a prefix like cus_
	candidate := m.text[from:to]
	if k := identifierKind(candidate); k != noIdentifier {
		m.replace(from, to, k)
		return
	}
	hasTypePrefix := from > 0 && m.text[from-1] == '_'
	if hasTypePrefix && isScrambled(candidate) {
		m.replace(from, to, token)
		return
	}
	m.maskWords(from, to)
}

// typePrefixLength returns the length of a prefix that names the type of an identifier, like "cus_" in
// cus_NffrFeUfNV2Hib and "cs_test_" in cs_test_a1B2. A prefix consists of one or two short lower-case
// words. If there is none, the result is 0.
func typePrefixLength(text string) (length int) {
	const maxWords, maxWordLength = 2, 8
	for range maxWords {
		wordEnd := length + runLength(text, length, isLower)
		wordLength := wordEnd - length
		isShortWord := wordLength > 0 && wordLength <= maxWordLength
		isBeforeUnderscore := wordEnd < len(text) && text[wordEnd] == '_'
		if !isShortWord || !isBeforeUnderscore {
			break
		}
		length = wordEnd + 1
	}
	return length
}

// maskableLength returns how many bytes of a file name can be masked: those before the extension for 17.jpg
// and 1234567-small.jpg, but all of logs.3f2a9c1b5d7e, which ends with a long identifier. It returns 0 for
// names of static files, such as main.3f2a9c1b.js.
func maskableLength(name string) int {
	const longIdentifier = 12
	afterLastDot := name[strings.LastIndexByte(name, '.')+1:]
	endsWithLongIdentifier := len(afterLastDot) >= longIdentifier && identifierKind(afterLastDot) != noIdentifier
	if endsWithLongIdentifier {
		return len(name)
	}
	stem, extensions, _ := strings.Cut(name, ".") // at the first dot: all of tar.gz is cut off
	if !areExtensions(extensions) {
		return 0
	}
	if identifierKind(stem) != noIdentifier || beginsWithLongIdentifier(stem) {
		return len(stem)
	}
	return 0
}

// beginsWithLongIdentifier reports whether the first word of text is an identifier of a length that is rare in
// the names of static files.
func beginsWithLongIdentifier(text string) bool {
	const minNumberLength, minTokenLength = 6, 10
	firstWordEnd := indexAnyOrEnd(text, 0, &wordSeparators)
	firstWord := text[:firstWordEnd]
	k, _ := wordKind(firstWord)
	switch k {
	case hexadecimal:
		return true
	case number:
		return len(firstWord) >= minNumberLength
	case token:
		return len(firstWord) >= minTokenLength
	}
	return false
}

// areExtensions reports whether text can be a file extension, or several like tar.gz.
func areExtensions(text string) bool {
	const maxLength = 16
	beginsWithLetter := text != "" && isLetter(text[0])
	if !beginsWithLetter || len(text) > maxLength {
		return false
	}
	for i := range len(text) {
		if !isLetter(text[i]) && !isDigit(text[i]) && text[i] != '.' {
			return false
		}
	}
	return true
}

// maskWords masks the words of text[from:to] that are identifiers, and UUIDs between words.
func (m *masker) maskWords(from, to int) {
	isAfterIdentifier := false
	for ; from < to; from++ {
		uuidEnd := from + uuidLength
		beginsWithUUID := uuidEnd <= to && isUUID(m.text[from:uuidEnd])
		if beginsWithUUID {
			m.replace(from, uuidEnd, uuid)
			from = uuidEnd
			isAfterIdentifier = true
			continue
		}
		wordEnd := indexAnyOrEnd(m.text[:to], from, &wordSeparators)
		word := m.text[from:wordEnd]
		k, nameLength := wordKind(word)
		isLastWord := wordEnd == to
		canBePodSuffix := isAfterIdentifier && isLastWord // like x7k2p in shop-6c8d9f7b54-x7k2p
		if k == noIdentifier && canBePodSuffix && isPodSuffix(word) {
			k = token
		}
		isIdentifier := k != noIdentifier
		if isIdentifier {
			m.replace(from+nameLength, wordEnd, k)
		}
		isAfterIdentifier = isIdentifier
		from = wordEnd
	}
}
