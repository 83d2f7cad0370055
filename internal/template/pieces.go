package template

import "strings"

// A text that is no statement is cut three times, since identifiers of one kind have the
// separators of another in them: into pieces between slashes and spaces, which may be an
// address or a time, then at colons and the like, where a UUID may stand, then at dots and
// dashes. What an identifier was found in is not cut further.

// pieces notes the fills of the text. It reports false where it is not understood.
func (v *value) pieces() bool {
	for from, count := 0, 0; from < len(v.text); count++ {
		if count >= maxPieces {
			return false
		}
		if v.isPath && from > 0 && v.text[from-1] == '?' {
			return v.query(from)
		}
		to, has := next(v.text, from, cutsPieces)
		if to > from && !v.piece(from, to, has) {
			return false
		}
		from = to + 1
	}
	return true
}

// query notes the values of a query. Any of them may vary, by whatever stands in it.
func (v *value) query(from int) bool {
	for from < len(v.text) {
		end := from + end(v.text[from:], "&# ")
		name, text, has := strings.Cut(v.text[from:end], "=")
		if has && text != "" && (isPlaceholder(text) || !v.add(from+len(name)+1, end, queryValue, worthOf(text))) {
			return false
		}
		if end < len(v.text) && v.text[end] != '&' {
			return true
		}
		from = end + 1
	}
	return true
}

// end is where the first of some bytes stands, or the length.
func end(text, of string) int {
	if at := strings.IndexAny(text, of); at >= 0 {
		return at
	}
	return len(text)
}

// worthOf is what the value of a query tells: what it would in a path, or little.
func worthOf(text string) worth {
	_, has := next(text, 0, 0)
	if k, w := whole(text, has); k != fixed {
		return w
	}
	if k, w := token(text); k != fixed {
		return w
	}
	return weak
}

// piece notes the fills of a piece between slashes.
func (v *value) piece(from, to int, has marks) bool {
	text := v.text[from:to]
	if from > 0 && to < len(v.text) && isPlaceholder(v.text[from-1:to+1]) {
		return false // it is a name already
	}
	if has&(hasDigit|hasAt) == 0 && has&(hasUpper|hasUnderscore) != hasUpper|hasUnderscore && has&cutsInner == 0 {
		return true // words: without a digit only what follows a prefix may be random, cus_NffrFeUfNVXHib
	}
	if has == hasDigit {
		return v.add(from, to, number, worthOfNumber(text))
	}
	if has&(hasAt|cutsInner|cutsLeaves) == 0 {
		k, w, skip := leaf(text)
		return k == fixed || v.add(from+skip, to, k, w)
	}
	if isUUID(text) {
		return v.add(from, to, uuidFill, strong)
	}
	if k, w := whole(text, has); k != fixed {
		return v.add(from, to, k, w)
	}
	if has&hasAt != 0 && strings.IndexByte(text, '%') >= 0 {
		return true // a text in another spelling
	}
	for ; from < to; from++ {
		stop, has := next(v.text[:to], from, cutsInner)
		if stop > from && has&(hasDigit|hasUpper) != 0 && !v.inner(from, stop) {
			return false
		}
		from = stop
	}
	return true
}

// inner notes the fills of a stretch between colons.
func (v *value) inner(from, to int) bool {
	text := v.text[from:to]
	if isAddress(text) {
		return v.add(from, to, addressFill, strong)
	}
	if strings.IndexByte(text, '.') >= 0 && v.isPath {
		if to = from + varying(text); to == from {
			return true
		}
		text = v.text[from:to]
	}
	skip := prefix(text)
	if skip > 0 {
		return v.prefixed(from+skip, to)
	}
	if k, w := token(text); k != fixed {
		return v.add(from, to, k, w)
	}
	return v.leaves(from, to)
}

// varying is how much of a name with dots in a path may vary: all of it where it ends in a
// long identifier, else the stem of a file where that begins with one. A file that has a
// hash elsewhere in its name is a static one.
func varying(name string) int {
	if last := name[strings.LastIndexByte(name, '.')+1:]; len(last) >= 12 {
		if k, w := token(last); k != fixed && w == strong {
			return len(name)
		}
	}
	stem, extension, _ := strings.Cut(name, ".")
	if !isExtension(extension) {
		return 0
	}
	k, _ := token(stem)
	first, _ := next(stem, 0, cutsLeaves)
	if _, w, _ := leaf(stem[:first]); w == strong || k != fixed {
		return len(stem)
	}
	return 0
}

// prefixed notes the fills behind a prefix, which may be another: cs_test_a1B2.
func (v *value) prefixed(from, to int) bool {
	if skip := prefix(v.text[from:to]); skip > 0 {
		from += skip
	}
	text := v.text[from:to]
	if k, w := token(text); k != fixed {
		return v.add(from, to, k, w)
	}
	if isScrambled(text) {
		return v.add(from, to, tokenFill, strong)
	}
	return v.leaves(from, to)
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

// leaves notes the fills between dots and dashes.
func (v *value) leaves(from, to int) bool {
	afterFill := false // the last leaf was one
	for ; from < to; from++ {
		stop, has := next(v.text[:to], from, cutsLeaves)
		k, w, skip := fixed, weak, 0
		if uuid := from + uuidBytes; uuid <= to && isUUID(v.text[from:uuid]) {
			stop, k, w = uuid, uuidFill, strong
		} else if has&hasDigit != 0 {
			k, w, skip = leaf(v.text[from:stop])
		}
		if k == fixed && afterFill && stop == to && isSuffix(v.text[from:stop]) {
			k, w = tokenFill, fair
		}
		afterFill = k != fixed
		if afterFill && !v.add(from+skip, stop, k, w) {
			return false
		}
		from = stop
	}
	return true
}
