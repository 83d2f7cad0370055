package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// dd-trace-java writes the empty string of a v0.5 body where it first needs it, for a
// span without a type, and not first in the dictionary. Agents of today move it there,
// and then read the string that was the first where a span means the empty one; older
// ones do not. So who means it is left to the agent, but for what does not count: the
// type of a span that is not counted, tags that no rule asks for.

// misplace notes such a string, which has the next number.
func (p *payload) misplace() {
	if p.misplaced > 0 || p.strings[0].Len == 0 {
		p.Fail() // a second one
	}
	p.misplaced = len(p.strings)
}

// judge reads a span of such a body once more, which begins at start, for who means the
// misplaced string.
func (p *payload) judge(rec *record, start int) {
	behind := p.Reader
	p.Reader = msgpack.NewReaderAt(p.body, start)
	p.Array()
	means := false
	for range 3 { // service, name, resource
		means = p.index() == p.misplaced || means
	}
	for range 6 { // ids, times, error
		p.Skip()
	}
	for n := p.Map(); n > 0; n-- {
		key, value := p.index(), p.index()
		means = means || key == p.misplaced || value == p.misplaced && p.numbers[key] != labelOther
	}
	for n := p.Map(); n > 0; n-- {
		means = p.index() == p.misplaced || means
		p.Skip()
	}
	rec.misplaced = p.index() == p.misplaced
	if p.Reader = behind; means {
		p.Fail()
	}
}
