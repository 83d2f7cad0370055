package wire

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Bye is the last message of whoever sends it. The daemon says in it why it
// closes.
type Bye struct {
	Reason   string   `wire:"reason"`
	Detail   string   `wire:"detail,omitzero"`   // for a person
	Versions []uint64 `wire:"versions,omitzero"` // with the reason "version": those that the daemon speaks
}

// AppendBye appends a whole frame.
func AppendBye(dst []byte, m *Bye) []byte { return appendCold(dst, TypeBye, m) }

// DecodeBye reads a bye's body.
func DecodeBye(body []byte) (Bye, error) { return readCold[Bye](TypeBye, body) }

// MaxLost is the most reasons that one lost message may hold.
const MaxLost = 32

// MaxLostSpans is the most spans that one reason may stand for in a message: eight years
// of a million a second. A larger number is a subtraction that went wrong.
const MaxLostSpans = 1 << 48

// Lost is how many spans a tracer had to drop since its last report, by reason.
type Lost map[string]uint64

// AppendLost appends a whole frame, the reasons in order. More than MaxLost of
// them the reader refuses: send them in two messages.
func AppendLost(dst []byte, m Lost) []byte {
	start := len(dst)
	dst = appendMap(beginFrame(dst, TypeLost), len(m))
	for _, reason := range slices.Sorted(maps.Keys(m)) {
		dst = appendUint(appendStr(dst, reason), m[reason])
	}
	endFrame(dst, start)
	return dst
}

