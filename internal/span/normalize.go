package span

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Mender makes keys normal in memory of its own, which it uses again for each key: so a flood
// of keys that must be rewritten allocates nothing. The labels that Mend has rewritten are
// parts of that memory, and good until its next Mend. A label that was only cut is a part of
// the original text.
//
// A byte that is kept is looked at a fixed number of times, and one behind a limit never.
type Mender struct {
	rewritten []byte
	released  int // bytes that Release gave back last: as many will be needed again
}

// KeptBytes is what a Mender may hold between two batches: it is more than rewritten labels
// mostly are, and much less than they may be. Release gives the rest back.
const KeptBytes = 1 << 10

// Release gives back memory of more than KeptBytes. No mended label is good after it.
func (m *Mender) Release() {
	if cap(m.rewritten) > KeptBytes {
		m.rewritten, m.released = nil, cap(m.rewritten)
	}
}

// memory is where the next rewritten label is appended to.
func (m *Mender) memory() []byte {
	if m.rewritten == nil && m.released > 0 {
		m.rewritten = make([]byte, 0, m.released)
	}
	return m.rewritten
}

// Mend makes the key what the statistics will show, but for the order of its tags: valid
// UTF-8, no label over its limit, service and operation as the agent writes them, no
// resource missing. lang names the service of a span that has none. It reports whether it
// changed any label. What was rewritten before is not good any more.
func (m *Mender) Mend(k *Key, lang string) (changed bool) {
	m.rewritten = m.rewritten[:0]
	for l := range FirstList {
		text := k.Text(l)
		changed = (*text != "" || labels[l].required) && !l.IsNormal(*text) && m.text(l, text, lang) ||
			changed
	}
	for l := FirstList; l < EndOfLists; l++ {
		changed = m.tags(l, k.Tags(l)) || changed
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	return changed
}

// IsNormal reports whether a text, or a tag of a list, is what the statistics show. It
// may say no of one that Normalize would leave as it is.
func (l Label) IsNormal(text string) bool {
	spec := &labels[l]
	switch {
	case text == "":
		return !spec.required
	case spec.names != nil:
		return spec.names.isName(text)
	}
	return isText(text, spec.maxBytes)
}

// text makes a text normal of which IsNormal says no.
func (m *Mender) text(l Label, text *string, lang string) (changed bool) {
	spec := &labels[l]
	if spec.names == nil {
		m.cut(text, spec.maxBytes)
		return true
	}
	begin, before := len(m.rewritten), *text
	m.rewritten = spec.names.append(m.memory(), before, lang)
	if name := stringOf(m.rewritten[begin:]); name != before {
		*text = name
		return true
	}
	m.rewritten = m.rewritten[:begin]
	return false
}

// trim makes a text valid UTF-8 within its limit.
func (m *Mender) trim(s *string, limit int) (changed bool) {
	if isText(*s, limit) {
		return false
	}
	m.cut(s, limit)
	return true
}

// cut is trim for a text that can't stay as it is.
func (m *Mender) cut(s *string, limit int) {
	if len(*s) > limit && shorten(s, limit) {
		return
	}
	begin := len(m.rewritten)
	m.rewritten = appendText(m.memory(), *s, limit)
	*s = stringOf(m.rewritten[begin:])
}

// tags trims each tag of a list, and leaves out those that are too many.
func (m *Mender) tags(l Label, tags *[]string) (changed bool) {
	if most := labels[l].maxTags; len(*tags) > most {
		*tags, changed = (*tags)[:most], true
	}
	for i := range *tags {
		if tag := &(*tags)[i]; !isText(*tag, labels[l].maxBytes) && m.tag(l, tag) {
			changed = true
		}
	}
	return changed
}

// tag makes a tag of a list normal of which IsNormal says no.
func (m *Mender) tag(l Label, tag *string) (changed bool) {
	spec := &labels[l]
	if !spec.masks {
		m.cut(tag, spec.maxBytes)
		return true
	}
	before := *tag
	m.trim(tag, maxMaskedTag)
	switch key, value, found := strings.Cut(*tag, ":"); {
	case !found || len(key) > spec.maxBytes:
		m.trim(tag, spec.maxBytes)
	case len(value) > spec.maxBytes:
		begin := len(m.rewritten)
		m.rewritten = append(append(append(m.memory(), key...), ':'), Blocked...)
		*tag = stringOf(m.rewritten[begin:])
	}
	return *tag != before
}

// Tag is a tag of a list as it is kept.
func (l Label) Tag(tag string) string {
	if !l.IsNormal(tag) {
		var m Mender
		m.tag(l, &tag)
	}
	return tag
}

// Normalize mends a key, and puts its tags in the agent's order, so that two tracers which
// list the same tags differently mean one key. Such an order does not count as a change. It is
// idempotent.
func (k *Key) Normalize(lang string) (changed bool) {
	var m Mender
	changed = m.Mend(k, lang)
	for l := FirstList; l < EndOfLists; l++ {
		if tags := *k.Tags(l); !slices.IsSorted(tags) {
			slices.Sort(tags)
		}
	}
	return changed
}

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	switch {
	case isText(s, limit):
		return s
	case len(s) > limit && shorten(&s, limit):
		return strings.Clone(s) // or the cut text would hold on to all that was cut off
	}
	return string(appendText(nil, s, limit))
}

