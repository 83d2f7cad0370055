package datadog

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// v1 is the format of /v1.0/traces: maps by numbers, with strings that are written where they
// are first used and numbered from then on.
type v1 struct{ *Decoder }

// index reads what is no number of a string: that of a field, or of what has a list.
func (d v1) index() uint64 { return d.Uint(math.MaxUint32) }

func (d v1) read() {
	d.strings.begin()
	d.numberOf(spantable.Text{}) // the empty string is number 0
	s, count := &d.sender, d.Map()
	texts := [...]*spantable.Text{
		2: &s.Container, 3: &s.Lang, 4: &s.LangVersion, 5: &s.TracerVersion,
		7: &s.Env, 8: &s.Host, 9: &s.Version,
	}
	d.list.Fields, d.list.Behind = count, d.At()
	for i := 0; i < count && !d.Failed(); i++ {
		switch field := d.index(); {
		case field < uint64(len(texts)) && texts[field] != nil:
			*texts[field] = d.anyText()
		case field == 1:
			if i > 0 {
				d.Fail() // no tracer writes them elsewhere
			}
			d.stringsAhead()
			d.list.Fields, d.list.Behind = count-1, d.At()
		case field == 6:
			d.number() // the runtime id
		case field == 10:
			d.readPayloadAttributes()
		case field == 11:
			d.readChunks()
		default:
			d.skipStreamed(msgpack.MaxDepth)
		}
	}
	d.table.Senders = append(d.table.Senders, *s)
}

// stringsAhead reads strings that were sent ahead.
func (d v1) stringsAhead() {
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		if s := d.Str(); s.Len > 0 && !d.Failed() {
			if _, isNew := d.numberOf(spantable.Text(s)); !isNew {
				d.Fail()
			}
		}
	}
}

// readPayloadAttributes reads the attributes of the payload.
func (d v1) readPayloadAttributes() {
	for _, t := range d.otherAttributes() {
		switch {
		case t.Label != LabelCommit && t.Label != LabelProcessTags:
		case t.Value != spantable.IsText:
			d.Fail()
		case t.Label == LabelCommit:
			d.sender.Commit = t.Text()
		default:
			d.sender.ProcessTags, d.sender.HasProcessTags = t.Text(), true
		}
	}
}

// otherAttributes reads those of something else than a span. They are good until the next tag
// is read.
func (d v1) otherAttributes() []spantable.Tag {
	first := len(d.table.Tags)
	d.readTags(&spantable.Span{}, d.groups(3), isStated)
	all := d.table.Tags[first:]
	d.table.Tags = d.table.Tags[:first]
	return all
}

func (d v1) readChunks() {
	if d.list.End != 0 {
		d.Fail() // a second list
	}
	for n := d.beginList(); n > 0 && !d.Failed(); n-- {
		d.readChunk()
	}
	d.list.End = d.At()
}

func (d v1) readChunk() {
	g := d.beginTrace()
	g.HasPriority = true
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		switch d.index() {
		case 1:
			g.Priority = d.priority()
		case 2:
			g.Origin = d.anyText()
		case 3:
			d.otherAttributes()
		case 4:
			for n := d.Array(); n > 0 && !d.Failed(); n-- {
				d.span()
			}
		case 5:
			d.Bool()
		case 6:
			g.IsHighRead = true
			if id := d.Bin().Bytes(d.body); len(id) == 16 {
				g.TraceHigh, g.TraceLow = binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
			}
		case 7:
			d.index() // the sampling mechanism
		default:
			d.skipStreamed(msgpack.MaxDepth)
		}
	}
	d.endTrace(g)
}

func (d v1) span() {
	s := d.beginSpan(spantable.KindUnknown)
	n, at := d.Map(), d.At()
	for ; n > 0 && !d.Failed(); n-- {
		number, next := msgpack.CommonUint(d.body, at)
		if next == 0 || number > math.MaxUint32 {
			d.Seek(at)
			number, next = d.index(), d.At()
		}
		f := fieldOther
		if number < uint64(len(fieldNumbers)) {
			f = fieldNumbers[number]
		}
		if f == fieldLinks || f == fieldEvents {
			d.Seek(next)
			d.readBeside(f)
			at = d.At()
			continue
		}
		at = d.readField(s, f, next)
	}
	d.Seek(at)
}

// readBeside reads the links or the events of a span, which are of no interest but for their
// strings.
func (d v1) readBeside(f field) {
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		for n := d.Map(); n > 0 && !d.Failed(); n-- {
			number := d.index()
			switch {
			case f == fieldLinks && number == 1:
				d.Bin() // the trace
			case f == fieldLinks && number == 2, f == fieldEvents && number == 1:
				d.unsigned() // the span; when it was
			case number == 3:
				d.otherAttributes()
			case f == fieldLinks && number == 4, f == fieldEvents && number == 2:
				d.number() // the tracestate; the name
			case f == fieldLinks && number == 5:
				d.index()
			default:
				d.skipStreamed(msgpack.MaxDepth)
			}
		}
	}
}
