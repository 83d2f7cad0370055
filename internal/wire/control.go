package wire

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Bye is the last message in each direction. From the daemon, it contains the reason why it closes the
// connection.
type Bye struct {
	Reason   string   `wire:"reason"`
	Detail   string   `wire:"detail,omitzero"`   // human-readable explanation
	Versions []uint64 `wire:"versions,omitzero"` // for the reason "version": the versions that the daemon supports
}

// AppendBye appends a frame with a bye message.
func AppendBye(dst []byte, m *Bye) []byte { return appendControl(dst, TypeBye, m) }

// DecodeBye decodes the body of a bye message.
func DecodeBye(body []byte) (Bye, error) { return readControl[Bye](TypeBye, body) }

// MaxLost is the maximum number of reasons in a lost message.
const MaxLost = 32

// MaxLostSpans is the maximum number of spans per reason in a lost message: a million spans per second for
// eight years. Larger numbers are the result of an integer underflow.
const MaxLostSpans = 1 << 48

// Lost is the number of spans that a client has dropped since its last lost message, by reason.
type Lost map[string]uint64

// AppendLost appends a framed message with the number of spans that a client has dropped for each reason, sorted by
// reason. The caller must not pass more than MaxLost reasons, because the daemon rejects a message with more.
func AppendLost(dst []byte, lost Lost) []byte {
	start := len(dst)
	dst = beginFrame(dst, TypeLost)
	dst = appendMap(dst, len(lost))
	for _, reason := range slices.Sorted(maps.Keys(lost)) {
		dst = appendStr(dst, reason)
		dst = appendUint(dst, lost[reason])
	}
	endFrame(dst, start)
	return dst
}

