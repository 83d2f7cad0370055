package traces

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/bytecache"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// limits is how much a body may make a counter hold, by how long it is: about twice what
// any tracer packs into so many bytes. Without it a megabyte of tags of two bytes each
// would take as much as the largest body.
type limits struct {
	spans, tags, strings int
	made                 int // bytes of messages, and of what is mended for them
}

// The limits for the longest bodies. maxSpans bounds traces as well.
const (
	maxSpans   = 1 << 16
	maxTags    = 1 << 19
	maxStrings = 1 << 18
	maxMade    = 12 << 20
)

const (
	// maxText bounds the bytes of text that one body may make us read: two of the
	// formats let every span refer to a string that the body brings once, and a megabyte
	// of it would become gigabytes of labels.
	maxText = 32 << 20
	// maxTagText is the longest tag that we judge. The agent cuts those over 25,000
	// bytes, and a list of hosts takes many times its length to be read.
	maxTagText = 16 << 10
)

func limitsOf(body int) limits {
	return limits{
		spans: min(maxSpans, 1<<12+body/48), tags: min(maxTags, 1<<12+body/8),
		strings: min(maxStrings, 1<<12+body/16), made: min(maxMade, 1<<18+4*body),
	}
}

// limitsOfIngest are those of a body of FormatIngest, in which each label of a span stands once.
func limitsOfIngest(body int) limits {
	l := limitsOf(body)
	l.made = min(l.made, 1<<18+2*body)
	return l
}

// keptBytes is what a span takes that is kept.
const keptBytes = int(unsafe.Sizeof(Kept{}))

// grown is what a slice takes for each element that it has come to have: room for a
// quarter more, and as much again for what it grew out of.
const grown = 1.5

// MaxSpans is the most spans that are counted of a body of that length.
func MaxSpans(body int) int { return limitsOf(body).spans }

// CounterBytes is the most that a counter takes for bodies of that length, where the ids of
// traces are asked for or not.
func CounterBytes(body int, traceIDs bool) int {
	l := limitsOf(body)
	const (
		span = int(unsafe.Sizeof(record{})+unsafe.Sizeof(chunk{})+unsafe.Sizeof(rules.Link{})) + 8 // with its place among the trace's
		text = int(unsafe.Sizeof(msgpack.Text{})+unsafe.Sizeof(label(0))) + 4*4                    // its slots of a table half full, and of the one before
	)
	each := span
	if traceIDs {
		each += keptBytes + int(unsafe.Sizeof(traceID{}))
	}
	return int(grown*float64(l.spans*each+l.tags*int(unsafe.Sizeof(tag{}))+l.strings*text+l.made)) + anyCounter
}

// IngestBytes is the same for bodies of FormatIngest with so many spans at most, which number
// no strings and have senders.
func IngestBytes(body, spans int) int {
	l := limitsOfIngest(body)
	each := int(unsafe.Sizeof(record{})+unsafe.Sizeof(chunk{})+unsafe.Sizeof(rules.Link{})+unsafe.Sizeof(sender{})) + 8
	return int(grown*float64(spans*each+l.tags*int(unsafe.Sizeof(tag{}))+l.made)) + anyCounter
}

// anyCounter is what a counter takes for any body: the names and the labels of a span
// that it mends, what it remembers of those before, and strings that are sent ahead.
const anyCounter = bytecache.Bytes + 160<<10
