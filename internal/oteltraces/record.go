package oteltraces

// record is a span as it lies in the body: its fields, and which of the payload's tags are
// its own.
type record struct {
	start, end  uint64 // nanoseconds since 1970
	name        text
	state       text   // its tracestate
	stateField  uint32 // where the field of that begins, 0 where there is none
	traceID     uint32 // where its 16 bytes lie, 0 where it has none
	id, parent  uint32 // where those of the span and its parent lie, the same
	at, behind  uint32 // of its field in the list of spans, with the tag
	body        uint32 // where its message begins
	first, last uint32 // tags
	resource    uint32
	scope       uint32
	kind        kind
	code        uint8 // of its status: codeOK, codeError or another
	isRoot      bool
	fate        fate // of those that were judged last
}

// duration is 0 where a span ends before it starts.
func (r *record) duration() uint64 {
	if r.end > r.start {
		return r.end - r.start
	}
	return 0
}

// part is a message with messages of the next kind in it: a resource has scopes, a scope has
// spans.
type part struct {
	at, behind  int // of its field, with the tag
	body        int // where its message begins
	first, last int // of what it has
	size        int // of its message as it will be left, less than 0 where nothing is
}

// resource is what spans were sent by.
type resource struct {
	part           // with its scopes
	firstTag  int  // of its attributes, in the order of their labels
	ownTag    int  // where those begin that an operator named
	lastTag   int  // where they end
	said      text // the message that says who it is
	saidField int  // where the field of that begins, 0 where there is none
	batch     int  // of its spans, -1 where there is none yet
	isCounted bool // somebody has counted its spans already
	mark      mark
}

// kind is a span's kind by OTLP's number.
type kind uint8

const (
	kindUnspecified kind = iota
	kindInternal
	kindServer
	kindClient
	kindProducer
	kindConsumer
	kinds
)

// kindNames are those of the label.
var kindNames = [kinds]string{"unspecified", "internal", "server", "client", "producer", "consumer"}

// kindNumbered is the kind of a number.
func kindNumbered(n uint64) kind {
	if uint32(n) < uint32(kinds) { // it has 32 bits, whatever was written
		return kind(n)
	}
	return kindUnspecified
}
