// Package span is the vocabulary that every other room shares: what a key is,
// what an origin is, and which small facts a snapshot carries besides them.
//
// It holds values and the rules that make two of them equal, and nothing that
// runs: no goroutine, no socket, no clock. It imports nothing of ours, so that
// the client library, the protocol and the daemon can all speak it without
// knowing one another.
//
// A Key is labels as a person reads them. The hot path never sees one: on the
// wire a key is opaque bytes, and behind ingest it is a dense number. Keys are
// decoded, normalised and compared only where a label is met for the first
// time in an interval.
package span

// Blocked stands in the place of a label that is over its budget: the span is
// still counted, its label is not told apart any more. It is the value that
// the Datadog tracers use, so that a reader of the statistics meets one word.
const Blocked = "tracer_blocked_value"

// Key is the labels that a snapshot is counted under. Two snapshots with equal
// keys, of one origin and one bucket, meet in one aggregate.
//
// An absent optional label and an empty one are the same.
type Key struct {
	Service        string
	Operation      string
	Resource       string
	Type           string
	Kind           string
	TraceRoot      TraceRoot
	HTTPStatus     uint32
	PeerTags       []string // "key:value"; once normal, in the order of their bytes
	HTTPMethod     string
	HTTPEndpoint   string
	GRPCStatus     string // decimal text, "" for none
	ServiceSource  string
	Synthetics     bool
	AdditionalTags []string // "key:value", at most MaxAdditionalTags
}

// Clear empties the key and keeps the room of its lists, which then hold no tag that the
// key ever had.
func (k *Key) Clear() {
	peers, additional := k.PeerTags[:cap(k.PeerTags)], k.AdditionalTags[:cap(k.AdditionalTags)]
	clear(peers)
	clear(additional)
	*k = Key{PeerTags: peers[:0], AdditionalTags: additional[:0]}
}

// Facts are the parts of a key that are neither text nor number: trace root and
// synthetics, in one byte.
func (k *Key) Facts() byte {
	facts := byte(k.TraceRoot) << 1
	if k.Synthetics {
		facts |= 1
	}
	return facts
}

// SetFacts is the inverse of Facts.
func (k *Key) SetFacts(facts byte) {
	k.TraceRoot, k.Synthetics = TraceRoot(facts>>1), facts&1 != 0
}

// TraceRoot says whether a span is the root of its trace. Its values are those
// of the agent's own three-valued type.
type TraceRoot uint8

const (
	TraceRootNotSet TraceRoot = 0
	TraceRootTrue   TraceRoot = 1
	TraceRootFalse  TraceRoot = 2
)

// Flags are the yes-or-no facts of one snapshot that are not part of its key.
type Flags uint8

const (
	// Error marks a span that failed.
	Error Flags = 1 << iota
	// TopLevel marks the span through which its trace entered a service.
	TopLevel

	// KnownFlags is every flag that this version gives a meaning to.
	KnownFlags = Error | TopLevel

	// SharedOrigin marks a span that is counted under an origin which says less than its sender does,
	// because its request has too many. It is on no wire.
	SharedOrigin Flags = 1 << 6
	// Ignored marks a span that is not counted, for an attribute that is in no key. It is on no wire.
	Ignored Flags = 1 << 7
)

// Batch is the spans of one origin that a receiver counted from one body. It is valid as long as the body.
type Batch struct {
	Snapshots    []Snapshot
	Fingerprints []byte // of all snapshots
	Labeller     Labeller
}

// Snapshot is one finished span of a batch.
type Snapshot struct {
	Fingerprint, FingerprintEnd uint32  // in Batch.Fingerprints
	Duration                    uint64  // nanoseconds
	End                         int64   // nanoseconds since 1970
	Weight                      float64 // how many spans it stands for
	Span                        uint32  // its number for Batch.Labeller
	Flags                       Flags
}

// FingerprintOf returns the fingerprint of a snapshot: the parts of the span that its key is made of, as they
// are in the body. Snapshots with equal fingerprints have equal keys. It is empty if the span is ignored, or those
// parts are too long for a cache.
func (b *Batch) FingerprintOf(s *Snapshot) []byte {
	return b.Fingerprints[s.Fingerprint:s.FingerprintEnd:s.FingerprintEnd]
}

// Labeller makes the keys of the spans of one body.
type Labeller interface {
	// Label returns the key of a span that is not ignored. It is not normalized, may be changed, and is valid
	// until the next call.
	Label(span uint32) *Key
}

// The longest label of each kind, in bytes: the agent's own limits. A longer label is cut,
// never refused, because a tracer's span is worth counting even where its label is not worth
// keeping whole.
const (
	MaxService        = 100
	MaxOperation      = 100
	MaxResource       = 5000
	MaxType           = 100
	MaxLabel          = 200 // every other label, each tag, and the value of an additional one
	MaxPeerTags       = 64
	MaxAdditionalTags = 4
	// MaxOriginField bounds each field of an origin; lists get more.
	MaxOriginField = 200
	MaxProcessTags = 4096
	MaxAttributes  = 2048 // of the attributes that an origin keeps of its resource, all together
)
