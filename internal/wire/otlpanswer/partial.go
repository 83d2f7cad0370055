package otlpanswer

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Partial is the partial success of an Export...Response: how many spans, data points or log records of an accepted
// request were rejected, and why.
type Partial struct {
	Rejected uint64
	Message  string
}

// Field numbers of Export...Response and of ExportPartialSuccess messages.
const (
	fieldPartialSuccess protolite.Number = 1
	fieldRejected       protolite.Number = 1
	fieldErrorMessage   protolite.Number = 2
)

// ReadPartial reads the partial success of an encoded OTLP response. It reads a negative number of rejected items as 0.
func ReadPartial(response []byte) Partial {
	var p Partial
	for message := range protolite.Messages(response, fieldPartialSuccess) {
		for f := range protolite.Fields(message) {
			switch f.Number {
			case fieldRejected:
				p.Rejected = uint64(max(0, int64(f.Value)))
			case fieldErrorMessage:
				p.Message = string(f.Bytes)
			}
		}
	}
	return p
}

// JSON returns an OTLP response in JSON that contains the partial success p, or {} if p is empty. rejectedName is
// the name of the field with the number of rejected items, such as "rejectedSpans". The number is a string, as the
// JSON encoding of protobuf requires for 64-bit integers.
func (p Partial) JSON(rejectedName string) []byte {
	if p == (Partial{}) {
		return []byte("{}")
	}
	partial := map[string]string{}
	if p.Rejected > 0 {
		partial[rejectedName] = strconv.FormatUint(p.Rejected, 10)
	}
	if p.Message != "" {
		partial["errorMessage"] = p.Message
	}
	return mustJSON(map[string]any{"partialSuccess": partial})
}