// DecodeLost decodes the body of a message with numbers of dropped spans by reason. It returns an error if body is
// malformed, has more than MaxLost reasons, or has more than MaxLostSpans spans for a reason.
func DecodeLost(body []byte) (Lost, error) {
	lost := Lost{}
	err := readMap(TypeLost, body, func(r *controlReader, reason string) {
		lost[reason] = r.readUint(MaxLostSpans)
		if len(lost) > MaxLost {
			r.reject("expected at most %d reasons", MaxLost)
		}
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// Flush is the request to flush the statistics now, and the response to it after all payloads of this flush
// were delivered or have failed.
type Flush struct {
	ID    uint64 `wire:"id"`    // chosen by the client; the response repeats it
	OK    bool   `wire:"ok"`    // in a response: every destination accepted all payloads
	Error string `wire:"error"` // in a response: the reason why OK is false
}

// AppendFlush appends a frame with a flush request, which contains only the ID.
func AppendFlush(dst []byte, m *Flush) []byte {
	return appendControl(dst, TypeFlush, &struct {
		ID uint64 `wire:"id"`
	}{m.ID})
}

// AppendFlushAnswer appends a frame with the response to a flush request.
func AppendFlushAnswer(dst []byte, m *Flush) []byte { return appendControl(dst, TypeFlush, m) }

// DecodeFlush decodes the body of a flush request or of its response.
func DecodeFlush(body []byte) (Flush, error) { return readControl[Flush](TypeFlush, body) }

// Hello is the first message of a client. It contains the protocol version and the origin of the client's
// spans.
type Hello struct {
	Version uint64      `wire:"version"`
	Client  string      `wire:"client"` // name and version of the client library, for the daemon's log
	Origin  span.Origin `wire:"origin"`
	Settled bool        `wire:"settled,omitzero"` // ask the daemon to report the number of settled spans
	Earlier string      `wire:"earlier,omitzero"` // Welcome.Token of the previous connection, if its daemon has crashed
}

// OriginFields iterates over the fields of o, which describes the process that sends spans. Each pair consists of
// the field's name in the wire format and its value.
func OriginFields(o *span.Origin) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for field, value := range controlFields(reflect.ValueOf(o).Elem()) {
			name, _ := fieldName(field)
			if !yield(name, value.String()) {
				return
			}
		}
	}
}

// AppendHello appends a frame with a hello message. It omits the fields of the origin that are empty.
func AppendHello(dst []byte, m *Hello) []byte { return appendControl(dst, TypeHello, m) }

// DecodeHello decodes the body of a hello, the first message of a client. It returns an error if the version is
// missing, or if Earlier, the token of the client's previous connection, is longer than MaxToken. It accepts versions
// that this package does not support, so that the daemon can reply with the supported ones.
func DecodeHello(body []byte) (Hello, error) {
	m, err := readControl[Hello](TypeHello, body)
	switch {
	case err != nil:
		return Hello{}, err
	case m.Version == 0:
		return Hello{}, malformed("decode hello", len(body), "the version is missing; the first version is %d", Version)
	case len(m.Earlier) > MaxToken:
		return Hello{}, malformed("decode hello", len(body), "expected an earlier token of at most %d bytes, found %d",
			MaxToken, len(m.Earlier))
	}
	return m, nil
}

// Welcome is the daemon's response to hello. It contains the protocol version, the daemon's limits, and the
// wanted features.
type Welcome struct {
	Version     uint64   `wire:"version"`
	Daemon      string   `wire:"daemon"`        // name and version of the daemon, for the client's log
	MaxFrame    int      `wire:"max_frame"`     // maximum length of a message, at least MinMaxFrame
	MaxBatch    int      `wire:"max_batch"`     // maximum number of snapshots per batch, at least MinMaxBatch
	MaxKeys     int      `wire:"max_keys"`      // exclusive upper bound on the numbers in define messages
	MaxKeyBytes int      `wire:"max_key_bytes"` // limit on the total cost of numbered keys, see KeyCost
	Features    Features `wire:"features"`
	Settled     bool     `wire:"settled,omitzero"`  // the daemon reports the number of settled spans
	Interval    uint64   `wire:"interval,omitzero"` // duration of the daemon's aggregation interval in nanoseconds
	Token       string   `wire:"token,omitzero"`    // identifies this connection in a later Hello.Earlier
	Earlier     []uint64 `wire:"earlier,omitzero"`  // outcomes of the spans of connection Hello.Earlier, see Outcomes
}

// Features describes which spans the daemon wants counted, and how. It usually forwards the configuration
// of the Datadog agent.
type Features struct {
	Stats bool `wire:"stats"` // statistics are wanted at all
	// names of the tags that are included in a key's peer tags
	PeerTags []string `wire:"peer_tags"`
	// span kinds that are counted even if the span is not top-level
	SpanKinds []string `wire:"span_kinds"`
	// regular expressions of resources that must not be counted
	IgnoreResources    []string `wire:"ignore_resources"`
	ObfuscationVersion uint64   `wire:"obfuscation_version"`
}

// KeyCost returns the maximum cost of a numbered key of the given length in bytes, which the daemon counts against
// Welcome.MaxKeyBytes. It applies if the numbers of a connection are assigned consecutively from 0.
func KeyCost(length int) int {
	const blockLen, overhead = 32, 128
	blocks := (length + blockLen - 1) / blockLen
	return blocks*blockLen + overhead
}

// AppendWelcome appends a frame with a welcome message.
func AppendWelcome(dst []byte, m *Welcome) []byte { return appendControl(dst, TypeWelcome, m) }

// DecodeWelcome decodes the body of a welcome, the daemon's reply to a client's first message. It returns an error
// if MaxFrame is less than MinMaxFrame, or if MaxBatch is less than MinMaxBatch.
func DecodeWelcome(body []byte) (Welcome, error) {
	m, err := readControl[Welcome](TypeWelcome, body)
	if err != nil {
		return Welcome{}, err
	}
	if m.MaxFrame < MinMaxFrame || m.MaxBatch < MinMaxBatch {
		return Welcome{}, malformed("decode welcome", len(body), "expected a max_frame of at least %d and "+
			"a max_batch of at least %d, found %d and %d",
			MinMaxFrame, MinMaxBatch, m.MaxFrame, m.MaxBatch)
	}
	return m, nil
}

// Announcement is a features message. It contains the features and, if the client has requested this in
// hello, the number of settled spans.
type Announcement struct {
	Features
	Settled uint64 `wire:"settled,omitzero"` // number of settled spans: the first ones of the connection
}

// AppendFeatures appends a frame with a features message.
func AppendFeatures(dst []byte, m *Announcement) []byte { return appendControl(dst, TypeFeatures, m) }

// DecodeFeatures decodes the body of a features message.
func DecodeFeatures(body []byte) (Announcement, error) {
	return readControl[Announcement](TypeFeatures, body)
}

// MaxToken is the maximum length of Welcome.Token in bytes.
const MaxToken = 64

// Outcome is the outcome of a span that a client had sent to a daemon before the daemon crashed.
type Outcome uint64

const (
	Settled   Outcome = iota // delivered, or accounted for as undelivered
	Ambiguous                // a destination may have received it
	Resend                   // no destination has received it, so the client must send it again
)

// AppendOutcome appends an outcome to a list for Welcome.Earlier. lastSpan is the number of the last span with this
// outcome. The first one follows the last span of the previous outcome in the list. The first span of a connection has
// number 1.
func AppendOutcome(dst []uint64, lastSpan uint64, outcome Outcome) []uint64 {
	return append(dst, lastSpan, uint64(outcome))
}

// Outcomes decodes list, the value of Welcome.Earlier. The list consists of pairs, one per range of consecutive spans. A
// pair is the number of the range's last span and the outcome of all its spans. The first range begins with span 1, each
// further range after the previous one. An unknown outcome becomes Resend. The client must also resend all spans after
// the last range.
func Outcomes(list []uint64) iter.Seq2[uint64, Outcome] {
	return func(yield func(lastSpan uint64, outcome Outcome) bool) {
		for pair := range slices.Chunk(list, 2) {
			isComplete := len(pair) == 2
			if !isComplete {
				return
			}
			lastSpan, outcome := pair[0], Outcome(pair[1])
			isUnknown := outcome > Resend
			if isUnknown {
				outcome = Resend
			}
			if !yield(lastSpan, outcome) {
				return
			}
		}
	}
}
