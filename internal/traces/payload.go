package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// payload is one body, walked: everything that a rule asks for, in memory that
// holds no pointer into the body and is used again for the next one.
type payload struct {
	msgpack.Reader
	body    []byte
	format  Format
	labels  *labels
	records []record
	tags    []tag
	chunks  []chunk
	list    traceList
	facts   facts
	senders []sender // of FormatIngest
	limits  limits
	charged int // bytes of text

	strings []msgpack.Text // of the formats that number them
	numbers []label        // by string: of the tag with that name
	table   stringTable
	// misplaced is the number of a v0.5 body's empty string that is not the first, -1
	// if there is none.
	misplaced int

	// following is, by field, the one that came after it in the last span: a tracer writes
	// all spans in one order, so that is the one that is tried first.
	following [fieldRoom]field

	said     [maxLabels]uint64 // by label, the bits of the tag that was read last
	ofTrace  ofTrace           // of the trace that is being read
	lastTags field             // of the span that is being read, which of its tags were read last
	traceID  traceID           // of the trace that is being read
	ids      []traceID         // of chunks, where the policy asks for them
}

// walk reads a body. What it finds is valid until the body is used again.
func (p *payload) walk(format Format, body []byte, labels *labels) error {
	p.Reader, p.body, p.format, p.labels = msgpack.NewReader(body), body, format, labels
	p.records, p.tags, p.chunks = p.records[:0], p.tags[:0], p.chunks[:0]
	p.strings, p.numbers, p.misplaced = p.strings[:0], p.numbers[:0], -1
	p.list, p.facts, p.limits, p.charged = traceList{}, facts{}, limitsOf(len(body)), 0
	p.ids, p.traceID, p.senders = p.ids[:0], traceID{}, p.senders[:0]
	switch format {
	case FormatV04:
		p.walkV04()
	case FormatV05:
		p.walkV05()
	case FormatV07:
		p.walkV07()
	case FormatIngest:
		p.limits = limitsOfIngest(len(body))
		p.walkIngest()
	default:
		p.walkV1()
	}
	if p.Failed() {
		return ErrUnread
	}
	return nil
}

// add appends a record and returns it to be filled. It is valid until the next.
func (p *payload) add(kind kind) *record {
	if len(p.records) >= p.limits.spans {
		p.Fail()
	}
	first := uint32(len(p.tags))
	p.records = append(p.records, record{first: first, last: first, kind: kind})
	p.lastTags = 0
	return &p.records[len(p.records)-1]
}

func (p *payload) addChunk(c chunk) {
	if len(p.chunks) >= p.limits.spans {
		p.Fail()
		return
	}
	c.last, c.end, c.strings, c.sender = len(p.records), p.At(), len(p.strings), uint16(len(p.senders))
	if p.labels.traceIDs {
		p.ids = append(p.ids, p.traceID)
	}
	p.traceID = traceID{}
	p.chunks = append(p.chunks, c)
}

// charge notes a text that is about to be read, once more perhaps.
func (p *payload) charge(t msgpack.Text) {
	if p.charged += int(t.Len); p.charged > maxText {
		p.Fail()
	}
}
