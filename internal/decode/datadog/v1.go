package datadog

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// v1 decodes /v1.0/traces: maps with numbers as keys. A string is written out where it first occurs,
// which also assigns it the next index; later values refer to it by that index.
type v1 struct{ *Decoder }

func (d v1) readPayload() {
	d.strings.resetSlots()
	d.internString(spantable.Text{}) // the empty string has index 0
	s, count := &d.sender, d.Map()
	texts := [...]*spantable.Text{
		2: &s.Container, 3: &s.Lang, 4: &s.LangVersion, 5: &s.TracerVersion,
		7: &s.Env, 8: &s.Host, 9: &s.Version,
	}
	d.list.FieldCount, d.list.FieldsStart = count, d.Pos()
	for i := 0; i < count && !d.Failed(); i++ {
		switch key := d.readUint32(); {
		case key < uint64(len(texts)) && texts[key] != nil:
			*texts[key] = d.readAnyText()
		case key == 1:
			if i > 0 {
				d.Fail() // all tracers write the strings first
			}
			d.readStrings()
			d.list.FieldCount, d.list.FieldsStart = count-1, d.Pos()
		case key == 6:
			d.readStringIndex() // runtime ID
		case key == 10:
			d.readPayloadAttributes()
		case key == 11:
			d.readChunks()
		default:
			d.skipV1Value(msgpack.MaxDepth)
		}
	}
	d.table.Senders = append(d.table.Senders, *s)
}

// readStrings reads the list of strings at the start of a payload and adds them to the string table,
// except for empty strings. It rejects the payload if two strings are equal.
func (d v1) readStrings() {
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		text := d.Str()
		if text.Len == 0 || d.Failed() {
			continue
		}
		_, isNew := d.internString(spantable.Text(text))
		if !isNew {
			d.Fail()
		}
	}
}

// readPayloadAttributes reads the attributes of the payload, and stores the Git commit and the process
// tags in d.sender. It rejects the payload if one of the two is not a string.
func (d v1) readPayloadAttributes() {
	for _, attribute := range d.readAttributes() {
		switch attribute.Label {
		case LabelCommit:
			d.sender.Commit = d.requireText(attribute)
		case LabelProcessTags:
			d.sender.ProcessTags = d.requireText(attribute)
			d.sender.HasProcessTags = true
		}
	}
}

// requireText returns the value of an attribute. It rejects the payload if the value is not a string.
func (d v1) requireText(attribute spantable.Tag) spantable.Text {
	if attribute.Type != spantable.TypeText {
		d.Fail()
		return spantable.Text{}
	}
	return attribute.Text()
}

// readAttributes reads a list of attributes that do not belong to a span. It returns those whose names are
// in d.names. They are stored in the unused capacity of d.table.Tags, until the next attribute is read.
func (d v1) readAttributes() []spantable.Tag {
	first := len(d.table.Tags)
	var noSpan spantable.Span // readTags needs a span, but does not add it to the table
	d.readTags(&noSpan, d.readTupleCount(v1AttributeParts), typedValue)
	attributes := d.table.Tags[first:]
	d.table.Tags = d.table.Tags[:first]
	return attributes
}

func (d v1) readChunks() {
	if d.list.TracesEnd != 0 {
		d.Fail() // a second list
	}
	for n := d.readTraceCount(); n > 0 && !d.Failed(); n-- {
		d.readChunk()
	}
	d.list.TracesEnd = d.Pos()
}

func (d v1) readChunk() {
	g := d.beginTrace()
	g.HasPriority = true
	for fields := d.Map(); fields > 0 && !d.Failed(); fields-- {
		switch d.readUint32() {
		case 1:
			g.Priority = d.readPriority()
		case 2:
			g.Origin = d.readAnyText()
		case 3:
			d.readAttributes()
		case 4:
			for spans := d.Array(); spans > 0 && !d.Failed(); spans-- {
				d.readSpan()
			}
		case 5:
			d.Bool() // dropped trace
		case 6:
			g.IsHighRead = true
			if id := d.Bin().Bytes(d.body); len(id) == 16 {
				g.TraceHigh, g.TraceLow = binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
			}
		case 7:
			d.readUint32() // sampling mechanism
		default:
			d.skipV1Value(msgpack.MaxDepth)
		}
	}
	d.endTrace(g)
}

func (d v1) readSpan() {
	s := d.beginSpan(spantable.KindUnknown)
	n, pos := d.Map(), d.Pos()
	for ; n > 0 && !d.Failed(); n-- {
		key, next := msgpack.CommonUint(d.body, pos)
		if next == 0 || key > math.MaxUint32 {
			d.Seek(pos)
			key, next = d.readUint32(), d.Pos()
		}
		f := fieldOther
		if key < uint64(len(v1Fields)) {
			f = v1Fields[key]
		}
		switch f {
		case fieldLinks:
			d.Seek(next)
			d.discardLinks()
			pos = d.Pos()
		case fieldEvents:
			d.Seek(next)
			d.discardEvents()
			pos = d.Pos()
		default:
			pos = d.readField(s, f, next)
		}
	}
	d.Seek(pos)
}

// Fields of a span link, by their v1 keys.
const (
	linkTraceID = iota + 1
	linkSpanID
	linkAttributes
	linkTraceState
	linkFlags
)

// discardLinks reads the links of a span without storing them. It must decode every link, because a
// string in it also becomes an entry of the string table, to which later values can refer by index.
func (d v1) discardLinks() {
	for links := d.Array(); links > 0 && !d.Failed(); links-- {
		for fields := d.Map(); fields > 0 && !d.Failed(); fields-- {
			switch d.readUint32() {
			case linkTraceID:
				d.Bin()
			case linkSpanID:
				d.readUint64()
			case linkAttributes:
				d.readAttributes()
			case linkTraceState:
				d.readStringIndex()
			case linkFlags:
				d.readUint32()
			default:
				d.skipV1Value(msgpack.MaxDepth)
			}
		}
	}
}

// Fields of a span event, by their v1 keys.
const (
	eventTime = iota + 1
	eventName
	eventAttributes
)

// discardEvents reads the events of a span without storing them. It must decode every event, because a
// string in it also becomes an entry of the string table, to which later values can refer by index.
func (d v1) discardEvents() {
	for events := d.Array(); events > 0 && !d.Failed(); events-- {
		for fields := d.Map(); fields > 0 && !d.Failed(); fields-- {
			switch d.readUint32() {
			case eventTime:
				d.readUint64()
			case eventName:
				d.readStringIndex()
			case eventAttributes:
				d.readAttributes()
			default:
				d.skipV1Value(msgpack.MaxDepth)
			}
		}
	}
}
