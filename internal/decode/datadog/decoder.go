package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Decoder reads bodies.
type Decoder struct {
	values
	list List
	// following is, by field, the one that came after it in the last span: a tracer writes all
	// spans in one order, so that is the one that is tried first.
	following [fieldRoom]field

	said     texts // of the payload, by its spans
	sender   spantable.Sender
	trace    ofTrace // that is being read
	lastTags field   // of the span that is being read, which of its tags were read last
}

// List is where a body's list of traces lies, so that some can be cut out of it.
type List struct {
	At    int // of its header
	First int // of the first trace
	End   int // 0 where there is no list

	// Of a v1 body, which is a map: where its fields begin, behind strings that were sent ahead,
	// and how many there are without those.
	Behind, Fields int
}

// reset makes the decoder ready for a body.
func (d *Decoder) reset(format Format, body []byte, names *spantable.Names, t *spantable.Table) {
	t.Reset(body, limitsOf(len(body)))
	d.Reader, d.body, d.format, d.names, d.table = msgpack.NewReader(body), body, format, names, t
	d.strings.reset()
	d.list, d.said, d.sender, d.trace = List{}, texts{}, spantable.Sender{}, ofTrace{}
}

// beginList reads the header of the list of traces.
func (d *Decoder) beginList() int {
	d.list.At = d.At()
	count := d.Array()
	d.list.First = d.At()
	return count
}

// beginSpan appends a span to be filled.
func (d *Decoder) beginSpan(kind spantable.Kind) *spantable.Span {
	d.lastTags = fieldOther
	s := d.table.AddSpan(kind)
	d.check()
	return s
}

// beginTrace begins the group of a trace.
func (d *Decoder) beginTrace() spantable.Group {
	d.trace = ofTrace{}
	return spantable.Group{First: uint32(len(d.table.Spans)), At: uint32(d.At())}
}

// endTrace appends the group, with what its spans say of it.
func (d *Decoder) endTrace(g spantable.Group) {
	o := &d.trace
	replace(&g.Origin, o.origin)
	if o.hasPriority {
		g.Priority, g.HasPriority = o.priority, true
	}
	if !g.IsHighRead {
		g.TraceLow = o.id
	}
	g.End, g.Strings = uint32(d.At()), uint32(len(d.strings.texts))
	d.table.AddGroup(g)
	d.check()
}

// sayTexts ends a body of the older formats: its sender is what its spans said.
func (d *Decoder) sayTexts() {
	s := &d.sender
	s.Env, s.Version, s.Host, s.Commit = d.said.env, d.said.version, d.said.host, d.said.commit
	d.table.Senders = append(d.table.Senders, *s)
}
