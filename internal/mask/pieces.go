package mask

import "strings"

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
