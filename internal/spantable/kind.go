package spantable

// Kind is a span's kind. The first ones have OTLP's numbers.
type Kind uint8

const (
	KindUnknown Kind = iota // none was said, in the formats that can tell
	KindInternal
	KindServer
	KindClient
	KindProducer
	KindConsumer
	KindOther       // one that the agent does not know, to which it is internal
	KindUnspecified // of OTLP, where none was said
	Kinds           // how many there are
)

var kindNames = [Kinds]string{
	"unknown", "internal", "server", "client", "producer", "consumer", "other", "unspecified",
}

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// KindSet is a set of kinds.
type KindSet uint8

// KindsOf is the set of some kinds.
func KindsOf(kinds ...Kind) (set KindSet) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has says whether a kind is in the set.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }
