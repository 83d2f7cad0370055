package sampling

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Sample is what of one request of OTLP goes on: Measure finds it out, and AppendLeft writes it.
type Sample struct {
	request   *otlp.Request
	threshold uint64 // that spans are raised to
	states    tracestate.Memo
	traces    traces
	fates     []fate         // by span
	scopes    []int          // by scope, how long its message will be, nothingLeft where it ends
	resources []resourceLeft // by resource
	raised    []byte         // a tracestate with another threshold
}

// fate is what becomes of a span.
type fate uint8

const (
	goesOn fate = iota // as it is
	raised             // goes on with the threshold of the share
	ended              // goes no further
)

const fateBytes = int(unsafe.Sizeof(goesOn))

// traces are those of one request.
type traces struct {
	numbers spantable.TraceNumbers
	all     []trace // by number
}

// trace is what is known of one.
type trace struct {
	isWanted bool // for an error, or because it was slow
	isKept   bool // at least one span of it
}

const traceBytes = int(unsafe.Sizeof(trace{}))

// nothingLeft is the size of a message that ends.
const nothingLeft = -1

// resourceLeft is what becomes of a resource.
type resourceLeft struct {
	size       int // of its message with its scopes, nothingLeft where it ends
	isMarked   bool
	markedSize int // of the message that says who it is
}

// Bytes is the most that a Sample takes for bodies of that length, which have as many resources
// and scopes as spans at most.
func Bytes(body int) int {
	const parts = int(unsafe.Sizeof(resourceLeft{}) + unsafe.Sizeof(0))
	const each = spantable.TraceNumberBytes + traceBytes + fateBytes + parts
	return int(spantable.Grown * float64(spantable.MaxSpans(body)*each))
}

// GoesOn says whether a span goes on, by what Measure found where it was asked.
func (s *Sample) GoesOn(span int) bool { return len(s.fates) == 0 || s.fates[span] != ended }

// Release lets go of the request.
func (s *Sample) Release() {
	s.request, s.fates = nil, s.fates[:0]
	s.states.Forget()
}