// Shorten cuts valid UTF-8 to at most limit bytes. The result is a part of the text.
func Shorten(text string, limit int) string {
	if len(text) > limit {
		shorten(&text, limit)
	}
	return text
}

// isText says whether a text can stay as it is.
func isText(s string, limit int) bool { return len(s) <= limit && isValid(s) }

// shorten cuts a text that is longer than the limit before the rune that lies on it. It
// reports false where there is none, or something before it must be replaced.
func shorten(s *string, limit int) bool {
	end := limit
	for end > 0 && !utf8.RuneStart((*s)[end]) {
		end--
	}
	if _, size := utf8.DecodeRuneInString((*s)[end:]); end+size <= limit || !isValid((*s)[:end]) {
		return false
	}
	*s = (*s)[:end]
	return true
}

// appendText appends a text as Text makes it. It goes through the bytes once, and looks at
// no more of them than may be kept: a label of a megabyte must not cost a megabyte of
// repair.
//
// In a text in another encoding a processor can't predict which bytes are ASCII. So ASCII
// bytes take no branch. Bytes that are not UTF-8 take none either: each byte of a run of them
// writes U+FFFD to the same place.
func appendText(dst []byte, s string, limit int) []byte {
	s = s[:min(len(s), limit+utf8.UTFMax)]
	begin := len(dst)
	dst = slices.Grow(dst, min(replacementBytes*len(s), limit)+utf8.UTFMax)
	to := dst[begin:cap(dst)]
	end, run := 0, 0 // run is replacementBytes within a run
	for at := 0; at < len(s) && end <= limit; {
		if isContinued(s, at) {
			if _, size := utf8.DecodeRuneInString(s[at:]); size > 1 {
				end += copy(to[end:], s[at:at+size])
				at, run = at+size, 0
				continue
			}
		}
		c := s[at]
		isReplaced := int(c >> 7)
		end -= run & -isReplaced
		binary.LittleEndian.PutUint32(to[end:],
			uint32(c)&^uint32(-isReplaced)|replacement&uint32(-isReplaced))
		run = replacementBytes * isReplaced
		end += max(1, run)
		at++
	}
	if end > limit {
		for end = limit; end > 0 && !utf8.RuneStart(to[end]); {
			end--
		}
	}
	return dst[:begin+end]
}

// isContinued says whether a byte may begin a character of several: it is not ASCII, and one
// follows that can't begin any.
func isContinued(s string, at int) bool {
	return at+1 < len(s) && (uint16(s[at])<<8|uint16(s[at+1]))&0x80C0 == 0x8080
}

// replacement is U+FFFD in UTF-8, the first byte lowest.
const (
	replacement      = 0xBDBFEF
	replacementBytes = 3
)

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// isValid says whether a text is UTF-8. Nearly all texts are ASCII, which shows eight bytes at
// a time. Other texts go through an automaton, because in a text of several scripts a
// processor can't predict how many bytes the next character has; but long texts mostly have
// one script.
func isValid(text string) bool {
	if len(text) > mixedBytes {
		return utf8.ValidString(text)
	}
	if last := len(text) - wordBytes; last >= 0 {
		at := 0
		for at < last && wordAt(text, at)&highs == 0 {
			at += wordBytes
		}
		if at >= last && wordAt(text, last)&highs == 0 {
			return true
		}
		text = text[min(at, last):]
	}
	state := uint64(accepts)
	for i := range len(text) {
		state = afterByte[text[i]] >> (state & 63)
	}
	return state&63 == accepts
}

// mixedBytes is how long a text of several scripts mostly is.
const mixedBytes = 256

// The states of the automaton. Each is a number of bits: so far a byte's number is shifted
// for the state behind it.
const (
	refuses    = 6 * iota // for ever
	accepts               // a character ended
	needsOne              // more byte
	needsTwo              // more bytes
	needsThree            //
	afterE0               // as the first of three bytes, which might be written with two
	afterED               // the same, which might be half of a pair of UTF-16
	afterF0               // as the first of four bytes, which might be written with three
	afterF4               // the same, which might be beyond the last character
)

// afterByte is by byte, for each state, what state follows.
var afterByte = func() (after [256]uint64) {
	for _, step := range []struct{ in, from, to, next uint64 }{
		{accepts, 0x00, 0x7f, accepts},
		{accepts, 0xc2, 0xdf, needsOne},
		{accepts, 0xe0, 0xe0, afterE0},
		{accepts, 0xe1, 0xec, needsTwo},
		{accepts, 0xed, 0xed, afterED},
		{accepts, 0xee, 0xef, needsTwo},
		{accepts, 0xf0, 0xf0, afterF0},
		{accepts, 0xf1, 0xf3, needsThree},
		{accepts, 0xf4, 0xf4, afterF4},
		{needsOne, 0x80, 0xbf, accepts},
		{needsTwo, 0x80, 0xbf, needsOne},
		{needsThree, 0x80, 0xbf, needsTwo},
		{afterE0, 0xa0, 0xbf, needsOne},
		{afterED, 0x80, 0x9f, needsOne},
		{afterF0, 0x90, 0xbf, needsTwo},
		{afterF4, 0x80, 0x8f, needsTwo},
	} {
		for c := step.from; c <= step.to; c++ {
			after[c] |= step.next << step.in
		}
	}
	return after
}()
