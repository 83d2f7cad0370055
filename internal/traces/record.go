package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// kind is a span's kind as the agent knows it.
type kind uint8

const (
	kindUnknown kind = iota // none was said, in the two formats that can tell
	kindInternal
	kindServer
	kindClient
	kindProducer
	kindConsumer
	kindOther       // one that the agent does not know, to which it is internal
	kindUnspecified // of OpenTelemetry, which only the agent's OTLP ingest knows
)

var kindNames = [...]string{"unknown", "internal", "server", "client", "producer", "consumer", "other", "unspecified"}

// kindSet is a set of kinds.
type kindSet uint8

func kindsOf(kinds ...kind) (set kindSet) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

func (s kindSet) has(k kind) bool { return s&(1<<k) != 0 }

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

// kindNamed is the kind of that name in the payload's format.
func (p *payload) kindNamed(name []byte) kind {
	if p.format == FormatIngest && string(name) == kindNames[kindUnspecified] {
		return kindUnspecified
	}
	return kindNamed(name)
}

// kindNumbered is the kind of a number, which are those of OpenTelemetry.
func kindNumbered(n uint64) kind {
	if n <= uint64(kindConsumer) {
		return kind(n)
	}
	return kindUnknown
}

// record is a span as it lies in the body: its fields, and which of the payload's
// tags are its own.
type record struct {
	id, parent      uint64
	start, duration uint64
	service         msgpack.Text
	name            msgpack.Text
	resource        msgpack.Text
	kindOfWork      msgpack.Text // "type"
	first, last     uint32
	kind            kind
	failed          bool
	misplaced       bool // its type is the misplaced string
}

// chunk is one trace: a run of records, and what its format says of all of them.
type chunk struct {
	first, last int
	at, end     int // of its bytes in the body
	strings     int // that its body has brought by its end, of those that are numbered
	origin      msgpack.Text
	priority    int32
	hasPriority bool
	sender      uint16 // of the senders of FormatIngest
}

// facts are what a tracer says of itself: in the payload, or now and then in a
// span, where the last one counts.
type facts struct {
	env, version, host, commit msgpack.Text
	container                  msgpack.Text
	lang, langVersion          msgpack.Text
	tracerVersion              msgpack.Text
	processTags                msgpack.Text
	hasProcessTags             bool
}
