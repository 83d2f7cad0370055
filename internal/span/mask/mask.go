// Package mask replaces the identifiers in a resource or an endpoint by placeholders: of
// GET /users/17 it makes GET /users/{id}. So spans whose name would be lost, because a budget
// is used up, keep most of it.
//
// # What is an identifier
//
// What a piece of text looks like decides, and nothing else: a number, a UUID, hexadecimal
// digits, a random token, a date, an e-mail or network address, the value of a query, a
// literal of an SQL statement. Each kind has a placeholder of its own, so /items/{id} and
// /items/{uuid} stay two. Words are no identifiers, whatever they say: nothing tells a user's
// name in /users/alice from the route /users/export. Names that programmers write stay words, however
// many numbers they contain: createOAuth2ClientV1, UTF8ToUTF16, logo@2x.png.
//
// What stands around identifiers is kept byte by byte, so two texts have one mask only if
// they differ in nothing but identifiers of the same kinds.
//
// # Properties
//
// A mask is a function of the text: it remembers nothing, and is safe for any goroutine. It is
// idempotent: a text with a placeholder in it is a mask already, and a statement without
// literals has none to replace. The text is valid UTF-8, as labels are once they are mended,
// and so is the mask. The work is linear in the text's bytes. Nothing is allocated but what
// the caller's buffer needs to grow.
//
// # SQL
//
// The lexer is our own because DataDog/go-sqllexer can't keep these properties. It allocates
// a lexer for each statement and can't use it again. It has to be told the database: where it
// isn't, it takes a backslash for an escape in every literal, so that 'C:\' swallows what
// follows and later literals show, and it cuts the table 2024_orders into a literal and a name,
// which makes one mask of two tables.
package mask

import "strings"

// maxText is the longest resource that statistics have. A longer text has no mask.
const maxText = 5000

// Append appends the mask of a text. It reports false, and appends nothing, where the text has
// no identifier or is a mask already.
func Append(dst []byte, text string) (masked []byte, ok bool) {
	if len(text) < 2 || len(text) > maxText {
		return dst, false
	}
	if word := statementWord(text); word != "" {
		if masked, ok = appendStatement(dst, text, word); ok {
			return masked, true
		}
		if hasWord(withoutComment(text), word) {
			return dst, false // a statement without literals, or one whose literals nobody can tell
		}
	}
	if hasPlaceholder(text) {
		return dst, false
	}
	m := masker{text: text, dst: dst, isPath: strings.IndexByte(text, '/') >= 0}
	m.pieces()
	if m.copied == 0 {
		return dst, false
	}
	return append(m.dst, text[m.copied:]...), true
}

// A text that is no statement is cut three times, since identifiers of one kind have the
// separators of another in them: into pieces between slashes and spaces, which may be an
// address or a time, then into stretches between colons and the like, where a UUID may stand,
// then into leaves between dots and dashes. What is an identifier is not cut further.
var (
	cutsPieces    = bytesOf(" /?&=,;()[]{}\"'|#<>\\\t\n\r")
	cutsStretches = bytesOf(":@+~!$*^`")
	cutsLeaves    = bytesOf(".-_")
)

// marks are the bytes of which every identifier has one, but for a UUID of letters alone and a
// signed token: these are long, and have dashes or dots.
var marks = bytesOf("0123456789@%_")

func bytesOf(separators string) (is [256]bool) {
	for i := range len(separators) {
		is[separators[i]] = true
	}
	return is
}

// end is where the first separator stands from here on, or where the text ends.
func end(text string, from int, separators *[256]bool) int {
	for from < len(text) && !separators[text[from]] {
		from++
	}
	return from
}

// masker goes through a text that is no statement.
type masker struct {
	text   string
	dst    []byte
	copied int  // of the text
	isPath bool // it has a slash
}

// replace puts the placeholder of a kind in the place of a piece of the text.
func (m *masker) replace(from, to int, k kind) {
	m.dst = append(append(m.dst, m.text[m.copied:from]...), placeholders[k]...)
	m.copied = to
}

// pieces masks the whole text.
func (m *masker) pieces() {
	for from := 0; from < len(m.text); {
		if m.isPath && from > 0 && m.text[from-1] == '?' {
			m.query(from)
			return
		}
		to := end(m.text, from, &cutsPieces)
		if to > from {
			m.piece(from, to)
		}
		from = to + 1
	}
}

