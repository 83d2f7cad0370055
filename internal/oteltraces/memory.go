package oteltraces

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
)

// limits is how much a body may make a counter hold, by how long it is: about twice what
// any SDK packs into so many bytes. Without it a megabyte of spans of two bytes each would
// take as much as the largest body.
type limits struct {
	spans, tags int
	parts       int // resources, and scopes
	made        int // bytes of messages, and of what is written for them
}

// The limits for the longest bodies.
const (
	maxSpans = 1 << 16
	maxTags  = 1 << 19
	maxParts = 1 << 15
	maxMade  = 12 << 20
)

func limitsOf(body int) limits {
	return limits{
		spans: min(maxSpans, 1<<12+body/48), tags: min(maxTags, 1<<12+body/24),
		parts: min(maxParts, 1<<8+body/64), made: min(maxMade, 1<<18+4*body),
	}
}

// grown is what a slice takes for each element that it has come to have: room for a
// quarter more, and as much again for what it grew out of.
const grown = 1.5

// MaxSpans is the most spans that are counted of a body of that length.
func MaxSpans(body int) int { return limitsOf(body).spans }

// CounterBytes is the most that a counter takes for bodies of that length.
func CounterBytes(body int) int {
	l := limitsOf(body)
	const (
		span = int(unsafe.Sizeof(record{})) + traceBytes + snapshotBytes
		part = int(unsafe.Sizeof(resource{}) + unsafe.Sizeof(part{}))
	)
	return int(grown*float64(l.spans*span+(l.tags+attributesAhead)*int(unsafe.Sizeof(tag{}))+l.parts*part+l.made)) + anyCounter
}

// snapshotBytes is the most that a snapshot takes beside its key.
const snapshotBytes = 1 + 5 + 3*9 + 1

// anyCounter is what a counter takes for any body: what it remembers of keys and of
// origins, and the labels of a span.
const anyCounter = bytecache.Bytes + mostResources*mostSaid + 256<<10

// KeptBytes is the most that is left of a body of that length where some of its traces go on:
// each span may have a tracestate where it had none.
func KeptBytes(body int) int { return body + MaxSpans(body)*raisedBytes }

// raisedBytes is by how much a span may become longer: by the tag and the length of a
// tracestate, what is written into it, and the length of what it is in.
const raisedBytes = 2 + len("ot=th:,") + digits + 6

// TranslatedBytes is the most that a Translator writes of a body of that length.
func TranslatedBytes(body int) int { return limitsOf(body).made }

// TranslatorBytes is the most that a Translator takes for bodies of that length: as a Counter,
// with what is written in the place of batches, and places of spans by trace.
func TranslatorBytes(body int) int { return CounterBytes(body) + limitsOf(body).spans*groupBytes }

// groupBytes is what a span takes in groups.
const groupBytes = 2 * 3 * 4
