package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// The format of /v0.4/traces and /v0.3/traces: an array of traces, each an array
// of spans, each a map by names.

func (p *payload) walkV04() {
	for n := p.begin(); n > 0 && !p.Failed(); n-- {
		p.traceV04()
	}
	p.list.end = p.At()
}

func (p *payload) traceV04() {
	c := chunk{first: len(p.records), at: p.At()}
	p.ofTrace = ofTrace{}
	p.each(func(p *payload) {
		if !p.IsNil() {
			rec := p.namedSpan()
			p.ofTrace.reconcile(rec.parent)
		}
	})
	p.ofTrace.tell(&p.facts)
	p.ofTrace.mark(&c)
	p.addChunk(c)
}

// namedSpan reads a span that is a map by names.
func (p *payload) namedSpan() *record {
	rec := p.add(kindInternal)
	f := fieldOther
	n, at := p.Map(), p.At()
	for body := p.body; n > 0 && !p.Failed(); n-- {
		expected := &p.following[f%fieldRoom]
		f = *expected
		name := &writtenNames[f%fieldRoom]
		if at <= len(body)-headLen && headAt((*[headLen]byte)(body[at:]), name.n) == name.head {
			at += name.n
		} else {
			p.Seek(at)
			f = fieldNamed(p.fieldName().Of(body))
			*expected, at = f, p.At()
		}
		at = p.readField(rec, f, at)
	}
	p.Seek(at)
	return rec
}

// fieldName reads the name of a field: a string or bytes.
func (p *payload) fieldName() msgpack.Text {
	if p.Lead() == msgpack.Nil {
		p.Fail()
	}
	return p.looseText()
}

// skipMap steps over a link or an event of a span.
func (p *payload) skipMap() {
	if p.IsNil() {
		return
	}
	for n := 2 * p.Map(); n > 0 && !p.Failed(); n-- {
		p.Skip()
	}
}