var cutsQueries = bytesOf("&# ")

// query masks the values of a query, whatever they are.
func (m *masker) query(from int) {
	for from < len(m.text) {
		to := end(m.text, from, &cutsQueries)
		if name, value, is := strings.Cut(m.text[from:to], "="); is && value != "" {
			m.replace(from+len(name)+1, to, queryValue)
		}
		if to < len(m.text) && m.text[to] != '&' {
			return
		}
		from = to + 1
	}
}

// piece masks what stands between slashes.
func (m *masker) piece(from, to int) {
	text := m.text[from:to]
	isShort := len(text) < uuidBytes || end(text, 0, &cutsLeaves) == len(text)
	if isShort && end(text, 0, &marks) == len(text) {
		return // most pieces
	}
	if k := whole(text); k != words {
		m.replace(from, to, k)
		return
	}
	if strings.IndexByte(text, '%') >= 0 {
		return // a text in the spelling of URLs
	}
	for ; from < to; from++ {
		stop := end(m.text[:to], from, &cutsStretches)
		m.stretch(from, stop)
		from = stop
	}
}

// stretch masks what stands between colons.
func (m *masker) stretch(from, to int) {
	text := m.text[from:to]
	switch {
	case text == "":
		return
	case run(text, 0, isDigit) == len(text):
		m.replace(from, to, number)
		return
	case isAddress4(text):
		m.replace(from, to, address4)
		return
	case m.isPath && strings.IndexByte(text, '.') >= 0:
		to = from + varying(text)
	}
	from += prefix(m.text[from:to])
	text = m.text[from:to]
	if k := tokenKind(text); k != words {
		m.replace(from, to, k)
		return
	}
	if from > 0 && m.text[from-1] == '_' && isScrambled(text) {
		m.replace(from, to, token)
		return
	}
	m.leaves(from, to)
}

// prefix is how many bytes of an identifier say of what it is one: cus_NffrFeUfNV2Hib,
// cs_test_a1B2.
func prefix(text string) (length int) {
	for range 2 {
		at := end(text, length, &cutsLeaves)
		if at == length || at == len(text) || text[at] != '_' || at-length > 8 ||
			run(text, length, isLower) < at-length {
			break
		}
		length = at + 1
	}
	return length
}

// varying is how much of a name with dots in a path may be masked: all of it where it ends in a
// long identifier, else the stem of a file where that is an identifier or begins with a long
// one. A file with an identifier elsewhere in its name is a static one: main.3f2a9c1b.js.
func varying(name string) int {
	if last := name[strings.LastIndexByte(name, '.')+1:]; len(last) >= 12 && tokenKind(last) != words {
		return len(name)
	}
	stem, extension, _ := strings.Cut(name, ".")
	if !isExtension(extension) {
		return 0
	}
	first := stem[:end(stem, 0, &cutsLeaves)]
	k, _ := leafKind(first)
	isLong := k == hexadecimal || k == number && len(first) >= 6 || k == token && len(first) >= 10
	if isLong || tokenKind(stem) != words {
		return len(stem)
	}
	return 0
}

// isExtension says whether what follows a dot is an extension, or several.
func isExtension(text string) bool {
	if len(text) < 1 || len(text) > 16 || !isLetter(text[0]) {
		return false
	}
	for i := range len(text) {
		if !isLetter(text[i]) && !isDigit(text[i]) && text[i] != '.' {
			return false
		}
	}
	return true
}

// leaves masks what stands between dots and dashes.
func (m *masker) leaves(from, to int) {
	isAfterToken := false
	for ; from < to; from++ {
		if uuidEnd := from + uuidBytes; uuidEnd <= to && isUUID(m.text[from:uuidEnd]) {
			m.replace(from, uuidEnd, uuid)
			from, isAfterToken = uuidEnd, true
			continue
		}
		stop := end(m.text[:to], from, &cutsLeaves)
		k, skip := leafKind(m.text[from:stop])
		if k == words && isAfterToken && stop == to && isSuffix(m.text[from:stop]) {
			k = token
		}
		if isAfterToken = k != words; isAfterToken {
			m.replace(from+skip, stop, k)
		}
		from = stop
	}
}
