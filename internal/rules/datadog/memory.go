package datadog

import (
	"unsafe"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
)

// keptBytes is what a span takes that is kept, keptText what a counter keeps of texts from one
// body to the next.
const (
	keptBytes = int(unsafe.Sizeof(Kept{}))
	keptText  = 4 << 20
)

// countingBytes is what counting a span takes: its link with its place among the trace's, and its
// snapshot.
const countingBytes = int(unsafe.Sizeof(agent.Link{})) + 8 + rules.SnapshotBytes

// CounterBytes is the most that a counter takes for bodies of that length, where the ids of traces
// are asked for or not.
func CounterBytes(body int, traceIDs bool) int {
	each := countingBytes
	if traceIDs {
		each += keptBytes
	}
	return decode.Bytes(body, each) + anyCounter
}

// IngestedBytes is what CountIngested takes for each span beside the table that it is given, and
// for any table.
const (
	IngestedBytes = countingBytes
	AnyCounter    = anyCounter
)

// anyCounter is what a counter takes for any body: the names and the labels of a span that it
// mends, what it remembers of those before, and strings that are sent ahead.
const anyCounter = rules.KeysBytes + 160<<10
