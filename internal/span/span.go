// Package span defines the data types that all other packages share: the Key under which a span is counted,
// the Origin that sent it, and the Snapshot of a finished span.
//
// It contains values and the rules that decide when two of them are equal. It imports no other package of
// this module, so the client library, the wire protocol and the daemon can all use it.
//
// A Key is the human-readable form of the labels. The hot path does not use it: on the wire a key is opaque
// bytes, and in the aggregator it is a number. Keys are decoded, normalized and compared only when a key is
// seen for the first time in an interval.
package span

// Blocked replaces a label that exceeds its cardinality budget. The span is still counted, but no longer
// under its own label value. Datadog tracers use the same value.
const Blocked = "tracer_blocked_value"

// Key is the set of labels under which a span is counted. Snapshots with the same key, origin and time
// bucket are added to the same aggregate.
//
// An absent optional label is equal to an empty one.
type Key struct {
	Service        string
	Operation      string
	Resource       string
	Type           string
	Kind           string
	TraceRoot      TraceRoot
	HTTPStatus     uint32
	PeerTags       []string // "key:value"; sorted by bytes after Normalize
	HTTPMethod     string
	HTTPEndpoint   string
	GRPCStatus     string // decimal digits; "" if absent
	ServiceSource  string
	Synthetics     bool
	AdditionalTags []string // "key:value", at most MaxAdditionalTags
	Measure        Measure  // measure whose values are counted; 0 for the spans themselves
}

// Measure is the number of a measure, a configured attribute whose values are added up. No client can set it. 0
// stands for no measure.
type Measure uint8

// MaxMeasures is the maximum number of measures.
const MaxMeasures = 24

// Clear empties the key but keeps the capacity of its tag lists, so that it can be filled again without
// allocating. The old tags are zeroed, so that the garbage collector can free them.
func (k *Key) Clear() {
	peers, additional := k.PeerTags[:cap(k.PeerTags)], k.AdditionalTags[:cap(k.AdditionalTags)]
	clear(peers)
	clear(additional)
	*k = Key{PeerTags: peers[:0], AdditionalTags: additional[:0]}
}

// Layout of the number that Enums returns.
const (
	syntheticsBit  = 1
	traceRootShift = 1
	traceRootMask  = 3
	measureShift   = 3
)

// Enums encodes TraceRoot, Synthetics and Measure in one number. SetEnums decodes them.
func (k *Key) Enums() uint32 {
	enums := uint32(k.Measure)<<measureShift | uint32(k.TraceRoot)<<traceRootShift
	if k.Synthetics {
		enums |= syntheticsBit
	}
	return enums
}

// SetEnums sets TraceRoot, Synthetics and Measure from a number that Enums returned.
func (k *Key) SetEnums(enums uint32) {
	k.TraceRoot = TraceRoot(enums >> traceRootShift & traceRootMask)
	k.Synthetics = enums&syntheticsBit != 0
	k.Measure = Measure(enums >> measureShift)
}

// TraceRoot states whether a span is the root of its trace, or that this is unknown. The values are those
// of the Datadog agent's enumeration.
type TraceRoot uint8

const (
	TraceRootNotSet TraceRoot = 0
	TraceRootTrue   TraceRoot = 1
	TraceRootFalse  TraceRoot = 2
)

// Flags are boolean properties of a snapshot that are not part of its key.
type Flags uint8

const (
	// Error marks a failed span.
	Error Flags = 1 << iota
	// TopLevel marks the entry span of a service: its parent is missing or belongs to another service.
	TopLevel

	// KnownFlags is the set of flags that the native protocol can transmit.
	KnownFlags = Error | TopLevel

	// IsValue marks a value of a span's attribute, which is not a span itself. It is used within the daemon only.
	IsValue Flags = 1 << 4
	// Renamed marks a span that is counted under another name than its own, which the conventions for
	// names define. It is used within the daemon only.
	Renamed Flags = 1 << 5
	// SharedOrigin marks a span that is counted under a less specific origin than its own, because its
	// request contains too many origins. It is used within the daemon only.
	SharedOrigin Flags = 1 << 6
	// Ignored marks a span that an ignore rule excludes because of an attribute that is in no key. It is
	// used within the daemon only.
	Ignored Flags = 1 << 7
)

// Batch contains the spans of one origin that a receiver counted from one body. It is valid as long as
// the body.
type Batch struct {
	Snapshots    []Snapshot
	Values       []Value // values in the order of their snapshots
	Fingerprints []byte  // fingerprints of all snapshots
	Labeler      Labeler
}

// Snapshot is one finished span of a batch.
type Snapshot struct {
	Fingerprint, FingerprintEnd uint32  // range in Batch.Fingerprints
	Duration                    uint64  // nanoseconds
	End                         int64   // nanoseconds since the Unix epoch
	Weight                      float64 // number of spans that this span represents, if it was sampled
	Span                        uint32  // argument of Batch.Labeler.Label
	Flags                       Flags
}

// Value is an additional snapshot of a span in a batch: the value of one of its attributes. It is counted under the
// labels of the span and the number of a measure, at the end of the span.
type Value struct {
	Snapshot uint32  // index in Batch.Snapshots of the span
	Measure  Measure // not 0
	Flags    Flags   // Error, or 0
	Amount   uint64  // counted like a duration: a value of 1 has the amount of one second
}

// FingerprintOf returns the fingerprint of a snapshot: the parts of the span that its key is made of, as they
// are in the body. Snapshots with equal fingerprints have equal keys. It is empty if the span is ignored, or those
// parts are too long for a cache.
func (b *Batch) FingerprintOf(s *Snapshot) []byte {
	return b.Fingerprints[s.Fingerprint:s.FingerprintEnd:s.FingerprintEnd]
}

// Labeler makes the keys of the spans of one body.
type Labeler interface {
	// Label returns the key of a span that is not ignored. It is not normalized, may be changed, and is valid
	// until the next call.
	Label(span uint32) *Key
}

// Maximum lengths of labels in bytes, and maximum numbers of tags; the Datadog agent has the same limits.
// Longer labels are truncated rather than rejected, so that the span is counted nevertheless.
const (
	MaxService        = 100
	MaxOperation      = 100
	MaxResource       = 5000
	MaxType           = 100
	MaxLabel          = 200 // every other label, each tag, and the value of an additional tag
	MaxPeerTags       = 64
	MaxAdditionalTags = 4
	// MaxOriginField applies to each field of an Origin except ProcessTags and Attributes.
	MaxOriginField = 200
	MaxProcessTags = 4096
	MaxAttributes  = 2048 // all resource attributes of an origin together
)
