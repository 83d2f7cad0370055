package wire

// Welcome is the daemon's answer to hello: what it speaks, what it takes, and
// what it wants.
type Welcome struct {
	Version  uint64
	Daemon   string // the daemon's name and version, for the tracer's log
	MaxFrame int    // the longest message it takes, at least MinMaxFrame
	MaxBatch int    // the most snapshots of one batch, at least MinMaxBatch
	MaxKeys  int    // the numbers of a define must be below it
	Features Features
}

// Features is what the agent behind the daemon wants counted.
type Features struct {
	Stats              bool     // whether stats are wanted at all
	PeerTags           []string // the tags that make up a key's peer tags, by their names
	SpanKinds          []string // the kinds whose spans count even below the top level
	IgnoreResources    []string // expressions for resources that are not to be counted
	ObfuscationVersion uint64
}

// AppendWelcome appends a whole frame.
func AppendWelcome(dst []byte, m *Welcome) []byte {
	return appendCold(dst, TypeWelcome, 6, func(w *coldWriter) {
		w.number("version", m.Version)
		w.text("daemon", m.Daemon)
		w.number("max_frame", uint64(m.MaxFrame))
		w.number("max_batch", uint64(m.MaxBatch))
		w.number("max_keys", uint64(m.MaxKeys))
		w.fields("features", featuresFields)
		m.Features.write(w)
	})
}

// DecodeWelcome reads a welcome's body. One that announces less than the
// protocol's least is malformed, so a tracer need not ask twice.
func DecodeWelcome(body []byte) (Welcome, error) {
	m, err := readCold(TypeWelcome, body, func(r *coldReader, m *Welcome, name string) {
		switch name {
		case "version":
			m.Version = r.number()
		case "daemon":
			m.Daemon = r.text()
		case "max_frame":
			m.MaxFrame = r.size()
		case "max_batch":
			m.MaxBatch = r.size()
		case "max_keys":
			m.MaxKeys = r.size()
		case "features":
			m.Features = Features{}
			r.fields(func(r *coldReader, name string) { readFeature(r, &m.Features, name) })
		default:
			r.Skip()
		}
	})
	if err == nil && (m.MaxFrame < MinMaxFrame || m.MaxBatch < MinMaxBatch) {
		return Welcome{}, malformed("decode welcome", "expected a max_frame of at least %d and a max_batch of at least %d, found %d and %d",
			MinMaxFrame, MinMaxBatch, m.MaxFrame, m.MaxBatch)
	}
	return m, err
}

// featuresFields is how many fields write writes.
const featuresFields = 5

// AppendFeatures appends a whole frame.
func AppendFeatures(dst []byte, m *Features) []byte {
	return appendCold(dst, TypeFeatures, featuresFields, m.write)
}

// DecodeFeatures reads the body of a features message.
func DecodeFeatures(body []byte) (Features, error) {
	return readCold(TypeFeatures, body, readFeature)
}

func (m *Features) write(w *coldWriter) {
	w.flag("stats", m.Stats)
	w.texts("peer_tags", m.PeerTags)
	w.texts("span_kinds", m.SpanKinds)
	w.texts("ignore_resources", m.IgnoreResources)
	w.number("obfuscation_version", m.ObfuscationVersion)
}

func readFeature(r *coldReader, m *Features, name string) {
	switch name {
	case "stats":
		m.Stats = r.flag()
	case "peer_tags":
		m.PeerTags = r.texts()
	case "span_kinds":
		m.SpanKinds = r.texts()
	case "ignore_resources":
		m.IgnoreResources = r.texts()
	case "obfuscation_version":
		m.ObfuscationVersion = r.number()
	default:
		r.Skip()
	}
}
