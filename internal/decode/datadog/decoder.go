package datadog

import (
	"bytes"
	"errors"
	"hash/maphash"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
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

// Decode reads a body into a table, which is valid until the body is used again. names are the
// tags that are kept, the first of which are TraceTags. With an error the body is left to the
// agent.
func (d *Decoder) Decode(format Format, body []byte, names *spantable.Names, t *spantable.Table) error {
	d.reset(format, body, names, t)
	switch format {
	case FormatV04:
		v04{named{d}}.read()
	case FormatV05:
		v05{d}.read()
	case FormatV07:
		v07{named{d}}.read()
	default:
		v1{d}.read()
	}
	if d.Failed() {
		t.Fail(ErrUnread)
	}
	return t.Err() //nolint:wrapcheck // it is the decoder's own, or the table's limit
}

// Format is that of the last body.
func (d *Decoder) Format() Format { return d.format }

// List is where the traces of the last body lie.
func (d *Decoder) List() List { return d.list }

// Strings are those that the last body has numbered, by number.
func (d *Decoder) Strings() []spantable.Text { return d.strings.texts }

// keptStrings bounds the memory that is kept from one body to the next.
const keptStrings = 1 << 16

// Release lets go of the last body, and of the memory that only a very large one needed.
func (d *Decoder) Release() {
	d.Reader, d.body, d.table = msgpack.Reader{}, nil, nil
	if cap(d.strings.texts) > keptStrings {
		d.strings = strings{}
	}
}

// Format is one of the agent's trace endpoints, by how its bodies are written.
type Format uint8

const (
	FormatV04 Format = iota // also /v0.3/traces
	FormatV05
	FormatV07
	FormatV1
)

// String is the format's endpoint.
func (f Format) String() string { return [...]string{"v0.4", "v0.5", "v0.7", "v1.0"}[f] }

// isByName says whether the format writes strings where they are used.
func (f Format) isByName() bool { return f == FormatV04 || f == FormatV07 }

// ErrUnread is what a body gives that is left to the agent: it is no msgpack of its format, or
// has what no tracer writes and only the agent can judge.
var ErrUnread = errors.New("read traces: the body is not what its endpoint takes")

// The labels of tags that say something of a trace or of its process. Names are given to a Decoder
// with TraceTags first, under these labels.
const (
	LabelKind spantable.Label = iota + 1
	LabelEnv
	LabelVersion
	LabelHostname
	LabelCommit
	LabelOrigin
	LabelPriority
	LabelProcessTags
	LabelTraceHigh    // the upper half of the trace's id
	LabelSpanSampling // the span was sampled for itself
	LabelEventRate    // the span is an event
	labelMisplaced    // no name: the empty string of a v0.5 body that is not the first
	TraceLabels       // how many there are, with spantable.Other
)

// TraceTags are the names of those tags, by label.
var TraceTags = [TraceLabels]string{
	LabelKind: "span.kind", LabelEnv: "env", LabelVersion: "version", LabelHostname: "_dd.hostname",
	LabelCommit: "_dd.git.commit.sha", LabelOrigin: "_dd.origin", LabelPriority: "_sampling_priority_v1",
	LabelProcessTags: "_dd.tags.process", LabelTraceHigh: "_dd.p.tid",
	LabelSpanSampling: "_dd.span_sampling.mechanism", LabelEventRate: "_dd1.sr.eausr",
}

// limitsOf are the limits of a body of that length.
func limitsOf(body int) spantable.Limits { return spantable.LimitsOf(body, tagBytes) }

// tagBytes is the fewest bytes of a tag, as nearly all tracers write it.
const tagBytes = 8

// stringBytes is what a string takes that is numbered: its place, its label, its slots of a table
// half full, and of the one before.
const stringBytes = int(unsafe.Sizeof(spantable.Text{})+unsafe.Sizeof(spantable.Label(0))) + 4*4

// Bytes is the most that a decoder and its table take for bodies of that length, with so many
// bytes more for each span.
func Bytes(body, perSpan int) int {
	l := limitsOf(body)
	return l.Bytes(perSpan) + int(spantable.GrowthFactor*float64(l.Strings*stringBytes))
}

// strings are those that a body numbers, and by string the label of the tag with that name.
type strings struct {
	texts  []spantable.Text
	labels []spantable.Label
	// slots find the number of a string that a v1 body has brought already: a string that stands
	// in it twice keeps its first number, and gets no second one. It is a flat hash table of
	// numbers, each one more than its string's, so that 0 is an empty slot.
	slots []uint32
	seed  maphash.Seed
	// misplaced says that a v0.5 body has an empty string that is not the first.
	misplaced bool
}

// firstSlots is the size of a table to begin with.
const firstSlots = 256

func (s *strings) reset() { s.texts, s.labels, s.misplaced = s.texts[:0], s.labels[:0], false }

// begin makes the strings findable by their bytes.
func (s *strings) begin() {
	if s.slots == nil {
		s.seed, s.slots = maphash.MakeSeed(), make([]uint32, firstSlots)
	}
	clear(s.slots)
}

// slot is where a string is, or where it belongs.
func (s *strings) slot(body, text []byte) *uint32 {
	mask := uint64(len(s.slots) - 1)
	for at := maphash.Bytes(s.seed, text) & mask; ; at = (at + 1) & mask {
		slot := &s.slots[at]
		if *slot == 0 || bytes.Equal(bytesOf(body, s.texts[*slot-1]), text) {
			return slot
		}
	}
}

// grow makes the table twice as large.
func (s *strings) grow(body []byte) {
	s.slots = make([]uint32, 2*len(s.slots))
	for i := range s.texts {
		*s.slot(body, bytesOf(body, s.texts[i])) = uint32(i + 1)
	}
}

func bytesOf(body []byte, t spantable.Text) []byte { return msgpack.Text(t).Bytes(body) }
