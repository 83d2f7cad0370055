package traces

import "errors"

// Format is one of the agent's trace endpoints, by how its bodies are written.
type Format uint8

const (
	FormatV04 Format = iota // also /v0.3/traces
	FormatV05
	FormatV07
	FormatV1
)

// ErrUnread is what a body gives that is left to the agent: it is no msgpack of
// its format, or holds what no tracer writes and only the agent can judge.
var ErrUnread = errors.New("read traces: the body is not what its endpoint takes")

const (
	// maxSpans, which bounds traces as well, maxTags and maxStrings bound what one body
	// may make us hold of it, and most does for a smaller one.
	maxSpans   = 1 << 16
	maxTags    = 1 << 19
	maxStrings = 1 << 18
	// maxText bounds the bytes of text that one body may make us read: two of the
	// formats let every span refer to a string that the body brings once, and a megabyte
	// of it would become gigabytes of labels.
	maxText = 32 << 20
	// maxTagText is the longest tag that we judge. The agent cuts those over 25,000
	// bytes, and a list of hosts takes many times its length to be read.
	maxTagText = 16 << 10
)

// kind is a span's kind as the agent knows it.
type kind uint8

const (
	kindUnknown kind = iota // none was said, in the two formats that can tell
	kindInternal
	kindServer
	kindClient
	kindProducer
	kindConsumer
)

var kindNames = [...]string{"unknown", "internal", "server", "client", "producer", "consumer"}

// kindNamed is the kind of that name. The agent takes no others, and none in
// capitals.
func kindNamed(name []byte) kind {
	switch string(name) {
	case "server":
		return kindServer
	case "client":
		return kindClient
	case "producer":
		return kindProducer
	case "consumer":
		return kindConsumer
	}
	return kindInternal
}

// record is a span as it lies in the body: its fields, and which of the payload's
// tags are its own.
type record struct {
	id, parent      uint64
	start, duration uint64
	service         text
	name            text
	resource        text
	kindOfWork      text // "type"
	first, last     uint32
	kind            kind
	failed          bool
	misplaced       bool // its type is the misplaced string
}

// chunk is one trace: a run of records, and what its format says of all of them.
type chunk struct {
	first, last int
	at, end     int // of its bytes in the body
	origin      text
	priority    int32
	hasPriority bool
}

// facts are what a tracer says of itself: in the payload, or now and then in a
// span, where the last one counts.
type facts struct {
	env, version, host, commit text
	container                  text
	lang, langVersion          text
	tracerVersion              text
	processTags                text
	hasProcessTags             bool
}

// payload is one body, walked: everything that a rule asks for, in memory that
// holds no pointer into the body and is used again for the next one.
type payload struct {
	reader
	format  Format
	labels  *labels
	records []record
	tags    []tag
	chunks  []chunk
	traces  traces
	facts   facts
	strings []text // of the formats that number them
	numbers []label
	table   stringTable
	// misplaced is the number of a v0.5 body's empty string that is not the first, -1
	// if there is none.
	misplaced int
	layout    layout            // of the last span
	said      [maxLabels]uint64 // by label, what its last tag of text was
	read      int               // bytes of text
	most      most
}

// walk reads a body. What it finds is valid until the body is used again.
func (p *payload) walk(format Format, body []byte, labels *labels) error {
	p.reader = reader{b: body}
	p.labels, p.format = labels, format
	p.records, p.tags, p.chunks = p.records[:0], p.tags[:0], p.chunks[:0]
	p.strings, p.numbers = p.strings[:0], p.numbers[:0]
	p.facts, p.traces, p.read = facts{}, traces{}, 0
	p.most = mostOf(len(body))
	switch format {
	case FormatV04:
		p.walkV04()
	case FormatV05:
		p.walkV05()
	case FormatV07:
		p.walkV07()
	default:
		p.walkV1()
	}
	if p.bad {
		return ErrUnread
	}
	return nil
}

// add appends a record and returns it to be filled. It is valid until the next.
func (p *payload) add(kind kind) *record {
	if len(p.records) >= p.most.spans {
		p.fail()
	}
	first := uint32(len(p.tags))
	p.records = append(p.records, record{first: first, last: first, kind: kind})
	return &p.records[len(p.records)-1]
}

func (p *payload) addChunk(c chunk) {
	if len(p.chunks) >= p.most.spans {
		p.fail()
		return
	}
	p.chunks = append(p.chunks, c)
}

func (p *payload) tag(t tag) {
	if t.isWritten() {
		if p.charge(t.text()); t.text().n > maxTagText {
			p.fail()
		}
	}
	if len(p.tags) >= p.most.tags || p.bad {
		p.fail()
		return
	}
	p.tags = append(p.tags, t)
}

// charge notes a text that is about to be read, once more perhaps.
func (p *payload) charge(t text) {
	if p.read += int(t.n); p.read > maxText {
		p.fail()
	}
}

// promoted is what a trace of the older formats says of itself in its spans.
type promoted struct {
	env, version, host, commit, origin text
	priority                           int32
	hasPriority                        bool
	rootPriority                       int32
	seenRoot                           bool
}

// promote notes the texts that are a trace's more than its span's: the last one of a
// trace counts, also an empty one. They are those of the set that was said.
func (p *payload) promote(o *promoted, rec *record, set uint64) {
	if set&(1<<labelKind) != 0 {
		rec.kind = kindNamed(p.lastSaid(labelKind).of(p.b))
	}
	if set&(1<<labelEnv) != 0 {
		o.env = p.lastSaid(labelEnv)
	}
	if set&(1<<labelVersion) != 0 {
		o.version = p.lastSaid(labelVersion)
	}
	if set&(1<<labelOrigin) != 0 {
		o.origin = p.lastSaid(labelOrigin)
	}
	if set&(1<<labelHostname) != 0 {
		o.host = p.lastSaid(labelHostname)
	}
	if set&(1<<labelCommit) != 0 {
		o.commit = p.lastSaid(labelCommit)
	}
}

func (p *payload) lastSaid(l label) text { return (&tag{bits: p.said[l]}).text() }

// reconcile lets the root's priority stand against those of later spans.
func (o *promoted) reconcile(parent uint64) {
	if parent == 0 && o.hasPriority {
		o.rootPriority, o.seenRoot = o.priority, true
		return
	}
	if o.seenRoot {
		o.priority = o.rootPriority
	}
}

// hand gives the facts of a trace to the payload: what is not empty replaces what
// an earlier trace said.
func (o *promoted) hand(f *facts) {
	for _, said := range [...]struct {
		to   *text
		from text
	}{{&f.env, o.env}, {&f.version, o.version}, {&f.host, o.host}, {&f.commit, o.commit}} {
		if said.from.n != 0 {
			*said.to = said.from
		}
	}
}

// String is the format's endpoint.
func (f Format) String() string { return [...]string{"v0.4", "v0.5", "v0.7", "v1.0"}[f] }
