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

// ReadPartial reads the partial success of a protobuf response. A negative number of rejected items is read as 0.
func ReadPartial(response []byte) (p Partial) {
	for f := range protolite.Fields(response) {
		if f.Number != fieldPartialSuccess {
			continue
		}
		for inner := range protolite.Fields(f.Bytes) {
			switch inner.Number {
			case fieldRejected:
				p.Rejected = uint64(max(0, int64(inner.Value)))
			case fieldErrorMessage:
				p.Message = string(inner.Bytes)
			}
		}
	}
	return p
}

// JSON returns the response in JSON. rejectedName is the name of the field with the number of rejected items, which
// depends on the signal. Protobuf's JSON mapping encodes 64-bit integers as strings.
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
