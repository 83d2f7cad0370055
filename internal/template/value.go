package template

import (
	"hash/maphash"
	"strings"
)

const (
	maxFills  = 8
	maxPieces = 32 // between slashes, spaces and the like
	maxText   = 5000
)

// seed is one a process, so that nobody outside can choose texts that collide.
var seed = maphash.MakeSeed()

// value is a text taken apart.
type value struct {
	text      string
	fills     [maxFills]fill
	count     int    // of the fills
	skeleton  uint64 // a hash of what stands around the fills, and of their kinds
	isSQL     bool   // the literals are one fill together, and have no place of their own
	isPath    bool   // it has a slash
	statement []byte // the text with a question mark for each literal, where it is one
}

// fill is a piece that may vary.
type fill struct {
	from, to int
	kind     kind
	worth    worth
}

// parse takes a text apart. It reports false where nothing in it may vary, where it is not
// understood, or where it holds a placeholder: then it is a name already.
func (v *value) parse(text string) bool {
	v.text, v.count, v.isSQL = text, 0, false
	if len(text) < 2 || len(text) > maxText {
		return false
	}
	if word := statementWord(text); word != "" {
		if v.parseSQL(word) {
			return true
		}
		if hasWord(withoutComment(text), word) {
			return false // only within a literal, or there is none
		}
	}
	v.isPath = strings.IndexByte(text, '/') >= 0
	if !v.pieces() || v.count == 0 {
		return false
	}
	v.skeleton = v.hashAround()
	return true
}

// hashAround is the hash of what stands around the fills.
func (v *value) hashAround() uint64 {
	hash, from := uint64(1), 0
	for i := range v.fills[:v.count] {
		f := &v.fills[i]
		hash = mix(hash^maphash.String(seed, v.text[from:f.from]), uint64(f.kind))
		from = f.to
	}
	return mix(hash^maphash.String(seed, v.text[from:]), 0)
}

// mix makes one hash of two.
func mix(a, b uint64) uint64 {
	a = (a ^ b ^ a>>32) * 0x9e3779b97f4a7c15
	return a ^ a>>29
}

// add notes a fill. It reports false where there are too many.
func (v *value) add(from, to int, k kind, w worth) bool {
	if v.count == maxFills {
		return false
	}
	v.fills[v.count] = fill{from, to, k, w}
	v.count++
	return true
}

// appendFolded appends the text with placeholders for those fills that vary. It reports
// false where none does.
func (v *value) appendFolded(dst []byte, varies levels) (folded []byte, ok bool) {
	if v.isSQL {
		return append(dst, v.statement...), varies.has(0, strong)
	}
	from := 0
	for i := range v.fills[:v.count] {
		f := &v.fills[i]
		if !varies.has(i, f.worth) {
			continue
		}
		dst = append(dst, v.text[from:f.from]...)
		dst = append(dst, placeholders[f.kind]...)
		from, ok = f.to, true
	}
	return append(dst, v.text[from:]...), ok
}
