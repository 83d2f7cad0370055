package traces

// dd-trace-java writes the empty string of a v0.5 body where it first needs it, for a
// span without a type, and not first in the dictionary. Agents of today move it there,
// and then read the string that was the first where a span means the empty one; older
// ones do not. So who means it is left to the agent, but for what does not count: the
// type of a span that is not counted, tags that no rule asks for.

// misplace notes such a string, which has the next number.
func (p *payload) misplace() {
	if p.misplaced > 0 || p.strings[0].n == 0 {
		p.fail() // a second one
	}
	p.misplaced = len(p.strings)
}

// judge reads a span of such a body once more, for who means the misplaced string. It
// begins at start; the reader stands at its end, and does so again.
func (p *payload) judge(rec *record, start int) {
	if p.bad {
		return
	}
	p.at = start
	p.array()
	means := false
	for range 3 { // service, name, resource
		means = p.numbered() == p.misplaced || means
	}
	for range 6 { // ids, times, error
		p.skip()
	}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key, value := p.numbered(), p.numbered()
		means = means || key == p.misplaced || value == p.misplaced && p.numbers[key] != labelOther
	}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		means = p.numbered() == p.misplaced || means
		p.skip()
	}
	rec.misplaced = p.numbered() == p.misplaced
	if means {
		p.fail()
	}
}
