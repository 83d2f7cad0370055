package wire

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
