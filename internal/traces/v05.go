package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// The format of /v0.5/traces: a dictionary of strings, then traces as arrays of
// spans as arrays of twelve, with numbers for strings.

func (p *payload) walkV05() {
	p.Array()
	p.dictionary()
	for n := p.begin(); n > 0 && !p.Failed(); n-- {
		p.traceV05()
	}
	p.list.end = p.At()
}

// dictionary reads the strings, and for each whether it names a tag that a rule
// asks for: once, and not for each span. Names that stand there twice only the
// agent can judge: it finds a string by its place.
func (p *payload) dictionary() {
	var seen [maxLabels]bool
	for n := p.Array(); n > 0 && !p.Failed(); n-- {
		s := p.looseText()
		l := p.labels.find(s.Of(p.body))
		if l != labelOther && seen[l] {
			p.Fail()
		}
		if s.Len == 0 && len(p.strings) > 0 {
			p.misplace()
		}
		seen[l] = true
		p.addString(s, l)
	}
}

// index reads the number of a string.
func (p *payload) index() int {
	v := p.unsigned()
	if v >= uint64(len(p.strings)) {
		p.Fail()
		return 0
	}
	return int(v)
}

func (p *payload) indexedText() msgpack.Text {
	if n := p.index(); !p.Failed() {
		return p.strings[n]
	}
	return msgpack.Text{}
}

func (p *payload) indexedLabel() label {
	if n := p.index(); !p.Failed() {
		return p.numbers[n]
	}
	return labelOther
}

func (p *payload) traceV05() {
	c := chunk{first: len(p.records), at: p.At()}
	p.ofTrace = ofTrace{}
	p.each((*payload).spanV05)
	p.ofTrace.tell(&p.facts)
	p.ofTrace.mark(&c)
	p.addChunk(c)
}

func (p *payload) spanV05() {
	rec, start := p.add(kindUnknown), p.At()
	if p.Array() != int(fieldsV05) {
		p.Fail()
	}
	at := p.At()
	for f := field(0); f < fieldsV05 && !p.Failed(); f++ {
		at = p.readField(rec, f+1, at)
	}
	p.Seek(at)
	p.ofTrace.reconcile(rec.parent)
	if p.misplaced > 0 && !p.Failed() {
		p.judge(rec, start)
	}
}
