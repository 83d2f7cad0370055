package traces

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// The format of /v1.0/traces: maps by numbers, with strings that are written
// where they are first used and numbered from then on.

func (p *payload) walkV1() {
	p.table.reset()
	p.numberOf(msgpack.Text{}) // the empty string is number 0
	count := p.Map()
	p.list.fields, p.list.behind = count, p.At()
	for i := 0; i < count && !p.Failed(); i++ {
		switch p.number() {
		case 1:
			if i > 0 {
				p.Fail() // no tracer writes them elsewhere
			}
			p.stringsV1()
			p.list.fields, p.list.behind = count-1, p.At()
		case 2:
			p.facts.container = p.streamedText()
		case 3:
			p.facts.lang = p.streamedText()
		case 4:
			p.facts.langVersion = p.streamedText()
		case 5:
			p.facts.tracerVersion = p.streamedText()
		case 6:
			p.streamed() // the runtime id
		case 7:
			p.facts.env = p.streamedText()
		case 8:
			p.facts.host = p.streamedText()
		case 9:
			p.facts.version = p.streamedText()
		case 10:
			p.factsV1()
		case 11:
			if p.list.end != 0 {
				p.Fail() // a second list
			}
			for n := p.begin(); n > 0 && !p.Failed(); n-- {
				p.chunkV1()
			}
			p.list.end = p.At()
		default:
			p.skipStreamed()
		}
	}
}

// stringsV1 reads strings that were sent ahead.
func (p *payload) stringsV1() {
	for n := p.Array(); n > 0 && !p.Failed(); n-- {
		if s := p.Str(); s.Len > 0 && !p.Failed() {
			if _, isNew := p.numberOf(s); !isNew {
				p.Fail()
			}
		}
	}
}

// factsV1 reads the attributes of the payload.
func (p *payload) factsV1() {
	for _, t := range p.otherAttributes() {
		switch {
		case t.kind != isText && (t.label == labelCommit || t.label == labelProcessTags):
			p.Fail()
		case t.label == labelCommit:
			p.facts.commit = t.text()
		case t.label == labelProcessTags:
			p.facts.processTags, p.facts.hasProcessTags = t.text(), true
		}
	}
}

func (p *payload) chunkV1() {
	c := chunk{first: len(p.records), at: p.At(), hasPriority: true}
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		switch p.number() {
		case 1:
			c.priority = p.priority()
		case 2:
			c.origin = p.streamedText()
		case 3:
			p.otherAttributes()
		case 4:
			p.each((*payload).spanV1)
		case 5:
			p.Bool()
		case 6:
			p.traceIDV1()
		case 7:
			p.number() // the sampling mechanism
		default:
			p.skipStreamed()
		}
	}
	p.addChunk(c)
}

func (p *payload) spanV1() {
	rec := p.add(kindUnknown)
	n, at := p.Map(), p.At()
	for ; n > 0 && !p.Failed(); n-- {
		number, next := msgpack.CommonUint(p.body, at)
		if next == 0 || number > math.MaxUint32 {
			p.Seek(at)
			number, next = p.number(), p.At()
		}
		at = p.readField(rec, fieldNumbered(number), next)
	}
	p.Seek(at)
}

// linkV1 and eventV1 read what is of no interest but for its strings.
func (p *payload) linkV1() {
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		switch p.number() {
		case 1:
			p.Bin()
		case 2:
			p.unsigned()
		case 3:
			p.otherAttributes()
		case 4:
			p.streamed()
		case 5:
			p.number()
		default:
			p.skipStreamed()
		}
	}
}

func (p *payload) eventV1() {
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		switch p.number() {
		case 1:
			p.unsigned()
		case 2:
			p.streamed()
		case 3:
			p.otherAttributes()
		default:
			p.skipStreamed()
		}
	}
}

// triples reads how many attributes follow, each a name, a type and a value.
func (p *payload) triples() int {
	n := p.Array()
	if n%3 != 0 {
		p.Fail()
	}
	return n / 3
}

// otherAttributes reads those of something else than a span. They are good until the next
// tag is read.
func (p *payload) otherAttributes() []tag {
	first := len(p.tags)
	p.readTags(&record{}, p.triples(), isStated)
	all := p.tags[first:]
	p.tags = p.tags[:first]
	return all
}

// anyValue reads a type and a value of it.
func (p *payload) anyValue(depth int) (t tag) {
	if depth > msgpack.MaxDepth {
		p.Fail()
		return t
	}
	switch p.number() {
	case 1:
		t.kind, t.bits = isText, bitsOf(p.streamedText())
	case 2:
		t.kind = isBool
		if p.Bool() {
			t.bits = 1
		}
	case 3:
		t.kind, t.bits = isNumber, math.Float64bits(p.Float())
	case 4:
		t.kind, t.bits = isInteger, uint64(p.Int())
	case 5:
		t.kind, t.bits = isBytes, bitsOf(p.Bin())
	case 6:
		t.kind = isNested
		n := p.Array()
		if n%2 != 0 {
			p.Fail()
		}
		for ; n > 0 && !p.Failed(); n -= 2 {
			p.anyValue(depth + 1)
		}
	case 7:
		t.kind = isNested
		n := p.Array()
		if n%3 != 0 {
			p.Fail()
		}
		for ; n > 0 && !p.Failed(); n -= 3 {
			p.streamed()
			p.anyValue(depth + 2)
		}
	default:
		p.Fail()
	}
	return t
}

// skipStreamed steps over what we have no name for, but numbers the strings in it, as
// whoever wrote it did.
func (p *payload) skipStreamed() { p.skipStreamedWithin(msgpack.MaxDepth) }

func (p *payload) skipStreamedWithin(depth int) {
	elements := 0
	switch lead := p.Lead(); {
	case msgpack.IsStr(lead):
		p.streamed()
	case msgpack.IsArray(lead):
		elements = p.Array()
	case msgpack.IsMap(lead):
		elements = 2 * p.Map()
	default:
		p.Skip()
	}
	if elements > 0 && depth == 0 {
		p.Fail()
	}
	for ; elements > 0 && !p.Failed(); elements-- {
		p.skipStreamedWithin(depth - 1)
	}
}
