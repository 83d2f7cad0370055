package traces

import (
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// Format is one of the agent's trace endpoints, by how its bodies are written.
type Format uint8

const (
	FormatV04 Format = iota // also /v0.3/traces
	FormatV05
	FormatV07
	FormatV1
)

// String is the format's endpoint.
func (f Format) String() string { return [...]string{"v0.4", "v0.5", "v0.7", "v1.0"}[f] }

// ErrUnread is what a body gives that is left to the agent: it is no msgpack of
// its format, or holds what no tracer writes and only the agent can judge.
var ErrUnread = errors.New("read traces: the body is not what its endpoint takes")

// encoding is how a format writes the values of a span. All else of a span is read in
// the same way whatever the format is.
type encoding struct {
	text    func(*payload) msgpack.Text
	id      func(*payload) uint64
	time    func(*payload) uint64
	isError func(*payload) bool
	texts   *tagReader
	numbers *tagReader
	link    func(*payload)
	event   func(*payload)
	other   func(*payload) // a field that we have no use for
}

// encodings are those of the formats.
var encodings = [...]encoding{
	FormatV04: namedEncoding,
	FormatV05: {
		text: (*payload).indexedText, id: (*payload).id, time: (*payload).signedTime, isError: (*payload).errorNumber,
		texts: &indexedTexts, numbers: &indexedNumbers,
	},
	FormatV07: namedEncoding,
	FormatV1: {
		text: (*payload).streamedText, id: (*payload).unsigned, time: (*payload).unsigned, isError: (*payload).boolean,
		link: (*payload).linkV1, event: (*payload).eventV1, other: (*payload).skipStreamed,
	},
}

var namedEncoding = encoding{
	text: (*payload).looseText, id: (*payload).id, time: (*payload).signedTime, isError: (*payload).errorNumber,
	texts: &namedTexts, numbers: &namedNumbers,
	link: (*payload).skipMap, event: (*payload).skipMap, other: (*payload).skip,
}
