package traces

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// most is how much a body may make a counter hold, by how long it is: about twice what
// any tracer packs into so many bytes. Without it a megabyte of tags of two bytes each
// would take as much as the largest body.
type most struct {
	spans, tags, strings int
	made                 int // bytes of messages, and of what is mended for them
}

// maxMade is the most that is made of any body.
const maxMade = 12 << 20

func mostOf(body int) most {
	return most{
		spans: min(maxSpans, 1<<12+body/48), tags: min(maxTags, 1<<12+body/8),
		strings: min(maxStrings, 1<<12+body/16), made: min(maxMade, 1<<18+4*body),
	}
}

// grown is what a slice takes for each element that it has come to have: room for a
// quarter more, and as much again for what it grew out of.
const grown = 1.5

// MaxSpans is the most spans that are counted of a body of that length.
func MaxSpans(body int) int { return mostOf(body).spans }

// CounterBytes is the most that a counter takes for bodies of that length.
func CounterBytes(body int) int {
	m := mostOf(body)
	const (
		span = int(unsafe.Sizeof(record{})+unsafe.Sizeof(chunk{})+unsafe.Sizeof(rules.Link{})) + 8 // with its place among the trace's
		text = int(unsafe.Sizeof(text{})+unsafe.Sizeof(label(0))) + 4*int(unsafe.Sizeof(stringSlot{}))
	)
	return int(grown*float64(m.spans*span+m.tags*int(unsafe.Sizeof(tag{}))+m.strings*text+m.made)) + anyCounter
}

// anyCounter is what a counter takes for any body: the names and the labels of a span
// that it mends, and what it remembers of those before.
const anyCounter = 2 << 20