// DecodeLost reads the body of a lost message.
func DecodeLost(body []byte) (Lost, error) {
	m := Lost{}
	err := readMap(TypeLost, body, func(r *coldReader, reason string) {
		m[reason] = r.number(MaxLostSpans)
		if len(m) > MaxLost {
			r.fault("expected at most %d reasons", MaxLost)
		}
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Flush asks the daemon to report now, and is its answer once every payload of
// that report has had its outcome.
type Flush struct {
	ID    uint64 `wire:"id"`    // the tracer's choice; the answer repeats it
	OK    bool   `wire:"ok"`    // in an answer: whether the agent accepted everything
	Error string `wire:"error"` // in an answer: why not
}

// AppendFlush appends the whole frame of a request, which holds the id only.
func AppendFlush(dst []byte, m *Flush) []byte {
	return appendCold(dst, TypeFlush, &struct {
		ID uint64 `wire:"id"`
	}{m.ID})
}

// AppendFlushAnswer appends the whole frame of an answer.
func AppendFlushAnswer(dst []byte, m *Flush) []byte { return appendCold(dst, TypeFlush, m) }

// DecodeFlush reads the body of a request or of an answer.
func DecodeFlush(body []byte) (Flush, error) { return readCold[Flush](TypeFlush, body) }

// Hello is the first message of a tracer: what it speaks and who it is.
type Hello struct {
	Version uint64      `wire:"version"`
	Client  string      `wire:"client"` // the library's name and version, for the daemon's log
	Origin  span.Origin `wire:"origin"`
	Settled bool        `wire:"settled,omitzero"` // the daemon is to say how many spans are settled
	Earlier string      `wire:"earlier,omitzero"` // token of a connection that a daemon has died with
}

// OriginFields are the fields of an origin by the names that they have on the wire.
func OriginFields(o *span.Origin) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for of, field := range coldFields(reflect.ValueOf(o).Elem()) {
			if name, _ := coldName(of); !yield(name, field.String()) {
				return
			}
		}
	}
}

// AppendHello appends a whole frame. Of the origin it writes what is not empty.
func AppendHello(dst []byte, m *Hello) []byte { return appendCold(dst, TypeHello, m) }

// DecodeHello reads a hello's body. A hello that names no version is malformed;
// one that names a version unknown to us is not, so that it can be answered.
func DecodeHello(body []byte) (Hello, error) {
	m, err := readCold[Hello](TypeHello, body)
	if err == nil && m.Version == 0 {
		return Hello{}, malformed("decode hello", len(body), "it names no version, the first is %d", Version)
	}
	return m, err
}

// Welcome is the daemon's answer to hello: what it speaks, what it takes, and
// what it wants.
type Welcome struct {
	Version     uint64   `wire:"version"`
	Daemon      string   `wire:"daemon"`        // the daemon's name and version, for the tracer's log
	MaxFrame    int      `wire:"max_frame"`     // the longest message it takes, at least MinMaxFrame
	MaxBatch    int      `wire:"max_batch"`     // the most snapshots of one batch, at least MinMaxBatch
	MaxKeys     int      `wire:"max_keys"`      // the numbers of a define must be below it
	MaxKeyBytes int      `wire:"max_key_bytes"` // what the keys with numbers may cost, see KeyCost
	Features    Features `wire:"features"`
	Settled     bool     `wire:"settled,omitzero"`  // the daemon will say how many spans are settled
	Interval    uint64   `wire:"interval,omitzero"` // nanoseconds between two reports of the daemon's
	Token       string   `wire:"token,omitzero"`    // of this connection, for Hello.Earlier
	Earlier     []uint64 `wire:"earlier,omitzero"`  // what became of the spans of Hello.Earlier, see Outcomes
}

// Features is what the agent behind the daemon wants counted.
type Features struct {
	Stats bool `wire:"stats"` // whether stats are wanted at all
	// the tags that make up a key's peer tags, by their names
	PeerTags []string `wire:"peer_tags"`
	// the kinds whose spans count even below the top level
	SpanKinds []string `wire:"span_kinds"`
	// expressions for resources that are not to be counted
	IgnoreResources    []string `wire:"ignore_resources"`
	ObfuscationVersion uint64   `wire:"obfuscation_version"`
}

// KeyCost is the most that a daemon charges a connection with for a key of so many bytes
// that has a number, where the numbers are given from 0 on.
func KeyCost(bytes int) int { return (bytes+31)/32*32 + 128 }

// AppendWelcome appends a whole frame.
func AppendWelcome(dst []byte, m *Welcome) []byte { return appendCold(dst, TypeWelcome, m) }

// DecodeWelcome reads a welcome's body. One that announces less than the
// protocol's least is malformed, so a tracer need not ask twice.
func DecodeWelcome(body []byte) (Welcome, error) {
	m, err := readCold[Welcome](TypeWelcome, body)
	if err == nil && (m.MaxFrame < MinMaxFrame || m.MaxBatch < MinMaxBatch) {
		return Welcome{}, malformed("decode welcome", len(body), "expected a max_frame of at least %d and "+
			"a max_batch of at least %d, found %d and %d",
			MinMaxFrame, MinMaxBatch, m.MaxFrame, m.MaxBatch)
	}
	return m, err
}

// Announcement is a features message: the features, and to a tracer that asked for it in
// its hello, how many of the connection's spans are settled.
type Announcement struct {
	Features
	Settled uint64 `wire:"settled,omitzero"` // spans that have had their outcome, from the first on
}

// AppendFeatures appends a whole frame.
func AppendFeatures(dst []byte, m *Announcement) []byte { return appendCold(dst, TypeFeatures, m) }

// DecodeFeatures reads the body of a features message.
func DecodeFeatures(body []byte) (Announcement, error) {
	return readCold[Announcement](TypeFeatures, body)
}

// MaxToken bounds Welcome.Token, in bytes.
const MaxToken = 64

// Outcome is what became of a span that a client handed over to a daemon that died.
type Outcome uint64

const (
	Settled  Outcome = iota // the daemon has delivered it, or has said in its books why not
	Doubtful                // a destination may have it
	Resend                   // no destination has it: the client is to hand it over again
)

// AppendOutcome appends that the spans up to the one of that number have that outcome. Numbers
// count from the connection's first span on; they rise.
func AppendOutcome(dst []uint64, upTo uint64, what Outcome) []uint64 {
	return append(dst, upTo, uint64(what))
}

// Outcomes goes through a list of outcomes. Spans behind the last one are to be handed over again,
// as are those of an outcome that is not known here.
func Outcomes(list []uint64) iter.Seq2[uint64, Outcome] {
	return func(yield func(upTo uint64, what Outcome) bool) {
		for ; len(list) >= 2; list = list[2:] {
			if !yield(list[0], min(Outcome(list[1]), Resend)) {
				return
			}
		}
	}
}
